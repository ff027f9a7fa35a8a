"""SphereFace2: a yes-or-no question for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins.base import Facts, Margin, Reduction, State, check_cosine, check_range, register
from arcwise.margins.binary import balanced_offset


@register("sphereface2")
@dataclass(frozen=True)
class SphereFace2(Margin):
    """N yes-or-no questions instead of one choice among N, with a margin on both sides of one threshold.  Wen et al. 2022.

    Softmax only asks which class is nearest; a verification system compares one similarity with one threshold. Here training does the
    same: the own similarity has to be above the threshold by a margin, every other one below it.

    Prefer `ArcFace` for closed sets, where only the nearest class counts, and `UniFace` when there are fewer parameters to be tuned.

    Asks for: being m above a threshold with the own class and m below with all others.
    Take it when: embeddings are to be compared against one threshold, and labels are noisy.

    Formula:
        g(c) = 2·((c + 1)/2)^t − 1
        own class: (λ/s)·log(1 + exp(−s·(g(cos θ_y) − m) − b))
        each other class: ((1 − λ)/s)·log(1 + exp(s·(g(cos θ_j) + m) + b))
        b is learnt, and begins where both sides pull alike

    Args:
        m: the margin as a difference of cosines, 0 ≤ m < 2.
        lam: λ, the weight of the own class's question, 0 < λ < 1.
        t: how strongly g spreads similarities apart near 1, 1 ≤ t ≤ 20.

    Paper:
        Yandong Wen, Weiyang Liu, Adrian Weller, Bhiksha Raj, Rita Singh. SphereFace2: Binary Classification is All You Need for Deep Face
        Recognition. ICLR 2022. arXiv:2108.01513
    """

    reduction: ClassVar[Reduction] = "binary"
    reshapes_negatives: ClassVar[bool] = True
    becomes_norm_softmax: ClassVar[bool] = False
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.05, 0.6), "t": (1.0, 6.0)}

    m: float = 0.4
    lam: float = 0.7
    t: float = 3.0

    def __post_init__(self) -> None:
        check_cosine("m", self.m)
        if not 0 < self.lam < 1:
            raise ConfigError(f"lam must be in (0, 1), the weight of the own class; got {self.lam:g}.")
        check_range("t", self.t, 1, 20, "a power")

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        spread_B, slope_B = self._spread(cos_B)
        return spread_B - self.m, slope_B

    def negatives(self, cos: Tensor, psi: Tensor, state: State) -> tuple[Tensor, Tensor]:
        spread, slope = self._spread(cos.clamp(-1.0, 1.0))
        return spread + self.m, slope

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

    def initial_parameters(self, facts: Facts) -> dict[str, Tensor]:
        right_angle = 2 * 0.5**self.t - 1
        own, other = facts.scale * (right_angle - self.m), facts.scale * (right_angle + self.m)
        return {"b": torch.tensor(balanced_offset(own, other, facts.num_classes - 1, self.lam, 1 - self.lam))}

    def offset(self, state: State) -> Tensor:
        return state["b"]

    def weights(self, scale: Tensor | float) -> tuple[Tensor | float, Tensor | float]:
        return self.lam / scale, (1 - self.lam) / scale

    def _spread(self, cos: Tensor) -> tuple[Tensor, Tensor]:
        half = (cos + 1) / 2
        return 2 * half**self.t - 1, self.t * half ** (self.t - 1)

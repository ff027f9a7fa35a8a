"""UniFace: one threshold for all pairs of embedding and class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.margins.base import Facts, Margin, Reduction, State, check_cosine, register
from arcwise.margins.binary import balanced_offset


@register("uniface")
@dataclass(frozen=True)
class UniFace(Margin):
    """CosFace's margin, with one learnt threshold between all own and all other classes.  Zhou et al. 2023.

    Softmax lets every sample have a threshold of its own between its class and the rest. With one threshold b for all, a similarity
    means the same whoever it belongs to, which is what verification needs.

    Prefer `ArcFace` for closed sets, where only the nearest class counts.

    Asks for: being above one threshold by m with the own class, and below it with all others.
    Take it when: embeddings are to be compared against one threshold.

    Formula:
        own class: log(1 + exp(−s·(cos θ_y − m) + b))
        each other class: log(1 + exp(s·cos θ_j − b))
        b is learnt, and begins where both sides pull alike

    Args:
        m: the margin as a difference of cosines, 0 ≤ m < 2.

    Paper:
        Jiancan Zhou, Xi Jia, Qiufu Li, Linlin Shen, Jinming Duan. UniFace: Unified Cross-Entropy Loss for Deep Face Recognition.
        ICCV 2023.
    """

    reduction: ClassVar[Reduction] = "binary"
    becomes_norm_softmax: ClassVar[bool] = False
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.05, 0.6)}

    m: float = 0.4

    def __post_init__(self) -> None:
        check_cosine("m", self.m)

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return cos_B - self.m, torch.ones_like(cos_B)

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

    def initial_parameters(self, facts: Facts) -> dict[str, Tensor]:
        return {"b": torch.tensor(-balanced_offset(-facts.scale * self.m, 0.0, facts.num_classes - 1, 1.0, 1.0))}

    def offset(self, state: State) -> Tensor:
        return -state["b"]

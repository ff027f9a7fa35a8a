"""MV-Softmax: classes that an embedding is mistaken for are pushed harder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, get_args

import torch
from torch import Tensor

from arcwise.margins.base import Margin, State, check_angle, check_cosine, check_range, check_word, register
from arcwise.margins.continuation import combined_curve

Kind = Literal["am", "arc"]


@register("mv-softmax")
@dataclass(frozen=True)
class MVSoftmax(Margin):
    """CosFace or ArcFace, with the logits of classes that are too near raised.  Wang et al. 2020.

    A class whose cosine is above the own one's with its margin misleads. Its logit is raised, so that the loss pays attention where it
    is needed, from the first step on.

    Prefer `CurricularFace` when training is slow to start, and `CosFace` or `ArcFace` on noisy labels.

    Asks for: winning by m, against misleading classes by more.
    Take it when: labels are clean and classes look alike.

    Formula:
        target: s·(cos θ_y − m) for kind "am", s·ψ(θ_y) with ArcFace's ψ for kind "arc"
        other classes: s·cos θ_j, or s·((1 + t)·cos θ_j + t) where cos θ_j > ψ(θ_y)

    Args:
        m: the margin: a difference of cosines, 0 ≤ m < 2, or radians, 0 ≤ m < π/2, for kind "arc".
        t: how far misleading classes are raised, 0 to 1; 0 leaves them.
        kind: "am" for CosFace's margin, "arc" for ArcFace's.

    Paper:
        Xiaobo Wang, Shifeng Zhang, Shuo Wang, Tianyu Fu, Hailin Shi, Tao Mei. Mis-classified Vector Guided Softmax Loss for Face
        Recognition. AAAI 2020. arXiv:1912.00833
    """

    title: ClassVar[str] = "MV-Softmax"
    reshapes_negatives: ClassVar[bool] = True
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.05, 0.6), "t": (0.02, 0.5)}

    m: float = 0.35
    t: float = 0.2
    kind: Kind = "am"

    def __post_init__(self) -> None:
        check_word("kind of MV-Softmax", self.kind, get_args(Kind))
        (check_angle if self.kind == "arc" else check_cosine)("m", self.m)
        check_range("t", self.t, 0, 1, "how far misleading classes are raised")

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        if self.kind == "am":
            return cos_B - self.m, torch.ones_like(cos_B)
        return combined_curve(cos_B, 1.0, self.m, 0.0, "continuous")

    def negatives(self, cos: Tensor, psi: Tensor, state: State) -> tuple[Tensor, Tensor]:
        misleading = cos > psi
        value, one = (1 + self.t) * cos + self.t, torch.ones_like(cos)
        return torch.where(misleading, value, cos), torch.where(misleading, 1 + self.t, one)

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m, t=fraction * self.t)

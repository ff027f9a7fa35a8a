"""CosFace: a margin on the cosine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.margins.base import Margin, check_cosine, register


@register("cosface")
@dataclass(frozen=True)
class CosFace(Margin):
    """Additive cosine margin: the true class's cos θ becomes cos θ − m.  Wang et al. 2018, eq. 4.

    The whole curve is lowered by the same amount, so its slope stays that of the cosine everywhere: the easiest margin to train.

    Prefer `ArcFace` when the gap should be the same in degrees wherever the embedding lies.

    Asks for: winning by m in the cosine.
    Take it when: classes are few and noisy, or another margin is slow to start.

    Formula:
        target: s·(cos θ_y − m)
        other classes: s·cos θ_j

    Args:
        m: the margin as a difference of cosines, 0 ≤ m < 2.

    Paper:
        Hao Wang, Yitong Wang, Zheng Zhou, Xing Ji, Dihong Gong, Jingchao Zhou, Zhifeng Li, Wei Liu. CosFace: Large Margin Cosine Loss
        for Deep Face Recognition. CVPR 2018. arXiv:1801.09414
    """

    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.05, 0.6)}

    m: float = 0.35

    def __post_init__(self) -> None:
        check_cosine("m", self.m)

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return cos_B - self.m, torch.ones_like(cos_B)

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

"""CurricularFace: hard negatives count little at first and more as training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.margins.base import Facts, Margin, Samples, State, check_angle, check_range, register
from arcwise.margins.continuation import combined_curve

MOMENTUM = 0.99


@register("curricularface")
@dataclass(frozen=True)
class CurricularFace(Margin):
    """ArcFace, with other classes that are too near weighed by how far training has come.  Huang et al. 2020.

    A class that is nearer than the own one with its margin is hard. Early in training hard ones are played down, later played up: t, the
    running mean of the cosines to the own centres, is the measure.

    Prefer `ArcFace` on noisy labels: there the hardest negatives are often the truth.

    Asks for: winning by m radians, against hard classes ever more.
    Take it when: labels are clean and training is long.

    Formula:
        target: s·ψ(θ_y), ψ as in ArcFace
        other classes: s·cos θ_j, or s·cos θ_j·(t + cos θ_j) where cos θ_j > ψ(θ_y)
        t ← 0.99·t + 0.01·mean cos θ_y, beginning at 0

    Args:
        m: the margin in radians, 0 ≤ m < π/2.
        hardness: how much of the reshaping of hard classes is in force, 0 to 1; 0 is ArcFace.

    Paper:
        Yuge Huang, Yuhan Wang, Ying Tai, Xiaoming Liu, Pengcheng Shen, Shaoxin Li, Jilin Li, Feiyue Huang. CurricularFace: Adaptive
        Curriculum Learning Loss for Deep Face Recognition. CVPR 2020. arXiv:2004.00288
    """

    reshapes_negatives: ClassVar[bool] = True
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.7)}

    m: float = 0.5
    hardness: float = 1.0

    def __post_init__(self) -> None:
        check_angle("m", self.m)
        check_range("hardness", self.hardness, 0, 1, "a share")

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return combined_curve(cos_B, 1.0, self.m, 0.0, "continuous")

    def negatives(self, cos: Tensor, psi: Tensor, state: State) -> tuple[Tensor, Tensor]:
        hard = cos > psi
        t, h = state["t"], self.hardness
        value = torch.where(hard, cos * (1 + h * (t + cos - 1)), cos)
        return value, torch.where(hard, 1 + h * (t + 2 * cos - 1), 1.0)

    def initial_state(self, facts: Facts) -> dict[str, Tensor]:
        return {"t": torch.tensor(0.0)}

    def observe(self, samples: Samples) -> dict[str, Tensor]:
        t = samples.state["t"]
        new = MOMENTUM * t + (1 - MOMENTUM) * samples.mean(samples.cos_B)
        return {"t": torch.where(samples.valid_B.any(), new, t)}

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m, hardness=fraction * self.hardness)

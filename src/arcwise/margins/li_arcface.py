"""Li-ArcFace: logits that are straight lines in the angle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor

from arcwise.margins.base import Margin, State, check_angle, off_the_ends, register, sine_and_angle


@register("li-arcface")
@dataclass(frozen=True)
class LiArcFace(Margin):
    """Every logit falls linearly with its angle, and the own one begins m lower.  Li et al. 2019.

    The cosine is flat near 0 and π, so its pull fades there; a straight line pulls alike at every angle and cannot turn upward.

    Prefer `ArcFace` for wide embeddings and many classes; this one was made for narrow embeddings, which are slow to converge.

    Asks for: winning by m radians, with a pull that does not fade.
    Take it when: embeddings are narrow, or training with a cosine will not start.

    Formula:
        target: s·(π − 2(θ_y + m))/π
        other classes: s·(π − 2θ_j)/π

    Args:
        m: the margin in radians, 0 ≤ m < π/2.

    Paper:
        Xianyang Li, Feng Wang, Qinghao Hu, Cong Leng. AirFace: Lightweight and Efficient Model for Face Recognition. ICCV Workshops 2019.
        arXiv:1907.12256
    """

    title: ClassVar[str] = "Li-ArcFace"
    reshapes_negatives: ClassVar[bool] = True
    becomes_norm_softmax: ClassVar[bool] = False
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.7)}

    m: float = 0.45

    def __post_init__(self) -> None:
        check_angle("m", self.m)

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        line_B, slope_B = straight_line(cos_B)
        return line_B - 2 * self.m / math.pi, slope_B

    def negatives(self, cos: Tensor, psi: Tensor, state: State) -> tuple[Tensor, Tensor]:
        return straight_line(cos.clamp(-1.0, 1.0))

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)


def straight_line(cos: Tensor) -> tuple[Tensor, Tensor]:
    """1 − 2θ/π, which goes from 1 to −1 as the cosine does, and its slope in the cosine."""
    sin, theta = sine_and_angle(cos)
    sin_off, _ = off_the_ends(cos, sin)
    return 1 - theta * (2 / math.pi), (2 / math.pi) / sin_off

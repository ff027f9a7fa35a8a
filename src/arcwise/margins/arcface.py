"""ArcFace: a margin on the angle itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor

from arcwise.margins.base import Gradient, Margin, check_angle, register
from arcwise.margins.continuation import Continuation, check_continuation, combined_curve


@register("arcface")
@dataclass(frozen=True)
class ArcFace(Margin):
    """Additive angular margin: the true class's cos θ becomes cos(θ + m).  Deng et al. 2019, eq. 3.

    The same gap in angle is asked for wherever the embedding lies: m is a distance on the sphere, the arc that must be kept free
    between a class and its neighbours.

    Prefer `CosFace` when classes are few and noisy: its demand is gentler where θ is small.

    Asks for: winning by m radians.
    Take it when: nothing speaks for another; it is the default.

    Formula:
        target: s·cos(θ_y + m)
        past θ_y = π − m: s·(cos θ_y − (1 − cos m)), which goes on falling
        other classes: s·cos θ_j

    Args:
        m: the margin in radians, 0 ≤ m < π/2.
        continuation: what happens past θ = π − m. "continuous" goes on falling as cos θ − (1 − cos m) without a jump; "classic" is the
            widely used cos θ − m·sin m, with a drop. "easy" (a margin only where cos θ > 0) and "none" (bare cos(θ + m)) are not
            monotone and exist to reproduce other people's runs.
        gradient: "exact", or "detached" to treat ψ(θ) − cos θ as a constant, as the most used training code does.

    Paper:
        Jiankang Deng, Jia Guo, Niannan Xue, Stefanos Zafeiriou. ArcFace: Additive Angular Margin Loss for Deep Face Recognition.
        CVPR 2019. arXiv:1801.07698
    """

    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.7)}

    m: float = 0.5
    continuation: Continuation = "continuous"
    gradient: Gradient = "exact"

    def __post_init__(self) -> None:
        check_angle("m", self.m)
        check_continuation(self.continuation, 1.0)
        self._check_gradient()

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return combined_curve(cos_B, 1.0, self.m, 0.0, self.continuation)

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

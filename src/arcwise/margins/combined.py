"""The combined margin: SphereFace, ArcFace and CosFace in one formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins.base import Gradient, Margin, check_angle, register
from arcwise.margins.continuation import Continuation, check_continuation, combined_curve


@register("combined")
@dataclass(frozen=True)
class CombinedMargin(Margin):
    """All three kinds at once: the true class's cos θ becomes cos(m1·θ + m2) − m3.  Deng et al. 2019, eq. 4.

    A factor on the angle, a margin on the angle and one on the cosine in a single curve. The paper's CM1 is (1, 0.3, 0.2) and its
    CM2 is (0.9, 0.4, 0.15).

    Prefer a single margin, such as `ArcFace`, unless you can afford to tune three.

    Asks for: all three margins at once.
    Take it when: you can afford to tune three numbers.

    Formula:
        target: s·(cos(m1·θ_y + m2) − m3)
        past θ* = (π − m2)/m1: s·(cos θ_y − cos θ* − 1 − m3), which goes on falling
        other classes: s·cos θ_j

    Args:
        m1: the factor on the angle, 0 < m1 ≤ 8.
        m2: the angular margin in radians, 0 ≤ m2 < π/2.
        m3: the margin on the cosine, 0 ≤ m3 < 2.
        continuation: what happens past θ* = (π − m2)/m1, as in `ArcFace`.
        gradient: "exact", or "detached" to treat ψ(θ) − cos θ as a constant.

    Paper:
        Jiankang Deng, Jia Guo, Niannan Xue, Stefanos Zafeiriou. ArcFace: Additive Angular Margin Loss for Deep Face Recognition.
        CVPR 2019. arXiv:1801.07698
    """

    title: ClassVar[str] = "combined margin"
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m1": (0.9, 1.2), "m2": (0.0, 0.5), "m3": (0.0, 0.35)}

    m1: float = 1.0
    m2: float = 0.3
    m3: float = 0.2
    continuation: Continuation = "continuous"
    gradient: Gradient = "exact"

    def __post_init__(self) -> None:
        if not 0 < self.m1 <= 8:
            raise ConfigError(f"m1 must be in (0, 8], a factor on the angle; got {self.m1:g}.")
        check_angle("m2", self.m2)
        if not 0 <= self.m3 < 2:
            raise ConfigError(f"m3 must be in [0, 2), a difference of cosines; got {self.m3:g}.")
        check_continuation(self.continuation, self.m1)
        self._check_gradient()

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return combined_curve(cos_B, self.m1, self.m2, self.m3, self.continuation)

    def at(self, fraction: float) -> Self:
        return replace(self, m1=(1 - fraction) + fraction * self.m1, m2=fraction * self.m2, m3=fraction * self.m3)

"""SphereFace: the angle is multiplied."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins.base import Gradient, Margin, off_the_ends, register, sine_and_angle


@register("sphereface")
@dataclass(frozen=True)
class SphereFace(Margin):
    """Multiplicative angular margin: cos θ becomes (−1)^k cos(m·θ) − 2k with k = ⌊m·θ/π⌋.  Liu et al. 2017, eq. 7.

    The margin grows with the angle and vanishes on the centre, so well-learnt samples feel none. The steps of −2 keep the curve
    falling each time that cos(m·θ) would turn upward.

    Prefer `ArcFace` unless an older run is to be reproduced: its demand does not vanish where it matters most, near the centre.

    Asks for: winning after the own angle was multiplied by m.
    Take it when: you reproduce an older run, or well-learnt samples should be left alone.

    Formula:
        target: s·((−1)^k cos(m·θ_y) − 2k), k = ⌊m·θ_y/π⌋
        other classes: s·cos θ_j

    Args:
        m: the factor on the angle, 1 ≤ m ≤ 8; it need not be whole.
        gradient: "exact", or "detached" to treat ψ(θ) − cos θ as a constant.

    Paper:
        Weiyang Liu, Yandong Wen, Zhiding Yu, Ming Li, Bhiksha Raj, Le Song. SphereFace: Deep Hypersphere Embedding for Face
        Recognition. CVPR 2017. arXiv:1704.08063
    """

    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (1.0, 2.5)}

    m: float = 1.35
    gradient: Gradient = "exact"

    def __post_init__(self) -> None:
        if not 1 <= self.m <= 8:
            raise ConfigError(
                f"m must be in [1, 8], a factor on the angle; got {self.m:g}. Usual values are 1.35 to 4."
            )
        self._check_gradient()

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        sin_B, theta_B = sine_and_angle(cos_B)
        k_B = torch.floor(self.m * theta_B / math.pi)
        sign_B = 1 - 2 * torch.remainder(k_B, 2)
        psi_B = sign_B * torch.cos(self.m * theta_B) - 2 * k_B
        sin_off_B, theta_off_B = off_the_ends(cos_B, sin_B)
        # (−1)^k sin(m·θ) is |sin(m·θ)|, also where rounding puts k on the wrong side.
        return psi_B, self.m * torch.sin(self.m * theta_off_B).abs() / sin_off_B

    def at(self, fraction: float) -> Self:
        return replace(self, m=(1 - fraction) + fraction * self.m)

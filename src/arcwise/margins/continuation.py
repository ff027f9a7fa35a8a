"""What the target's logit does once θ + m passes π.

cos(θ + m) turns upward there: an embedding that points away from its centre would be rewarded for turning further away. Writing it as
cos θ cos m − sin θ sin m is the same function and cures nothing.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from arcwise.errors import ConfigError, did_you_mean
from arcwise.margins.base import off_the_ends, sine_and_angle

Continuation = Literal["continuous", "classic", "easy", "none"]


def check_continuation(given: str, m1: float) -> None:
    """Refuse an unknown continuation, and `classic` where it is not defined."""
    known = get_args(Continuation)
    if given not in known:
        raise ConfigError(f"there is no continuation {given!r}. {did_you_mean(given, known)}")
    if given == "classic" and m1 != 1:
        raise ConfigError(f'continuation="classic" is defined for m1 = 1 only; got m1 = {m1:g}. Use "continuous".')


def combined_curve(
    cos_B: Tensor, m1: float, m2: float | Tensor, m3: float | Tensor, continuation: Continuation
) -> tuple[Tensor, Tensor]:
    """ψ(θ) = cos(m1·θ + m2) − m3 with the chosen continuation, and its slope dψ/dc = m1·sin(m1·θ + m2)/sin θ.

    m2 and m3 may differ from sample to sample. Where m2 is negative, cos(m1·θ + m2) would rise with the angle until m1·θ = −m2;
    the monotone continuations stay at the top there, without a slope.
    """
    sin_B, theta_B = sine_and_angle(cos_B)
    phase_B = m1 * theta_B + m2
    sin_off_B, theta_off_B = off_the_ends(cos_B, sin_B)
    slope_B = m1 * torch.sin(m1 * theta_off_B + m2) / sin_off_B
    if continuation == "none":
        return torch.cos(phase_B) - m3, slope_B
    one_B = torch.ones_like(cos_B)
    if continuation == "easy":
        return torch.where(cos_B > 0, torch.cos(phase_B) - m3, cos_B), torch.where(cos_B > 0, slope_B, one_B)
    psi_B = torch.cos(phase_B.clamp_min(0.0)) - m3
    slope_B = torch.where(phase_B < 0, 0.0, slope_B)
    # How far below cos θ − m3 the curve goes on past its turning point θ* = (π − m2)/m1.
    drop: float | Tensor
    if isinstance(m2, Tensor):
        drop = m2 * torch.sin(m2) if continuation == "classic" else torch.cos((math.pi - m2) / m1) + 1
    elif m1 * math.pi + m2 <= math.pi:  # the turning point lies at or past π
        return psi_B, slope_B
    else:
        drop = m2 * math.sin(m2) if continuation == "classic" else math.cos((math.pi - m2) / m1) + 1
    beyond_B = phase_B > math.pi
    return torch.where(beyond_B, cos_B - drop - m3, psi_B), torch.where(beyond_B, one_B, slope_B)

"""Angles from cosines, with gradients that stay finite where two directions meet or are opposite."""

from __future__ import annotations

import torch
from torch import Tensor

from arcwise.engines.unit_rows import unit_rows
from arcwise.margins.base import off_the_ends, sine_and_angle


def angle(cos: Tensor) -> Tensor:
    """θ = arccos c in radians, in float32 at least, differentiable in the cosine.

    dθ/dc = −1/sin θ has no bound at c = ±1, where automatic differentiation gives inf and then NaN. Here sin θ has a floor of √ε: nearer
    to the ends than that a cosine's rounding is larger than what it says about the angle. A cosine that rounding took past ±1 counts
    as ±1.
    """
    cos = cos.to(torch.promote_types(cos.dtype, torch.float32))
    with torch.no_grad():
        within = cos.clamp(-1.0, 1.0)
        sin, theta = sine_and_angle(within)
        slope = -1 / off_the_ends(within, sin)[0]
    # The bracket is zero: it leaves the value as it is and carries the gradient.
    return theta + slope * (cos - cos.detach())


def angle_between_rows(x_BD: Tensor, w_BD: Tensor, dtype: torch.dtype) -> Tensor:
    """(B,) the angle between each row and the one beside it. A row of zeros stands at a right angle to everything."""
    return angle((unit_rows(x_BD, dtype) * unit_rows(w_BD, dtype)).sum(dim=1))

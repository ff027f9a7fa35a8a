"""Norm-softmax: only the angle is left, and no margin is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from arcwise.margins.base import Gradient, Margin, register


@register("norm-softmax")
@dataclass(frozen=True)
class NormSoftmax(Margin):
    """No margin: the target's logit is s·cos θ like all others.  Wang et al. 2017 (NormFace), eq. 4.

    The baseline that a margin has to beat, once its scale is tuned as carefully as the margin's. Prefer it when classes overlap by
    nature, so that no gap between them can be asked for.
    """

    @property
    def gradient(self) -> Gradient:  # type: ignore[override]
        """ψ is the cosine itself: there is nothing to detach."""
        return "exact"

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return cos_B, torch.ones_like(cos_B)

    def at(self, fraction: float) -> Self:
        return self

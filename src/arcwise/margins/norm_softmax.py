"""Norm-softmax: only the angle is left, and no margin is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.margins.base import Margin, register


@register("norm-softmax")
@dataclass(frozen=True)
class NormSoftmax(Margin):
    """No margin: the target's logit is s·cos θ like all others.  Wang et al. 2017 (NormFace), eq. 4.

    Embeddings and centres are brought to length 1, so that only the angle counts. It is the baseline that a margin has to beat,
    once its scale is tuned as carefully as the margin's.

    Prefer `ArcFace` or `CosFace` when classes can be told apart at all: a gap between them is what unseen classes profit from.

    Asks for: the right class winning, by angle alone.
    Take it when: classes overlap by nature, so that no gap between them can be asked for.

    Formula:
        every class: s·cos θ_j

    Paper:
        Feng Wang, Xiang Xiang, Jian Cheng, Alan L. Yuille. NormFace: L2 Hypersphere Embedding for Face Verification.
        ACM Multimedia 2017. arXiv:1704.06369
    """

    title: ClassVar[str] = "norm-softmax"

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return cos_B, torch.ones_like(cos_B)

    def at(self, fraction: float) -> Self:
        return self

"""What a head can tell about a batch beside its loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Stats:
    """How a batch stands, measured without the margin and without gradients.

    With a margin the target's logit is lowered during training, so counting how often it is still the largest would report an
    accuracy near 0 % on a network that is learning well.

    Attributes:
        target_cosine: (B,) cosine between each embedding and its own class centre; NaN where the label is −1.
        predicted: (B,) the class with the largest plain logit.
        correct: (B,) whether that is the label; False where the label is −1.
        valid: (B,) whether the label is a class at all.
        quality: (B,) the embeddings' lengths, for margins that make a quality of them; else None.
        dropped_mass: the share of the softmax's probability that the engine left out; 0 for exact engines.
    """

    target_cosine: Tensor
    predicted: Tensor
    correct: Tensor
    valid: Tensor
    quality: Tensor | None = None
    dropped_mass: float = 0.0

    def accuracy(self) -> float:
        """The share of labelled samples whose nearest centre is their own; NaN for a batch without any."""
        count = int(self.valid.sum())
        return float(self.correct.sum()) / count if count else math.nan

    def target_angle(self) -> float:
        """The mean angle to the own centre in degrees; NaN for a batch without labelled samples."""
        return (
            float(self.target_cosine[self.valid].clamp(-1, 1).acos().rad2deg().mean())
            if bool(self.valid.any())
            else math.nan
        )

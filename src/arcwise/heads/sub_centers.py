"""Which of a class's several centres its samples gather at."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# A class remembers about its last fifty samples: centres move, and early assignments mean nothing later.
MEMORY = 0.98


class SubCenterCounts(nn.Module):
    """A fading count of the samples that lay nearest to each centre of their class.

    Attributes:
        counts: (N, K).
    """

    counts: Tensor

    def __init__(self, num_classes: int, centers_per_class: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(num_classes, centers_per_class))

    def add(self, labels_B: Tensor, center_B: Tensor) -> None:
        """Count a batch in; samples labelled −1 do not count."""
        valid_B = (labels_B >= 0).to(self.counts.dtype)
        rows_B = labels_B.clamp_min(0)
        fade_N = torch.zeros_like(self.counts[:, 0]).index_add_(0, rows_B, valid_B)
        self.counts.mul_(MEMORY ** fade_N.unsqueeze(1))
        self.counts.index_put_((rows_B, center_B), valid_B, accumulate=True)

    def dominant(self) -> Tensor:
        """(N,) the centre with the highest count; the first for a class that was never seen."""
        return self.counts.argmax(dim=1)

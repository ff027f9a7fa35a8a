"""The last layer of every backbone: from features to the embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class EmbeddingLayer(nn.Module):
    """A linear map and a batch norm, in float32 even under autocast: angles between embeddings are what everything else measures.

    The batch norm has no scale or shift of its own. With a mean of zero the embeddings cannot all turn to one side, which is how
    training with a margin collapses; and a scale would be undone by the head, or done by its weights.
    """

    def __init__(self, in_features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, dim, bias=False)
        self.norm = nn.BatchNorm1d(dim, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(device_type=x.device.type, enabled=False):
            embedding: Tensor = self.norm(self.linear(x.to(self.linear.weight.dtype)))
        return embedding

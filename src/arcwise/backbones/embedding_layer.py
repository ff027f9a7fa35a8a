"""The last layer of every backbone: from features to the embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class EmbeddingLayer(nn.Module):
    """A linear map and a batch norm, in float32 even under autocast: angles between embeddings are what everything else measures.

    The batch norm keeps the directions spread around the origin, and has its own scale and shift: a plain softmax head may want longer
    embeddings, and with unbalanced classes the mean of all embeddings should not be forced to zero.
    """

    def __init__(self, in_features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, dim, bias=False)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(device_type=x.device.type, enabled=False):
            embedding: Tensor = self.norm(self.linear(x.to(self.linear.weight.dtype)))
        return embedding

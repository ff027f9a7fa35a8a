"""VGG8 (16-32-64): the small network of the well-known picture of MNIST on the sphere."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register

WIDTHS = (16, 32, 64)


class Block(nn.Module):
    """Two 3×3 convolutions, each with batch norm and ReLU, then a 2×2 max-pool.

    The second ReLU runs after the pool. Both only ever compare, so their order does not change the result (nor any gradient), and the
    ReLU sees a quarter of the values.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu_(self.norm1(self.conv1(x)))
        return F.relu_(F.max_pool2d(self.norm2(self.conv2(x)), 2))


class VGG8(nn.Module):
    """Three blocks, then batch norm, dropout, and the embedding.

    Args:
        shape: (channels, height, width) of the pictures, at least 8×8.
        dim: the width of the embedding.
        dropout: the share of features that are dropped before the embedding in training.
    """

    def __init__(self, shape: tuple[int, ...], dim: int, *, dropout: float = 0.25) -> None:
        super().__init__()
        channels, height, width = shape
        self.blocks = nn.Sequential(*(Block(i, o) for i, o in zip((channels, *WIDTHS[:-1]), WIDTHS, strict=True)))
        self.norm = nn.BatchNorm2d(WIDTHS[-1])
        self.dropout = nn.Dropout(dropout)
        self.embedding = EmbeddingLayer(WIDTHS[-1] * (height // 8) * (width // 8), dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(self.norm(self.blocks(x)))
        embedding: Tensor = self.embedding(x.flatten(1))
        return embedding


@register("vgg8", min_size=8)
def vgg8(shape: tuple[int, ...], dim: int) -> nn.Module:
    return VGG8(shape, dim)

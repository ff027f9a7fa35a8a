"""A small residual network that learns CIFAR-10 on two CPU cores in minutes."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register

STEM = 16
WIDTHS = (48, 96, 192)


class Stage(nn.Module):
    """A convolution that widens and halves the picture, and a residual one at the new size.

    The pool comes straight after the convolution, before batch norm and ReLU, so that these see a quarter of the values.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(F.max_pool2d(self.conv1(x), 2)), inplace=True)
        return x + F.relu(self.norm2(self.conv2(x)))


class Small(nn.Module):
    """A stem, three stages (48-96-192), the maximum over positions, and the embedding.

    Args:
        shape: (channels, height, width) of the pictures, at least 8×8.
        dim: the width of the embedding.
    """

    def __init__(self, shape: tuple[int, ...], dim: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(shape[0], STEM, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(STEM)
        self.stages = nn.Sequential(*(Stage(i, o) for i, o in zip((STEM, *WIDTHS[:-1]), WIDTHS, strict=True)))
        self.embedding = EmbeddingLayer(WIDTHS[-1], dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(F.relu(self.norm(self.stem(x)), inplace=True))
        embedding: Tensor = self.embedding(x.amax(dim=(2, 3)))
        return embedding


@register("small", min_size=8)
def small(shape: tuple[int, ...], dim: int) -> nn.Module:
    return Small(shape, dim)

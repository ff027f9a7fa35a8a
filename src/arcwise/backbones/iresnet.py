"""IResNet, the network of the ArcFace paper (Deng et al. 2019, section 3.1: improved residual units, output setting E).

It ends where the last map lies: batch norm, dropout and a linear map of every position. What stands where in an aligned picture
matters for telling faces or characters apart, and a mean over positions would forget it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register

WIDTHS = (64, 128, 256, 512)
DEPTHS = {"iresnet18": (2, 2, 2, 2), "iresnet50": (3, 4, 14, 3), "iresnet100": (3, 13, 30, 3)}
# Pictures up to this side keep their size in the first stage, so that the last map is at least four pixels wide.
SMALL_SIDE = 40


class Block(nn.Module):
    """x + norm(conv(prelu(norm(conv(norm(x)))))), the second convolution with the stride; a 1×1 projection where the shape changes."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.slope = nn.Parameter(0.25 * torch.ones(out_channels))
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False), nn.BatchNorm2d(out_channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv1(self.norm1(x)))
        y = F.prelu(y, self.slope.to(y.dtype))
        result: Tensor = self.norm3(self.conv2(y)) + self.shortcut(x)
        return result


class IResNet(nn.Module):
    """A stem, four stages of residual blocks that halve the picture, and the embedding of the last map, position by position.

    Args:
        shape: (channels, height, width) of the pictures, at least 16×16; 112×112 in the paper.
        dim: the width of the embedding.
        depths: how many blocks each stage has.
        widths: how many channels.
        dropout: the share of features that are dropped before the embedding in training.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dim: int,
        *,
        depths: Sequence[int] = DEPTHS["iresnet18"],
        widths: Sequence[int] = WIDTHS,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels, height, width = shape
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        self.slope = nn.Parameter(0.25 * torch.ones(widths[0]))
        blocks: list[Block] = []
        inputs = widths[0]
        for stage, (depth, outputs) in enumerate(zip(depths, widths, strict=True)):
            stride = 1 if stage == 0 and min(height, width) <= SMALL_SIDE else 2
            height, width = -(-height // stride), -(-width // stride)
            blocks += [Block(inputs, outputs, stride), *(Block(outputs, outputs, 1) for _ in range(depth - 1))]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.last_norm = nn.BatchNorm2d(inputs)
        self.dropout = nn.Dropout(dropout)
        self.embedding = EmbeddingLayer(inputs * height * width, dim)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        for block in blocks:
            # Every block starts as the identity (Goyal et al. 2017, section 5.1).
            nn.init.zeros_(block.norm3.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x))
        x = self.blocks(F.prelu(x, self.slope.to(x.dtype)))
        embedding: Tensor = self.embedding(self.dropout(self.last_norm(x)).flatten(1))
        return embedding


@register("iresnet18", min_size=16)
def iresnet18(shape: tuple[int, ...], dim: int) -> nn.Module:
    return IResNet(shape, dim, depths=DEPTHS["iresnet18"])

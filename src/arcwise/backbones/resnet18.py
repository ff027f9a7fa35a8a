"""ResNet-18 in its form for small pictures (He et al. 2016, section 4.2 widened to 64-128-256-512): a 3×3 stem and no early pooling."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register

WIDTHS = (64, 128, 256, 512)


class Block(nn.Module):
    """The basic residual block: relu(x + norm(conv(relu(norm(conv(x)))))), with a 1×1 projection where the shape changes."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False), nn.BatchNorm2d(out_channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x), inplace=True)


class ResNet18(nn.Module):
    """Four stages of two blocks, a global mean over positions, and the embedding.

    Args:
        shape: (channels, height, width) of the pictures, at least 16×16.
        dim: the width of the embedding.
        zero_last_norm: start every block as the identity, by a zero scale in its last batch norm (Goyal et al. 2017, section 5.1).
            It helps with large batches and short schedules; off, the network starts as He et al. describe.
    """

    def __init__(self, shape: tuple[int, ...], dim: int, *, zero_last_norm: bool = True) -> None:
        super().__init__()
        self.stem = nn.Conv2d(shape[0], WIDTHS[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(WIDTHS[0])
        blocks: list[Block] = []
        width = WIDTHS[0]
        for stage, out in enumerate(WIDTHS):
            blocks += [Block(width, out, stride=1 if stage == 0 else 2), Block(out, out, stride=1)]
            width = out
        self.blocks = nn.Sequential(*blocks)
        self.embedding = EmbeddingLayer(width, dim)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if zero_last_norm:
            for block in blocks:
                nn.init.zeros_(block.norm2.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(F.relu(self.norm(self.stem(x)), inplace=True))
        embedding: Tensor = self.embedding(x.float().mean(dim=(2, 3)))
        return embedding


@register("resnet18", min_size=16)
def resnet18(shape: tuple[int, ...], dim: int) -> nn.Module:
    return ResNet18(shape, dim)

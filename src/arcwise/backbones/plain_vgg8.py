"""VGG8 in the order in which a tutorial writes it: what `VGG8` is measured against, for its result and for its speed."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from arcwise.backbones.vgg8 import VGG8, Block


class PlainVGG8(VGG8):
    """The same layers, weights and result as `VGG8`, with nothing reordered and nothing done in place."""

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            assert isinstance(block, Block)
            x = F.relu(block.norm1(block.conv1(x)))
            x = F.relu(block.norm2(block.conv2(x)))
            x = F.max_pool2d(x, 2)
        embedding: Tensor = self.embedding(self.dropout(self.norm(x)).flatten(1))
        return embedding


def build_plain_vgg8(*, shape: tuple[int, ...], dim: int) -> PlainVGG8:
    """A new plain VGG8; `build("vgg8", ...)` takes its state_dict, and the other way round."""
    return PlainVGG8(shape, dim)

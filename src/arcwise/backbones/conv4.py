"""Conv4, the plain network of the few-shot literature (Vinyals et al. 2016, section 4.1), with wider maps the smaller they get.

It ends where the last map lies: a linear map of every position. Which stroke stands where is what tells characters apart, and a mean or
maximum over positions would forget it.
"""

from __future__ import annotations

from torch import Tensor, nn

from arcwise.backbones.embedding_layer import EmbeddingLayer
from arcwise.backbones.registry import register

FIRST_WIDTH, LAST_WIDTH = 64, 256
LAST_SIDE = 4


class Conv4(nn.Module):
    """3×3 convolutions (64-128-256-256 …), each with batch norm and ReLU and halved by a max-pool until the map is 4 pixels or fewer
    on a side; one more at that size, and the embedding. Pictures of 28×28 pixels go through four of them.

    Args:
        shape: (channels, height, width) of the pictures, at least 8×8.
        dim: the width of the embedding.
    """

    def __init__(self, shape: tuple[int, ...], dim: int) -> None:
        super().__init__()
        channels, height, width = shape
        layers: list[nn.Module] = []
        maps = FIRST_WIDTH
        while max(height, width) > LAST_SIDE and min(height, width) > 1:
            # Rounded up: the last rows and columns of an odd side hold strokes too.
            layers += [*_convolution(channels, maps), nn.MaxPool2d(2, ceil_mode=True)]
            channels, maps = maps, min(2 * maps, LAST_WIDTH)
            height, width = -(-height // 2), -(-width // 2)
        self.layers = nn.Sequential(*layers, *_convolution(channels, maps))
        self.embedding = EmbeddingLayer(maps * height * width, dim)

    def forward(self, x: Tensor) -> Tensor:
        embedding: Tensor = self.embedding(self.layers(x).flatten(1))
        return embedding


def _convolution(channels: int, maps: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(channels, maps, 3, padding=1, bias=False), nn.BatchNorm2d(maps), nn.ReLU(inplace=True)


@register("conv4", min_size=8)
def conv4(shape: tuple[int, ...], dim: int) -> nn.Module:
    return Conv4(shape, dim)

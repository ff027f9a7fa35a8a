from __future__ import annotations

import torch
from torch import nn

from arcwise.backbones import ResNet18, count_parameters


def test_it_has_the_size_of_the_known_network_for_small_pictures() -> None:
    # 11,173,962 with a plain classifier of ten classes; ours ends in a linear map without bias and a batch norm without weights.
    assert count_parameters(ResNet18((3, 32, 32), 10)) == 11_173_962 - 10


def test_it_has_eighteen_layers_with_weights() -> None:
    model = ResNet18((3, 32, 32), 8)
    weighted = [m for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    projections = [m for m in weighted if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]
    assert len(weighted) - len(projections) == 18
    assert len(projections) == 3


def test_blocks_without_a_projection_start_as_the_identity() -> None:
    model = ResNet18((3, 32, 32), 8)
    x = torch.rand(2, 64, 16, 16)
    torch.testing.assert_close(model.blocks[0](x), x)
    assert not torch.allclose(ResNet18((3, 32, 32), 8, zero_last_norm=False).blocks[0](x), x)


def test_convolutions_start_with_the_spread_that_keeps_gradients_even() -> None:
    weight = ResNet18((3, 32, 32), 8).state_dict()["blocks.7.conv2.weight"]
    assert abs(weight.std().item() / (2 / (9 * 512)) ** 0.5 - 1) < 0.01

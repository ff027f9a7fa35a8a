from __future__ import annotations

import torch
from torch import nn

from arcwise.backbones import VGG8


def test_it_has_the_widths_of_the_known_network() -> None:
    convolutions = [module for module in VGG8((1, 28, 28), 3).modules() if isinstance(module, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [
        (1, 16),
        (16, 16),
        (16, 32),
        (32, 32),
        (32, 64),
        (64, 64),
    ]


def test_dropout_acts_in_training_only() -> None:
    model = VGG8((1, 28, 28), 3, dropout=0.5)
    seen: list[torch.Tensor] = []
    model.embedding.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(torch.randn(8, 1, 28, 28))
    model.eval()(torch.randn(8, 1, 28, 28))
    assert abs((seen[0] == 0).float().mean().item() - 0.5) < 0.05
    assert (seen[1] == 0).float().mean().item() < 0.01

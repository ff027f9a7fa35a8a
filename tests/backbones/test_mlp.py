from __future__ import annotations

import pytest
import torch
from torch import nn

from arcwise.backbones import MLP
from arcwise.backbones.mlp import hidden_width


@pytest.mark.parametrize(
    ("features", "width"), [(1, 128), (64, 128), (65, 256), (128, 256), (300, 1024), (512, 1024), (9000, 1024)]
)
def test_the_hidden_width_follows_the_number_of_features(features: int, width: int) -> None:
    assert hidden_width(features) == width
    linears = [module for module in MLP((features,), 3).modules() if isinstance(module, nn.Linear)]
    assert [linear.out_features for linear in linears] == [width, width, 3]


def test_the_hidden_width_can_be_given() -> None:
    assert MLP((10,), 2, hidden=7)(torch.randn(4, 10)).shape == (4, 2)

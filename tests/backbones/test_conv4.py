from __future__ import annotations

import pytest
import torch
from torch import nn

from arcwise.backbones import Conv4


@pytest.mark.parametrize(
    ("shape", "convolutions", "features"),
    [
        ((1, 28, 28), 4, 256 * 4 * 4),
        ((1, 56, 56), 5, 256 * 4 * 4),
        ((3, 8, 8), 2, 128 * 4 * 4),
        ((1, 8, 32), 4, 256 * 1 * 4),
    ],
)
def test_pictures_are_halved_to_four_pixels_or_fewer(
    shape: tuple[int, int, int], convolutions: int, features: int
) -> None:
    model = Conv4(shape, 8)
    assert sum(isinstance(module, nn.Conv2d) for module in model.modules()) == convolutions
    assert model.embedding.linear.in_features == features


def test_where_in_the_picture_a_stroke_lies_decides() -> None:
    """Unlike a maximum or a mean over positions: the same stroke elsewhere is another picture."""
    model = Conv4((1, 28, 28), 4).eval()
    picture = torch.zeros(1, 1, 28, 28)
    picture[..., 4:8, 4:8] = torch.rand(4, 4)
    with torch.no_grad():
        here, there = model(picture), model(picture.roll(8, dims=3))
    assert torch.nn.functional.cosine_similarity(here, there).item() < 0.99

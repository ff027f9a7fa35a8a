from __future__ import annotations

import pytest
import torch
from torch import nn

from arcwise.backbones import IResNet
from arcwise.backbones.iresnet import Block


@pytest.mark.parametrize(("side", "last"), [(112, 7), (56, 4), (28, 4), (16, 2)])
def test_the_last_map_is_small_and_none_of_its_positions_is_lost(side: int, last: int) -> None:
    model = IResNet((1, side, side), 8, widths=(4, 8, 16, 32))
    assert model.embedding.linear.in_features == 32 * last * last


def test_it_has_eighteen_layers_with_weights() -> None:
    weighted = [m for m in IResNet((3, 112, 112), 8).modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    projections = [m for m in weighted if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]
    assert len(weighted) - len(projections) == 18
    assert len(projections) == 4


def test_a_block_without_a_projection_starts_as_the_identity() -> None:
    model = IResNet((3, 32, 32), 8)
    block = next(
        block for block in model.blocks if isinstance(block, Block) and isinstance(block.shortcut, nn.Identity)
    )
    x = torch.rand(2, 64, 16, 16)
    torch.testing.assert_close(block(x), x)


def test_where_in_the_picture_a_stroke_lies_decides() -> None:
    """Unlike a mean over positions: the same stroke elsewhere is another picture."""
    model = IResNet((1, 64, 64), 4, widths=(8, 8, 8, 8)).eval()
    picture = torch.zeros(1, 1, 64, 64)
    picture[..., 24:32, 24:32] = torch.randn(8, 8)
    with torch.no_grad():
        here, there = model(picture), model(picture.roll(16, dims=3))
    assert torch.nn.functional.cosine_similarity(here, there).item() < 0.99

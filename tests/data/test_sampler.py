from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data import epoch_order


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 500), st.integers(0, 2**31), st.integers(0, 1000))
def test_every_row_comes_once_and_the_order_depends_on_nothing_else(num: int, seed: int, epoch: int) -> None:
    torch.rand(3)
    order = epoch_order(num, seed, epoch)
    assert order.dtype == torch.int64
    assert order.sort().values.tolist() == list(range(num))
    assert torch.equal(order, epoch_order(num, seed, epoch))


def test_epochs_and_seeds_give_different_orders() -> None:
    orders = {tuple(epoch_order(50, seed, epoch).tolist()) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


def test_drawing_an_order_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    epoch_order(100, 0, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more rows; got -1"):
        epoch_order(-1, 0, 0)

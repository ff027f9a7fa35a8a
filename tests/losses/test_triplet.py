from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.losses import AngularTripletLoss


def at(*degrees: float) -> Tensor:
    turn = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([turn.cos(), turn.sin()], dim=1)


# The anchor of class 0 at 0°, positives at 20° and 50°, negatives at −30° and −60°, each alone in its class.
X, LABELS = at(0, 20, 50, -30, -60), torch.tensor([0, 0, 0, 1, 2])
M = math.radians(25)


def test_hard_takes_the_furthest_positive_and_the_nearest_negative_of_each_anchor() -> None:
    gaps = [50 - 30 + 25, 30 - 50 + 25, 50 - 80 + 25]  # from 0°, from 20° and from 50°
    expected = math.radians(sum(max(0, gap) for gap in gaps)) / 3
    assert float(AngularTripletLoss(M, "hard")(X, LABELS)) == pytest.approx(expected)


def test_semi_hard_takes_for_each_pair_the_nearest_negative_that_is_further() -> None:
    # from 0°: (20, 30) and (50, 60); from 20°: (20, 50) and (30, 50); from 50°: (50, 80) and (30, 80)
    gaps = [20 - 30, 50 - 60, 20 - 50, 30 - 50, 50 - 80, 30 - 80]
    expected = math.radians(sum(max(0, gap + 25) for gap in gaps)) / 6
    assert float(AngularTripletLoss(M, "semi-hard")(X, LABELS)) == pytest.approx(expected)


def test_semi_hard_leaves_a_pair_out_whose_negatives_are_all_nearer() -> None:
    x, labels = at(0, 90, 10), torch.tensor([0, 0, 1])
    # from 0° the only negative is at 10°, nearer than the positive; from 90° at 80°, nearer as well.
    assert float(AngularTripletLoss(0.5, "semi-hard")(x, labels)) == 0
    assert float(AngularTripletLoss(0.5, "hard")(x, labels)) > 1


def test_what_is_far_enough_apart_is_left_in_peace() -> None:
    x, labels = at(0, 1, 90, 91).requires_grad_(), torch.tensor([0, 0, 1, 1])
    for mining in ("hard", "semi-hard", "all"):
        value = AngularTripletLoss(0.5, mining)(x, labels)
        (dx,) = torch.autograd.grad(value, x)
        assert float(value.detach()) == 0
        assert torch.equal(dx, torch.zeros(4, 2, dtype=torch.float64))


def test_a_margin_in_degrees_and_an_unknown_mining_are_named() -> None:
    with pytest.raises(ConfigError, match=r"m must be in \[0, π/2\) radians; got 20\. If that is in degrees"):
        AngularTripletLoss(20)
    with pytest.raises(ConfigError, match=r"mining cannot be 'semihard'\. Did you mean semi-hard\?"):
        AngularTripletLoss(mining="semihard")  # type: ignore[arg-type]

from __future__ import annotations

import math

import pytest
import torch

from arcwise.errors import ConfigError
from arcwise.losses import InterLoss


def test_two_opposite_centres_are_as_far_apart_as_can_be() -> None:
    w = torch.tensor([[1.0, 0.0], [-2.0, 0.0]])
    assert float(InterLoss()(torch.ones(1, 2), torch.tensor([0]), w)) == pytest.approx(-1)
    assert float(InterLoss()(torch.ones(1, 2), torch.tensor([0]), w.abs())) == 0


def test_over_the_batch_each_sample_stands_for_its_class() -> None:
    """Equation 6 of the paper: −1/(πB(N − 1)) Σ_i Σ_{j ≠ y_i} θ(w_{y_i}, w_j)."""
    w = torch.randn(6, 3, dtype=torch.float64)
    labels = torch.tensor([4, 4, 1, -1])
    w_hat = w / w.norm(dim=1, keepdim=True)
    expected = -sum(float(torch.acos(w_hat[y] @ w_hat[j])) for y in (4, 4, 1) for j in range(6) if j != y)
    value = InterLoss(over="batch")(torch.randn(4, 3, dtype=torch.float64), labels, w)
    assert float(value) == pytest.approx(expected / (math.pi * 3 * 5))


def test_where_every_class_is_as_frequent_the_two_are_the_same() -> None:
    w, x, labels = torch.randn(6, 3), torch.randn(12, 3), torch.arange(12) % 6
    torch.testing.assert_close(InterLoss("batch")(x, labels, w), InterLoss("classes")(x, labels, w))


def test_following_it_spreads_centres_over_the_sphere() -> None:
    w = (torch.tensor([[1.0, 0.0, 0.0]]) + 0.1 * torch.randn(4, 3)).requires_grad_()
    optimiser = torch.optim.Adam([w], lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        InterLoss()(torch.ones(1, 3), torch.tensor([0]), w).backward()
        optimiser.step()
    w_hat = torch.nn.functional.normalize(w.detach())
    assert float((w_hat @ w_hat.T).fill_diagonal_(-1).max()) < 0.2


def test_what_cannot_be_averaged_over_is_named() -> None:
    with pytest.raises(ConfigError, match=r"over cannot be 'class'\. Did you mean classes\?"):
        InterLoss("class")  # type: ignore[arg-type]

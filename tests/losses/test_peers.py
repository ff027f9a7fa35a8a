"""Side by side with pytorch-metric-learning, which has two of the terms, where it is right and where it is known not to be."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from arcwise.losses import CircleLoss, ProxyAnchorLoss

peers: Any = pytest.importorskip(
    "pytorch_metric_learning.losses",
    reason="pytorch-metric-learning is not installed, so there is no peer to compare with",
)


def both(ours: Any, theirs: Any, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The two gradients of the embeddings, once the values have been seen to agree."""
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    value, expected = ours(mine, labels), theirs(other, labels)
    torch.testing.assert_close(value, expected)
    value.backward()
    expected.backward()
    assert mine.grad is not None
    assert other.grad is not None
    return mine.grad, other.grad


@pytest.mark.parametrize(("gamma", "m"), [(80.0, 0.25), (80.0, 0.4), (16.0, 0.1)])
def test_circle_agrees_in_value_and_gradient(gamma: float, m: float) -> None:
    x, labels = torch.randn(20, 6, dtype=torch.float64), torch.arange(20) % 5
    torch.testing.assert_close(*both(CircleLoss(gamma, m), peers.CircleLoss(m, gamma), x, labels))


@pytest.mark.parametrize(("alpha", "delta"), [(32.0, 0.1), (8.0, 0.0)])
def test_proxy_anchor_agrees_in_value_and_both_gradients(alpha: float, delta: float) -> None:
    ours, theirs = ProxyAnchorLoss(6, 7, alpha, delta).double(), peers.ProxyAnchorLoss(7, 6, delta, alpha).double()
    theirs.proxies.data = ours.proxies.data.clone()
    x, labels = torch.randn(20, 6, dtype=torch.float64), torch.arange(20) % 5  # two classes without samples
    torch.testing.assert_close(*both(ours, theirs, x, labels))
    torch.testing.assert_close(ours.proxies.grad, theirs.proxies.grad)


def test_where_the_peer_casts_its_proxies_for_good_ours_stay() -> None:
    ours, theirs = ProxyAnchorLoss(4, 3), peers.ProxyAnchorLoss(3, 4)
    x, labels = torch.randn(6, 4, dtype=torch.bfloat16), torch.arange(6) % 3
    ours(x, labels)
    theirs(x, labels)
    assert theirs.proxies.dtype == torch.bfloat16
    assert ours.proxies.dtype == torch.float32

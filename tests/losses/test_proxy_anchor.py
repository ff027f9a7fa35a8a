from __future__ import annotations

import pytest
import torch

from arcwise.errors import ConfigError
from arcwise.losses import ProxyAnchorLoss


def test_the_hardest_samples_of_a_class_get_the_strongest_pull() -> None:
    term = ProxyAnchorLoss(2, 2)
    with torch.no_grad():
        term.proxies.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
    x = torch.tensor([[0.9, 0.4], [0.1, 0.9]], requires_grad=True)
    (dx,) = torch.autograd.grad(term(x, torch.tensor([0, 0])), x)
    assert dx[1].norm() > 10 * dx[0].norm()


def test_a_class_without_samples_in_the_batch_still_pushes_the_others_away() -> None:
    term = ProxyAnchorLoss(3, 4)
    x, labels = torch.randn(5, 3), torch.tensor([0, 0, 1, -1, 1])
    (dp,) = torch.autograd.grad(term(x, labels), term.proxies)
    assert (dp[2:].norm(dim=1) > 0).all()


def test_parameters_out_of_range_are_named() -> None:
    for arguments, message in (
        ({"alpha": -1.0}, r"alpha must be a positive number; got -1\. The paper uses 32"),
        ({"delta": 1.5}, r"delta must be in \[0, 1\), a difference of cosines; got 1\.5\. The paper uses 0\.1"),
    ):
        with pytest.raises(ConfigError, match=message):
            ProxyAnchorLoss(3, 4, **arguments)

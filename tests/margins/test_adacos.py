from __future__ import annotations

import math

import pytest
import torch

import arcwise
from arcwise.heads import MarginHead


def seen(head: MarginHead, x: torch.Tensor, labels: torch.Tensor, steps: int) -> MarginHead:
    for _ in range(steps):
        loss = head(x, labels)
        loss.backward()
    return head


def test_the_scale_shrinks_as_the_samples_come_near_their_centres() -> None:
    head = MarginHead(64, 1000, arcwise.AdaCos())
    begun, labels = head.scale, torch.arange(32)
    seen(head, head.weight[labels].detach(), labels, 5)
    assert begun == pytest.approx(math.sqrt(2) * math.log(999))
    assert math.log(999) < head.scale < 1.2 * math.log(999)


def test_scale_and_gradients_stay_finite_where_other_centres_are_nearer_than_the_own_ones() -> None:
    """The paper's recursion multiplies the scale by √2 a step there."""
    head = MarginHead(8, 100, arcwise.AdaCos())
    labels = torch.arange(16)
    with torch.no_grad():
        head.weight.fill_(1.0)[labels] *= -1.0
    x = torch.ones(16, 8) + 0.01 * torch.randn(16, 8)
    x.requires_grad_()
    seen(head, x, labels, 300)
    assert head.scale == 64
    assert x.grad is not None
    assert head.weight.grad is not None
    assert x.grad.isfinite().all()
    assert head.weight.grad.isfinite().all()


def test_a_fixed_scale_never_moves() -> None:
    head = MarginHead(8, 10, arcwise.AdaCos(dynamic=False))
    seen(head, torch.randn(16, 8), torch.arange(16) % 10, 3)
    assert head.scale == pytest.approx(math.sqrt(2) * math.log(9))

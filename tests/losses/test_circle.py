from __future__ import annotations

import math

import pytest
import torch

from arcwise.engines.unit_rows import unit_rows
from arcwise.errors import ConfigError
from arcwise.losses import CircleLoss


def test_the_gradient_is_that_of_equations_10_and_11() -> None:
    """With Z = 1 − exp(−L): dL/ds_n = Z·softmax_n(γ(s_n² − m²))·γ(s_n + m), dL/ds_p = Z·softmax_p(γ((s_p − 1)² − m²))·γ(s_p − 1 − m)."""
    gamma, m = 12.0, 0.25
    x = torch.randn(6, 4, dtype=torch.float64)
    x += 1.5  # so that all cosines are above −m, where no weight is cut off
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    cos = (unit_rows(x) @ unit_rows(x).T).tolist()
    assert min(map(min, cos)) > -m
    weight = [[0.0] * 6 for _ in range(6)]  # dL/ds of every ordered pair
    for a in range(6):
        within = [i for i in range(6) if i != a and labels[i] == labels[a]]
        between = [i for i in range(6) if labels[i] != labels[a]]
        e_n = {i: math.exp(gamma * (cos[a][i] ** 2 - m**2)) for i in between}
        e_p = {i: math.exp(gamma * ((cos[a][i] - 1) ** 2 - m**2)) for i in within}
        z = 1 - 1 / (1 + sum(e_n.values()) * sum(e_p.values()))
        for i in between:
            weight[a][i] = z * e_n[i] / sum(e_n.values()) * gamma * (cos[a][i] + m) / 6
        for i in within:
            weight[a][i] = z * e_p[i] / sum(e_p.values()) * gamma * (cos[a][i] - 1 - m) / 6
    x = x.requires_grad_()
    (ours,) = torch.autograd.grad(CircleLoss(gamma, m)(x, labels), x)
    (paper,) = torch.autograd.grad(
        (torch.tensor(weight, dtype=torch.float64) * (unit_rows(x) @ unit_rows(x).T)).sum(), x
    )
    torch.testing.assert_close(ours, paper)
    (exact,) = torch.autograd.grad(CircleLoss(gamma, m, gradient="exact")(x, labels), x)
    assert not torch.allclose(ours, exact)


def test_both_gradients_belong_to_one_value() -> None:
    x, labels = torch.randn(9, 3), torch.arange(9) % 3
    assert torch.equal(CircleLoss(gradient="exact")(x, labels), CircleLoss()(x, labels))


def test_large_exponents_do_not_overflow() -> None:
    x, labels = torch.randn(9, 3).requires_grad_(), torch.arange(9) % 3
    value = CircleLoss(gamma=1e4)(x, labels)
    (dx,) = torch.autograd.grad(value, x)
    assert value > 1000
    assert dx.isfinite().all()


def test_parameters_out_of_range_are_named() -> None:
    for arguments, message in (
        ({"gamma": 0.0}, r"gamma must be a positive number; got 0\. The paper uses 80 to 256"),
        ({"m": 1.0}, r"m must be in \[0, 1\), a difference of cosines; got 1\. The paper uses 0\.25"),
        ({"gradient": "detach"}, r"gradient cannot be 'detach'\. Did you mean detached\?"),
    ):
        with pytest.raises(ConfigError, match=message):
            CircleLoss(**arguments)

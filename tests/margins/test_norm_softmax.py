from __future__ import annotations

import torch

from arcwise.margins import NormSoftmax


def test_the_target_is_the_cosine_itself_with_slope_one() -> None:
    cos = torch.linspace(-1, 1, 101, requires_grad=True)
    psi = NormSoftmax().target(cos)
    psi.sum().backward()
    assert torch.equal(psi, cos)
    assert cos.grad is not None
    assert torch.equal(cos.grad, torch.ones(101))


def test_every_fraction_of_no_margin_is_no_margin() -> None:
    assert NormSoftmax().at(0.3) == NormSoftmax()
    assert NormSoftmax().gradient == "exact"
    assert NormSoftmax().parameters() == {}

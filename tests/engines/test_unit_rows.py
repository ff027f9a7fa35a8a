from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.engines.unit_rows import unit_rows


@given(seed=st.integers(0, 2**31), exponent=st.integers(-300, 300))
@settings(deadline=None, max_examples=60)
def test_every_row_has_length_one_and_its_direction(seed: int, exponent: int) -> None:
    x = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    unit = unit_rows(10.0**exponent * x)
    assert unit.norm(dim=1).tolist() == pytest.approx([1] * 5, abs=1e-14)
    torch.testing.assert_close(unit, torch.nn.functional.normalize(x, dim=1))


def test_the_gradient_is_the_jacobian_of_the_normalisation() -> None:
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit_rows, (x,))
    upstream = torch.randn(4, 5, dtype=torch.float64)
    (dx,) = torch.autograd.grad(unit_rows(x), x, upstream)
    for row, g, d in zip(x.tolist(), upstream.tolist(), dx.tolist(), strict=True):
        norm = math.sqrt(sum(a * a for a in row))
        x_hat = [a / norm for a in row]
        along = sum(a * b for a, b in zip(g, x_hat, strict=True))
        expected = [(g_k - along * x_k) / norm for g_k, x_k in zip(g, x_hat, strict=True)]
        assert d == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_normalised_in_float32(dtype: torch.dtype) -> None:
    x = torch.randn(3, 600).to(dtype)
    unit = unit_rows(x)
    assert unit.dtype == torch.float32
    torch.testing.assert_close(unit.double(), torch.nn.functional.normalize(x.double(), dim=1), rtol=0, atol=1e-6)


def test_a_row_whose_squares_do_not_fit_the_dtype_is_normalised_all_the_same() -> None:
    for length in (1e-30, 1e30):
        torch.testing.assert_close(unit_rows(torch.tensor([[3 * length, 4 * length]])), torch.tensor([[0.6, 0.8]]))
    denormal = unit_rows(torch.tensor([[3e-40, 4e-40]]))
    torch.testing.assert_close(denormal, torch.tensor([[0.6, 0.8]]), rtol=0, atol=1e-4)
    smallest = torch.tensor([[6e-8, 0.0]], dtype=torch.float16)
    assert smallest[0, 0] > 0
    assert torch.equal(unit_rows(smallest), torch.tensor([[1.0, 0.0]]))


def test_a_row_of_zeros_stays_zero_and_gets_no_gradient() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    unit = unit_rows(x)
    unit.sum().backward()
    assert torch.equal(unit, torch.zeros(2, 3))
    assert x.grad is not None
    assert torch.equal(x.grad, torch.zeros(2, 3))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_not_finite_is_not_passed_off_as_one_that_is(value: float) -> None:
    x = torch.tensor([[1.0, value, 2.0], [1.0, 0.0, 0.0]], requires_grad=True)
    unit = unit_rows(x)
    unit[:, 0].sum().backward()
    assert not unit[0].isfinite().any()
    assert torch.equal(unit[1], torch.tensor([1.0, 0.0, 0.0]))
    assert x.grad is not None
    assert not x.grad[0].isfinite().any()


def test_a_very_short_row_gets_the_largest_gradient_that_its_dtype_holds() -> None:
    x = torch.tensor([[6e-8, 0.0]], dtype=torch.float16, requires_grad=True)
    unit_rows(x).backward(torch.tensor([[0.0, 1.0]]))
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 65504.0]]


def test_a_gradient_too_large_for_float16_overflows_so_that_a_gradient_scaler_sees_it() -> None:
    x = torch.tensor([[2.0, 0.0]], dtype=torch.float16, requires_grad=True)
    unit_rows(x).backward(torch.tensor([[0.0, 1e6]]))
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, math.inf]]


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    (dx,) = torch.autograd.grad(unit_rows(x)[:, 0].pow(3).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_an_empty_batch_stays_empty() -> None:
    assert unit_rows(torch.zeros(0, 3)).shape == (0, 3)


def test_the_row_itself_is_left_as_it_is() -> None:
    x = torch.randn(3, 4)
    before = x.clone()
    unit_rows(x)
    assert torch.equal(x, before)

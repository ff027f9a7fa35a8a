from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arcwise.losses.angles import angle, angle_between_rows


@given(st.floats(-1, 1))
def test_it_is_the_angle_whose_cosine_is_given(c: float) -> None:
    assert float(angle(torch.tensor(c, dtype=torch.float64))) == pytest.approx(math.acos(c), abs=1e-7)


def test_the_two_ends_are_exact_and_rounding_past_them_counts_as_the_end() -> None:
    cos = torch.tensor([1.0, 1 + 1e-6, -1.0, -1 - 1e-6])
    assert angle(cos).tolist() == pytest.approx([0, 0, math.pi, math.pi], abs=1e-7)


def test_the_gradient_is_minus_one_over_the_sine() -> None:
    cos = torch.linspace(-0.99, 0.99, 41, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(angle, (cos,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_the_gradient_is_finite_at_the_ends_where_that_of_acos_is_not(dtype: torch.dtype) -> None:
    cos = torch.tensor([1.0, -1.0], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(angle(cos).sum(), cos)
    (naive,) = torch.autograd.grad(torch.acos(cos).sum(), cos)
    assert slope.isfinite().all()
    assert (slope < 0).all()
    assert not naive.isfinite().any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_taken_to_float32(dtype: torch.dtype) -> None:
    cos = torch.tensor([0.25, -0.5], dtype=dtype)
    assert angle(cos).dtype == torch.float32
    torch.testing.assert_close(angle(cos), torch.acos(cos.float()))


def test_nan_is_not_passed_off_as_an_angle() -> None:
    assert angle(torch.tensor([torch.nan])).isnan().all()


def test_rows_are_compared_with_the_ones_beside_them_whatever_their_lengths() -> None:
    x, w = torch.tensor([[2.0, 0.0], [0.0, 0.1], [0.0, 0.0]]), torch.tensor([[5.0, 5.0], [0.0, -7.0], [1.0, 0.0]])
    assert angle_between_rows(x, w, torch.float64).tolist() == pytest.approx([math.pi / 4, math.pi, math.pi / 2])

"""What every registered margin must do. A new margin joins by registering itself."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.margins import Margin, NormSoftmax, build, margin_class, names

every_margin = pytest.mark.parametrize("name", names())
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
GRID = torch.linspace(0, math.pi, 20_001, dtype=torch.float64)


def variants(name: str) -> list[Margin]:
    """The margin with its defaults, and with each gradient and continuation that it offers."""
    margins = [build(name)]
    parameters = margins[0].parameters()
    if "gradient" in parameters:
        margins.append(build(name, gradient="detached"))
    if "continuation" in parameters:
        margins += [build(name, continuation=c) for c in ("classic", "easy", "none")]
    return margins


def strengths(name: str) -> st.SearchStrategy[Margin]:
    """The margin at any fraction of its default strength: each is a margin that somebody may use."""
    return st.floats(0, 1).map(build(name).at)


def value_and_slope(margin: Margin, cos_B: Tensor) -> tuple[Tensor, Tensor]:
    cos_B = cos_B.clone().requires_grad_()
    psi_B = margin.target(cos_B)
    (slope_B,) = torch.autograd.grad(psi_B.sum(), cos_B)
    return psi_B.detach(), slope_B


@every_margin
def test_it_is_a_frozen_dataclass_whose_parameters_build_it_again(name: str) -> None:
    for margin in variants(name):
        assert build(name, **margin.parameters()) == margin
        assert margin.name == name
        assert type(margin) is margin_class(name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            margin.anything = 1  # type: ignore[attr-defined]


@every_margin
def test_it_says_what_it_is_when_to_prefer_another_and_where_it_comes_from(name: str) -> None:
    text = margin_class(name).__doc__ or ""
    assert "Prefer" in text
    assert " et al. " in text
    for parameter in build(name).parameters():
        assert f"    {parameter}: " in text


@every_margin
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_the_target_never_rises_with_the_angle(name: str, data: st.DataObject) -> None:
    margin = data.draw(strengths(name))
    rise = margin.target(GRID.cos()).diff().max()
    assert rise <= 1e-12


@every_margin
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_the_target_never_jumps(name: str, data: st.DataObject) -> None:
    margin = data.draw(strengths(name))
    step = float(GRID[1])
    assert margin.target(GRID.cos()).diff().abs().max() <= 10 * step


@every_margin
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_the_target_is_never_above_the_plain_cosine(name: str, data: st.DataObject) -> None:
    margin = data.draw(strengths(name))
    without = GRID.cos() if margin.becomes_norm_softmax else margin.at(0.0).target(GRID.cos())
    assert (margin.target(GRID.cos()) - without).max() <= 1e-12


@every_margin
def test_the_slope_is_that_of_finite_differences(name: str) -> None:
    """In float64, by central differences in the cosine, away from the ends and from the few places where the slope jumps."""
    for margin in variants(name):
        if margin.gradient == "detached":
            continue
        cos_B, h = torch.linspace(-0.99, 0.99, 4001, dtype=torch.float64), 1e-6
        _, slope_B = value_and_slope(margin, cos_B)
        numeric_B = (margin.target(cos_B + h) - margin.target(cos_B - h)) / (2 * h)
        off_B = (slope_B - numeric_B).abs() > 1e-6 * numeric_B.abs().clamp_min(1)
        assert int(off_B.sum()) <= 4, margin


@every_margin
def test_gradcheck_passes_away_from_the_turning_point(name: str) -> None:
    for margin in variants(name):
        if margin.gradient == "exact":
            cos_B = torch.tensor([0.95, 0.6, 0.31, 0.07], dtype=torch.float64, requires_grad=True)
            assert torch.autograd.gradcheck(margin.target, (cos_B,))


@every_margin
def test_a_detached_slope_is_exactly_one(name: str) -> None:
    for margin in variants(name):
        if margin.gradient == "detached":
            psi_B, slope_B = value_and_slope(margin, GRID.cos())
            assert torch.equal(slope_B, torch.ones_like(GRID))
            assert torch.equal(psi_B, build(name).target(GRID.cos()))


@every_margin
@every_dtype
def test_value_and_slope_are_finite_at_the_ends_whatever_the_dtype(name: str, dtype: torch.dtype) -> None:
    angles = [0.0, 1e-6, 1e-3, 0.5, math.pi / 2, math.pi - 0.5, math.pi - 1e-3, math.pi - 1e-6, math.pi]
    cos_B = torch.tensor(angles, dtype=torch.float64).cos().to(dtype)
    cos_B = torch.cat([cos_B, torch.tensor([1.001, -1.001], dtype=torch.float64).to(dtype)])
    for margin in variants(name):
        psi_B, slope_B = value_and_slope(margin, cos_B)
        assert psi_B.dtype == torch.promote_types(dtype, torch.float32)
        assert slope_B.dtype == dtype
        assert psi_B.isfinite().all()
        assert slope_B.isfinite().all()


@every_margin
@every_dtype
def test_the_work_is_done_in_float32_at_least(name: str, dtype: torch.dtype) -> None:
    cos_B = torch.linspace(-1, 1, 101, dtype=torch.float64).to(dtype)
    for margin in variants(name):
        wide_B = cos_B.to(torch.promote_types(dtype, torch.float32))
        assert torch.equal(margin.target(cos_B), margin.target(wide_B))


@every_margin
def test_the_ends_are_as_exact_in_float32_as_in_float64(name: str) -> None:
    """No ε creeps into the value at c = 1: a floor on the sine would show at 1e-4."""
    for margin in variants(name):
        ends = torch.tensor([1.0, -1.0])
        difference = margin.target(ends).double() - margin.target(ends.double())
        assert difference.abs().max() <= 1e-6


@every_margin
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_no_strength_at_all_is_norm_softmax(name: str, data: st.DataObject) -> None:
    if not build(name).becomes_norm_softmax:
        pytest.skip(f"{name} without a margin is a loss of its own kind")
    cos_B = torch.tensor(data.draw(st.lists(st.floats(-1, 1), min_size=1)), dtype=torch.float64)
    psi_B, slope_B = value_and_slope(build(name).at(0.0), cos_B)
    expected_B, one_B = value_and_slope(NormSoftmax(), cos_B)
    torch.testing.assert_close(psi_B, expected_B, rtol=0, atol=1e-15)
    torch.testing.assert_close(slope_B, one_B, rtol=0, atol=1e-7)


@every_margin
def test_full_strength_is_the_margin_itself(name: str) -> None:
    for margin in variants(name):
        assert margin.at(1.0) == margin


@every_margin
def test_a_fraction_keeps_everything_but_the_strength(name: str) -> None:
    for margin in variants(name):
        half = margin.at(0.5)
        assert type(half) is type(margin)
        words = {key: value for key, value in margin.parameters().items() if isinstance(value, str)}
        assert words.items() <= half.parameters().items()


@every_margin
@given(data=st.data())
@settings(deadline=None, max_examples=15)
def test_more_strength_never_asks_for_less(name: str, data: st.DataObject) -> None:
    """Up to the turning point of the stronger one: past it the continuations cross."""
    low, high = sorted(data.draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
    margin = build(name)
    cos_B = torch.linspace(0, 1, 501, dtype=torch.float64)
    assert (margin.at(high).target(cos_B) - margin.at(low).target(cos_B)).max() <= 1e-12


@every_margin
def test_the_shape_of_the_input_is_kept(name: str) -> None:
    margin = build(name)
    for shape in [(), (0,), (3,), (3, 1)]:
        assert margin.target(torch.zeros(shape)).shape == shape


@every_margin
def test_a_parameter_out_of_range_is_refused_in_a_sentence(name: str) -> None:
    numbers = [key for key, value in build(name).parameters().items() if isinstance(value, float)]
    for key in numbers:
        for value in (-1.0, 1e7, math.nan):
            arguments: dict[str, Any] = {key: value}
            with pytest.raises(ValueError, match=rf"^{key} must be in .*; got "):
                build(name, **arguments)

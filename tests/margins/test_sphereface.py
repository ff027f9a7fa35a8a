from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.errors import ConfigError
from arcwise.margins import SphereFace

ANGLES = [math.pi * i / 1000 for i in range(1001)]
EVERY = pytest.mark.parametrize("m", [1.0, 1.35, 2.0, 3.0, 4.0, 7.5])


def targets(m: float, angles: list[float]) -> list[float]:
    cosines = torch.tensor([math.cos(theta) for theta in angles], dtype=torch.float64)
    return [float(psi) for psi in SphereFace(m).target(cosines)]


def paper(theta: float, m: float) -> float:
    """Liu et al. 2017, eq. 7: (−1)^k cos(mθ) − 2k for θ in [kπ/m, (k+1)π/m]."""
    k = 0
    while theta > (k + 1) * math.pi / m:
        k += 1
    return (1 - 2 * (k % 2)) * math.cos(m * theta) - 2 * k


@EVERY
def test_the_target_is_the_papers_formula_for_whole_and_for_real_m(m: float) -> None:
    assert targets(m, ANGLES) == pytest.approx([paper(theta, m) for theta in ANGLES], abs=1e-10)


def test_it_starts_as_the_chebyshev_polynomials_of_the_original_code() -> None:
    for theta in ANGLES:
        c = math.cos(theta)
        if theta < math.pi / 2:
            assert targets(2, [theta]) == pytest.approx([2 * c**2 - 1], abs=1e-12)
        if theta < math.pi / 4:
            assert targets(4, [theta]) == pytest.approx([8 * c**4 - 8 * c**2 + 1], abs=1e-12)


@EVERY
def test_it_ends_at_one_minus_twice_m_where_m_is_whole(m: float) -> None:
    if m == int(m):
        assert targets(m, [math.pi]) == pytest.approx([1 - 2 * m], abs=1e-12)


@given(m=st.floats(1, 8))
@settings(deadline=None, max_examples=60)
def test_the_target_never_rises_and_never_jumps(m: float) -> None:
    psi = targets(m, ANGLES)
    steps = [after - before for before, after in itertools.pairwise(psi)]
    assert max(steps) <= 1e-10
    assert min(steps) >= -m * math.pi / 1000 - 1e-10


@EVERY
def test_the_value_on_the_centre_is_exactly_one(m: float) -> None:
    assert float(SphereFace(m).target(torch.ones(1))) == 1.0


@EVERY
def test_the_slope_is_m_times_the_ratio_of_sines_and_never_negative(m: float) -> None:
    cosines = torch.tensor([math.cos(theta) for theta in ANGLES[1:-1]], dtype=torch.float64, requires_grad=True)
    SphereFace(m).target(cosines).sum().backward()
    expected = [m * abs(math.sin(m * theta)) / math.sin(theta) for theta in ANGLES[1:-1]]
    assert cosines.grad is not None
    assert cosines.grad.tolist() == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert cosines.grad.min() >= 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_slope_takes_its_limit_m_squared_on_the_centre(dtype: torch.dtype) -> None:
    for m in (1.0, 1.35, 4.0):
        _, slope = SphereFace(m).curve(torch.ones(1, dtype=dtype))
        assert float(slope) == pytest.approx(m**2, rel=1e-5)


@given(m=st.floats(1, 8))
@settings(deadline=None, max_examples=60)
def test_full_strength_is_exactly_the_margin_itself(m: float) -> None:
    assert SphereFace(m).at(1.0) == SphereFace(m)
    assert SphereFace(m).at(0.0) == SphereFace(1.0)


@pytest.mark.parametrize("m", [0.9, 8.1, math.nan, -4])
def test_a_factor_out_of_range_is_refused(m: float) -> None:
    with pytest.raises(ConfigError) as error:
        SphereFace(m)
    assert str(error.value) == f"m must be in [1, 8], a factor on the angle; got {m:g}. Usual values are 1.35 to 4."

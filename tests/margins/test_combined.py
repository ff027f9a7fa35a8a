from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.errors import ConfigError
from arcwise.margins import ArcFace, CombinedMargin, CosFace

ANGLES = [math.pi * i / 1000 for i in range(1001)]
PAPER_MARGINS = {
    "CM1": (1.0, 0.3, 0.2),
    "CM2": (0.9, 0.4, 0.15),
    "ArcFace": (1.0, 0.5, 0.0),
    "CosFace": (1.0, 0.0, 0.35),
}
OTHERS = {"turning early": (2.0, 0.2, 0.1), "never turning": (0.5, 0.1, 0.3), "nothing": (1.0, 0.0, 0.0)}
EVERY = pytest.mark.parametrize("m", [*PAPER_MARGINS.values(), *OTHERS.values()], ids=[*PAPER_MARGINS, *OTHERS])
m1s, m2s, m3s = st.floats(0.1, 4), st.floats(0, 1.57), st.floats(0, 1.9)


def targets(margin: CombinedMargin, angles: list[float]) -> list[float]:
    cosines = torch.tensor([math.cos(theta) for theta in angles], dtype=torch.float64)
    return [float(psi) for psi in margin.target(cosines)]


def paper(theta: float, m1: float, m2: float, m3: float) -> float:
    """Deng et al. 2019, eq. 4: the own class's logit is s·(cos(m1·θ + m2) − m3)."""
    return math.cos(m1 * theta + m2) - m3


def turning_point(m1: float, m2: float) -> float:
    return (math.pi - m2) / m1


@EVERY
def test_the_target_is_the_papers_formula_up_to_the_turning_point(m: tuple[float, float, float]) -> None:
    angles = [theta for theta in ANGLES if theta <= turning_point(m[0], m[1])]
    assert targets(CombinedMargin(*m), angles) == pytest.approx([paper(theta, *m) for theta in angles], abs=1e-12)


@EVERY
def test_continuous_goes_on_falling_with_the_cosine_past_the_turning_point(m: tuple[float, float, float]) -> None:
    star = turning_point(m[0], m[1])
    angles = [theta for theta in ANGLES if theta > star]
    expected = [math.cos(theta) - math.cos(star) - 1 - m[2] for theta in angles]
    assert targets(CombinedMargin(*m), angles) == pytest.approx(expected, abs=1e-12)


def test_cm2_passes_its_turning_point_before_the_angle_reaches_pi() -> None:
    star = turning_point(0.9, 0.4)
    assert star < math.pi
    assert targets(CombinedMargin(0.9, 0.4, 0.15), [math.pi]) == pytest.approx([-1 - math.cos(star) - 1 - 0.15])


def test_classic_subtracts_m2_sin_m2_past_the_turning_point_where_m1_is_one() -> None:
    m2, m3 = 0.3, 0.2
    expected = [
        paper(theta, 1, m2, m3) if theta + m2 <= math.pi else math.cos(theta) - m2 * math.sin(m2) - m3
        for theta in ANGLES
    ]
    assert targets(CombinedMargin(1.0, m2, m3, continuation="classic"), ANGLES) == pytest.approx(expected, abs=1e-12)


@EVERY
def test_easy_asks_for_a_margin_only_on_the_near_side(m: tuple[float, float, float]) -> None:
    expected = [paper(theta, *m) if math.cos(theta) > 0 else math.cos(theta) for theta in ANGLES]
    assert targets(CombinedMargin(*m, continuation="easy"), ANGLES) == pytest.approx(expected, abs=1e-12)


@EVERY
def test_none_is_the_bare_formula_of_the_paper(m: tuple[float, float, float]) -> None:
    expected = [paper(theta, *m) for theta in ANGLES]
    assert targets(CombinedMargin(*m, continuation="none"), ANGLES) == pytest.approx(expected, abs=1e-12)


@given(m1=m1s, m2=m2s, m3=m3s)
@settings(deadline=None, max_examples=60)
def test_the_target_never_rises_with_the_angle(m1: float, m2: float, m3: float) -> None:
    psi = targets(CombinedMargin(m1, m2, m3), ANGLES)
    assert max(after - before for before, after in itertools.pairwise(psi)) <= 1e-12


@given(m1=m1s, m2=m2s, m3=m3s)
@settings(deadline=None, max_examples=60)
def test_the_target_meets_itself_at_the_turning_point(m1: float, m2: float, m3: float) -> None:
    star = turning_point(m1, m2)
    if 1e-3 < star < math.pi - 1e-3:
        before, after = targets(CombinedMargin(m1, m2, m3), [star - 1e-8, star + 1e-8])
        assert before == pytest.approx(-1 - m3, abs=1e-7)
        assert after == pytest.approx(-1 - m3, abs=1e-7)


@pytest.mark.parametrize("m", [PAPER_MARGINS["CM1"], PAPER_MARGINS["CM2"]])
def test_none_rises_again_past_the_turning_point(m: tuple[float, float, float]) -> None:
    psi = targets(CombinedMargin(*m, continuation="none"), ANGLES)
    assert psi[-1] > min(psi) + 1e-4


@pytest.mark.parametrize("m", [PAPER_MARGINS["CM1"], PAPER_MARGINS["CM2"]])
def test_easy_rises_where_the_margin_ends(m: tuple[float, float, float]) -> None:
    before, after = targets(CombinedMargin(*m, continuation="easy"), [math.pi / 2 - 1e-9, math.pi / 2 + 1e-9])
    assert after > before + 0.1


@EVERY
def test_the_slope_is_m1_times_the_ratio_of_sines(m: tuple[float, float, float]) -> None:
    angles = [theta for theta in ANGLES[1:-1] if theta < turning_point(m[0], m[1]) - 1e-6]
    cosines = torch.tensor([math.cos(theta) for theta in angles], dtype=torch.float64, requires_grad=True)
    CombinedMargin(*m).target(cosines).sum().backward()
    expected = [m[0] * math.sin(m[0] * theta + m[1]) / math.sin(theta) for theta in angles]
    assert cosines.grad is not None
    assert cosines.grad.tolist() == pytest.approx(expected, rel=1e-8)


@given(m=st.floats(0, 1.57))
@settings(deadline=None, max_examples=20)
def test_it_is_arcface_when_only_m2_is_given(m: float) -> None:
    cos = torch.linspace(-1, 1, 999, dtype=torch.float64)
    assert torch.equal(CombinedMargin(1.0, m, 0.0).target(cos), ArcFace(m).target(cos))


@given(m=st.floats(0, 1.9))
@settings(deadline=None, max_examples=20)
def test_it_is_cosface_in_value_and_slope_when_only_m3_is_given(m: float) -> None:
    cos = torch.linspace(-1, 1, 999, dtype=torch.float64)
    for ours, theirs in zip(CombinedMargin(1.0, 0.0, m).curve(cos), CosFace(m).curve(cos), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)


@given(m1=st.floats(0.01, 8), m2=m2s, m3=m3s)
@settings(deadline=None, max_examples=60)
def test_full_strength_is_exactly_the_margin_itself(m1: float, m2: float, m3: float) -> None:
    margin = CombinedMargin(m1, m2, m3)
    assert margin.at(1.0) == margin
    assert margin.at(0.0) == CombinedMargin(1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.3, 0.2), "m1 must be in (0, 8], a factor on the angle; got 0."),
        ((9.0, 0.3, 0.2), "m1 must be in (0, 8], a factor on the angle; got 9."),
        ((1.0, -0.3, 0.2), "m2 must be in [0, π/2) radians; got -0.3."),
        ((1.0, 0.3, 2.0), "m3 must be in [0, 2), a difference of cosines; got 2."),
        ((1.0, 0.3, -0.1), "m3 must be in [0, 2), a difference of cosines; got -0.1."),
    ],
)
def test_a_margin_out_of_range_is_refused(arguments: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        CombinedMargin(*arguments)
    assert str(error.value) == message


def test_classic_is_refused_where_it_is_not_defined() -> None:
    with pytest.raises(ConfigError) as error:
        CombinedMargin(0.9, 0.4, 0.15, continuation="classic")
    assert str(error.value) == ('continuation="classic" is defined for m1 = 1 only; got m1 = 0.9. Use "continuous".')

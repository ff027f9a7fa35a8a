from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.margins import ArcFace

ANGLES = [math.pi * i / 1000 for i in range(1001)]
MARGINS = [0.0, 0.1, 0.3, 0.5, 1.0, 1.5]


def targets(margin: ArcFace, angles: list[float]) -> list[float]:
    cosines = torch.tensor([math.cos(theta) for theta in angles], dtype=torch.float64)
    return [float(psi) for psi in margin.target(cosines)]


def paper(theta: float, m: float) -> float:
    """Deng et al. 2019, eq. 3: the own class's logit is s·cos(θ + m)."""
    return math.cos(theta + m)


@pytest.mark.parametrize("m", MARGINS)
def test_the_target_is_cos_of_the_angle_plus_m_up_to_the_turning_point(m: float) -> None:
    angles = [theta for theta in ANGLES if theta <= math.pi - m]
    assert targets(ArcFace(m), angles) == pytest.approx([paper(theta, m) for theta in angles], abs=1e-12)


@pytest.mark.parametrize("m", MARGINS)
def test_continuous_goes_on_falling_with_the_cosine_past_the_turning_point(m: float) -> None:
    angles = [theta for theta in ANGLES if theta > math.pi - m]
    expected = [math.cos(theta) - (1 - math.cos(m)) for theta in angles]
    assert targets(ArcFace(m), angles) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("m", MARGINS)
def test_classic_subtracts_m_sin_m_past_the_turning_point(m: float) -> None:
    expected = [paper(theta, m) if theta <= math.pi - m else math.cos(theta) - m * math.sin(m) for theta in ANGLES]
    assert targets(ArcFace(m, continuation="classic"), ANGLES) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("m", MARGINS)
def test_easy_asks_for_a_margin_only_on_the_near_side(m: float) -> None:
    expected = [paper(theta, m) if math.cos(theta) > 0 else math.cos(theta) for theta in ANGLES]
    assert targets(ArcFace(m, continuation="easy"), ANGLES) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("m", MARGINS)
def test_none_is_the_bare_formula_of_the_paper(m: float) -> None:
    expected = [paper(theta, m) for theta in ANGLES]
    assert targets(ArcFace(m, continuation="none"), ANGLES) == pytest.approx(expected, abs=1e-12)


@given(m=st.floats(0, 1.57))
@settings(deadline=None, max_examples=40)
def test_continuous_meets_minus_one_from_both_sides_of_the_turning_point(m: float) -> None:
    near = targets(ArcFace(m), [math.pi - m - 1e-7, min(math.pi, math.pi - m + 1e-7)])
    assert near == pytest.approx([-1, -1], abs=2e-7)


def test_classic_drops_from_minus_one_to_minus_1_117_at_m_one_half() -> None:
    turning = math.pi - 0.5
    before, after = targets(ArcFace(0.5, continuation="classic"), [turning - 1e-9, turning + 1e-9])
    assert before == pytest.approx(-1, abs=1e-8)
    assert after == pytest.approx(-1.117, abs=5e-4)


@pytest.mark.parametrize("continuation", ["continuous", "classic"])
@given(m=st.floats(0, 1.57))
@settings(deadline=None, max_examples=40)
def test_the_target_never_rises_with_the_angle(continuation: str, m: float) -> None:
    psi = targets(ArcFace(m, continuation=continuation), ANGLES)  # type: ignore[arg-type]
    assert max(after - before for before, after in itertools.pairwise(psi)) <= 1e-12


@pytest.mark.parametrize("continuation", ["easy", "none"])
@given(m=st.floats(0.05, 1.57))
@settings(deadline=None, max_examples=40)
def test_easy_and_none_reward_some_embeddings_for_turning_away(continuation: str, m: float) -> None:
    psi = targets(ArcFace(m, continuation=continuation), ANGLES)  # type: ignore[arg-type]
    assert max(after - before for before, after in itertools.pairwise(psi)) > 1e-6


def test_an_embedding_that_points_away_is_not_credited_with_more_than_the_bare_formula_leaves_it() -> None:
    """At cos θ = −0.99 the bare formula gives −0.936, above the −1 of an embedding that is better placed."""
    cos = torch.tensor([-0.99], dtype=torch.float64)
    assert float(ArcFace(0.5, continuation="none").target(cos)) == pytest.approx(-0.936, abs=5e-4)
    assert float(ArcFace(0.5).target(cos)) == pytest.approx(-0.99 - (1 - math.cos(0.5)), abs=1e-12)


@pytest.mark.parametrize("m", MARGINS)
def test_the_value_on_the_centre_is_exactly_cos_m(m: float) -> None:
    assert float(ArcFace(m).target(torch.ones(1, dtype=torch.float64))) == pytest.approx(math.cos(m), abs=2e-16)
    assert float(ArcFace(m).target(torch.ones(1))) == pytest.approx(math.cos(m), abs=6e-8)


@pytest.mark.parametrize("m", MARGINS)
def test_the_slope_is_sin_of_the_angle_plus_m_over_sin_of_the_angle(m: float) -> None:
    angles = [theta for theta in ANGLES[1:-1] if theta < math.pi - m - 1e-6]
    cosines = torch.tensor([math.cos(theta) for theta in angles], dtype=torch.float64, requires_grad=True)
    ArcFace(m).target(cosines).sum().backward()
    expected = [math.sin(theta + m) / math.sin(theta) for theta in angles]
    assert cosines.grad is not None
    assert cosines.grad.tolist() == pytest.approx(expected, rel=1e-9)


def test_the_slope_jumps_from_zero_to_one_at_the_turning_point() -> None:
    turning = math.pi - 0.5
    cosines = torch.tensor([math.cos(turning - 1e-6), math.cos(turning + 1e-6)], dtype=torch.float64)
    _, (before, after) = ArcFace(0.5).curve(cosines)
    assert float(before) == pytest.approx(0, abs=1e-5)
    assert float(after) == 1.0


def test_an_unknown_continuation_says_did_you_mean() -> None:
    with pytest.raises(ValueError, match="continuation") as error:
        ArcFace(0.5, continuation="continous")  # type: ignore[arg-type]
    assert str(error.value) == (
        "there is no continuation 'continous'. Did you mean continuous? Known: continuous, classic, easy, none."
    )

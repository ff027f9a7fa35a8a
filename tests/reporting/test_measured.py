from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise.reporting.measured import deviation, mean, spread_between_seeds, standing, units_of
from arcwise.reporting.reading import Column

ACCURACY = Column("accuracy", "accuracy", "%", "higher")
ANGLE = Column("own_angle", "angle", "°", "lower")

finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=2, max_size=8))
def test_mean_and_deviation_agree_with_the_standard_library(values: list[float]) -> None:
    assert mean(values) == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert deviation(values) == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)


def test_one_seed_has_no_deviation() -> None:
    assert deviation([0.9]) is None
    assert spread_between_seeds([0.9], [0.8, 0.7]) is None


def test_fractions_are_printed_as_percent_and_angles_in_degrees() -> None:
    assert units_of(ACCURACY).over_seeds([0.99, 0.98]) == "98.50 ± 0.71 %"
    assert units_of(ANGLE).over_seeds([4.87]) == "4.9°"
    assert units_of(ACCURACY).difference(-0.0017) == "0.17 percentage points"


def test_a_rounded_zero_has_no_sign() -> None:
    assert units_of(ACCURACY).bare(-0.000001) == "0.00"


def test_the_smaller_angle_is_the_better_one() -> None:
    ranked = standing(ANGLE, {"softmax": {"own_angle": [12.0]}, "arcface": {"own_angle": [5.0]}})
    assert [place.loss for place in ranked.places] == ["arcface", "softmax"]
    assert [place.loss for place in ranked.best] == ["arcface"]


def test_means_that_print_the_same_share_the_first_place() -> None:
    ranked = standing(ACCURACY, {"softmax": {"accuracy": [0.990001]}, "arcface": {"accuracy": [0.990002]}})
    assert {place.loss for place in ranked.best} == {"softmax", "arcface"}
    assert ranked.runner_up is None


def test_a_column_without_a_better_end_has_no_best() -> None:
    ranked = standing(Column("x", "x", "", ""), {"a": {"x": [1.0]}, "b": {"x": [2.0]}})
    assert ranked.best == ()


def test_a_loss_without_the_value_is_named_as_unmeasured() -> None:
    ranked = standing(ACCURACY, {"softmax": {}, "arcface": {"accuracy": [0.9]}})
    assert ranked.unmeasured == ("softmax",)
    assert ranked.place_of("softmax") is None

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from arcwise.engines import Stats


def stats(cosines: list[float], correct: list[bool], valid: list[bool]) -> Stats:
    return Stats(
        target_cosine=torch.tensor(cosines, dtype=torch.float64),
        predicted=torch.zeros(len(cosines), dtype=torch.long),
        correct=torch.tensor(correct),
        valid=torch.tensor(valid),
    )


def test_accuracy_and_angle_are_means_over_the_labelled_samples() -> None:
    batch = stats([1.0, 0.0, math.nan, 0.5], [True, False, False, True], [True, True, False, True])
    assert batch.accuracy() == pytest.approx(2 / 3)
    assert batch.target_angle() == pytest.approx((0 + 90 + 60) / 3)


def test_a_cosine_that_rounding_put_past_one_has_an_angle_of_zero() -> None:
    assert stats([1.0 + 1e-7], [True], [True]).target_angle() == 0.0


def test_without_labelled_samples_both_are_nan() -> None:
    for batch in (stats([math.nan], [False], [False]), stats([], [], [])):
        assert math.isnan(batch.accuracy())
        assert math.isnan(batch.target_angle())


def test_stats_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats([1.0], [True], [True]).dropped_mass = 0.5  # type: ignore[misc]

from __future__ import annotations

import json
import math

import pytest
import torch

from arcwise.training.learning_curve import LearningCurve


def filled(losses: list[float], accuracy: float = 0.5, window: int = 80) -> LearningCurve:
    curve = LearningCurve(window)
    for loss in losses:
        curve.add(loss, accuracy, 32)
    return curve


def test_there_is_no_summary_before_the_window_is_full() -> None:
    assert filled([1.0] * 79).summary() is None
    assert filled([1.0] * 80).summary() is not None


def test_the_summary_is_of_the_last_window_and_its_loss_of_the_newest_quarter() -> None:
    window = filled([9.0] * 80 + [2.0] * 60 + [1.0] * 20).summary()
    assert window is not None
    assert (window.length, window.loss, window.accuracy) == (80, 1.0, 0.5)
    assert (window.num_right, window.num_samples) == (80 * 16, 80 * 32)


def test_a_look_is_worth_it_whenever_an_eighth_of_the_window_is_full() -> None:
    curve = LearningCurve(80)
    assert [step for step in range(1, 41) if curve.add(1.0, 0.5, 32)] == [10, 20, 30, 40]


@pytest.mark.parametrize(("slope", "falling"), [(-0.01, True), (0.0, False), (0.01, False)])
def test_a_slope_is_told_from_noise(slope: float, falling: bool) -> None:
    noise = torch.randn(160, generator=torch.Generator().manual_seed(1)).tolist()
    window = filled([3.0 + slope * step + 0.1 * noise[step] for step in range(160)]).summary()
    assert window is not None
    assert window.is_falling is falling


def test_steps_under_a_changing_objective_start_the_window_anew() -> None:
    curve = filled([1.0] * 75)
    assert not curve.add(1.0, 0.5, 32, settled=False)
    for _ in range(79):
        curve.add(1.0, 0.5, 32)
    assert curve.summary() is None


def test_explosion_needs_every_recent_loss_and_a_rise_only_the_last() -> None:
    calm, once, all_of_them = filled([2.0] * 20), filled([2.0] * 20 + [1e6]), filled([2.0] * 20 + [1e6] * 10)
    assert [curve.has_risen(2.0) for curve in (calm, once, all_of_them)] == [False, True, True]
    assert [curve.exploded(2.0) for curve in (calm, once, all_of_them)] == [False, False, True]
    assert once.recent_loss() == 2.0
    assert once.last_loss == 1e6
    assert once.first_loss == 2.0


def test_an_empty_curve_has_no_losses() -> None:
    curve = LearningCurve(100)
    assert math.isnan(curve.recent_loss())
    assert math.isnan(curve.last_loss)
    assert curve.summary() is None


def test_a_restored_curve_goes_on_as_if_never_saved() -> None:
    losses = torch.rand(300, generator=torch.Generator().manual_seed(0)).tolist()
    for cut in (0, 5, 133, 240):
        first, second = filled(losses[:cut]), LearningCurve(80)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for loss in losses[cut:]:
            second.add(loss, 0.5, 32)
        assert second.state_dict() == filled(losses).state_dict()
        assert second.summary() == filled(losses).summary()

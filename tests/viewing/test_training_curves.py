"""Training curves show what metrics.jsonl says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style
from arcwise.viewing.training_curves import running_mean, series, training_figure


def test_a_running_mean_leaves_a_straight_line_straight_inside_and_a_constant_alone() -> None:
    line = np.arange(500.0)
    np.testing.assert_allclose(running_mean(line)[10:-10], line[10:-10])
    np.testing.assert_allclose(running_mean(np.full(40, 3.0)), 3.0)
    assert len(running_mean(np.ones(2))) == 2


def test_values_that_are_missing_or_not_finite_are_not_drawn() -> None:
    rows: list[dict[str, Any]] = [
        {"epoch": 1, "loss": 2.0},
        {"epoch": 2, "loss": float("nan")},
        {"epoch": 3},
        {"epoch": 4, "loss": 1.0},
    ]
    x, y = series(rows, "loss")
    np.testing.assert_array_equal(x, [1, 4])
    np.testing.assert_array_equal(y, [2, 1])


def test_the_test_accuracy_of_each_epoch_is_a_point(drawn_run: Path) -> None:
    run = Run(drawn_run)
    with house_style():
        _, accuracy, angle = training_figure(run).axes
    for axes, key in ((accuracy, "test_accuracy"), (angle, "test_angle")):
        points = axes.get_lines()[-1]
        np.testing.assert_allclose(np.asarray(points.get_ydata()), [row[key] for row in run.epochs])
        low, high = axes.get_ylim()
        assert low <= min(np.asarray(points.get_ydata()))
        assert max(np.asarray(points.get_ydata())) <= high


def test_a_run_of_epochs_without_steps_is_drawn_too(tmp_path: Path) -> None:
    rows = [{"kind": "epoch", "epoch": epoch, "loss": 1 / epoch, "accuracy": 0.9} for epoch in (1, 2, 3)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with house_style():
        loss = training_figure(Run(tmp_path)).axes[0]
    np.testing.assert_allclose(np.asarray(loss.get_lines()[0].get_ydata()), [1, 1 / 2, 1 / 3])


def test_a_run_without_metrics_has_no_training_curves(tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match="no steps and no epochs"):
        training_figure(Run(tmp_path))

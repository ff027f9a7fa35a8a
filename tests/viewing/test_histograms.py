"""Angle histograms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arcwise.viewing.histograms import angles_figure, angles_of
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style


def evaluation(path: Path, **verification: Any) -> Run:
    (path / "evaluation.json").write_text(json.dumps({"verification": verification}))
    return Run(path)


def test_each_kind_of_pair_fills_the_same_area(drawn_run: Path) -> None:
    angles = angles_of(Run(drawn_run))
    widths = np.diff(angles.edges)
    assert (angles.genuine * widths).sum() == pytest.approx(1)
    assert (angles.impostor * widths).sum() == pytest.approx(1)


def test_the_threshold_is_drawn_where_it_lies_and_named(drawn_run: Path) -> None:
    run = Run(drawn_run)
    threshold = run.evaluation["verification"]["threshold_degrees"]
    with house_style():
        axes = angles_figure(run).axes[0]
    assert any(np.allclose(line.get_xdata(), threshold) for line in axes.get_lines())
    assert any(f"threshold {threshold:.1f}°" in text.get_text() for text in axes.texts)


def test_a_run_without_a_usable_histogram_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match="no verification histogram"):
        angles_of(evaluation(tmp_path, eer=0.1))
    with pytest.raises(LeftOut, match="not one of angles"):
        angles_of(evaluation(tmp_path, histogram={"degrees": [0, 90], "genuine": [1, 2], "impostor": [3]}))
    with pytest.raises(LeftOut, match="no pairs"):
        angles_of(evaluation(tmp_path, histogram={"degrees": [0, 90], "genuine": [0], "impostor": [0]}))

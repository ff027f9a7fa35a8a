"""Confusion matrices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from arcwise.viewing.confusion import confusion_figure, confusion_of
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style


def with_matrix(path: Path, matrix: object) -> Run:
    (path / "evaluation.json").write_text(json.dumps({"confusion": matrix}))
    return Run(path)


def test_each_count_that_is_not_zero_is_written_in_its_cell(tmp_path: Path) -> None:
    with house_style():
        axes = confusion_figure(with_matrix(tmp_path, [[7, 2], [0, 9]])).axes[0]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(0, 0): "7", (1, 0): "2", (1, 1): "9"}


def test_more_than_twenty_classes_become_a_heat_map_without_numbers(tmp_path: Path) -> None:
    with house_style():
        axes = confusion_figure(with_matrix(tmp_path, np.eye(21, dtype=int).tolist())).axes[0]
    assert not axes.texts


def test_predictions_stand_in_where_the_matrix_was_not_stored(drawn_run: Path, tmp_path: Path) -> None:
    stored = confusion_of(Run(drawn_run))
    (tmp_path / "embeddings").symlink_to(drawn_run / "embeddings")
    np.testing.assert_array_equal(confusion_of(Run(tmp_path)), stored)


def test_something_else_than_a_square_of_counts_is_left_out(tmp_path: Path) -> None:
    for matrix in ([[1, 2]], [["a"]], [[0, 0], [0, 0]], "no"):
        with pytest.raises(LeftOut, match="confusion matrix"):
            confusion_of(with_matrix(tmp_path, matrix))

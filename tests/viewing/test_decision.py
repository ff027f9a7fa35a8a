"""Decision regions in two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arcwise import margins
from arcwise.viewing.decision import borders, decision_figure, regions
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import house_style

RIGHT_AND_UP = np.array([[1.0, 0.0], [0.0, 1.0]])


def test_the_band_of_arcface_between_two_classes_is_as_wide_as_its_margin() -> None:
    angle = np.linspace(0, np.pi / 2, 9001)
    nearest, satisfied = regions(angle, RIGHT_AND_UP, margins.build("arcface", m=0.3))
    band = angle[~satisfied]
    assert band[-1] - band[0] == pytest.approx(0.3, abs=1e-3)
    assert (band[0] + band[-1]) / 2 == pytest.approx(np.pi / 4, abs=1e-3)
    np.testing.assert_array_equal(nearest, (angle > np.pi / 4).astype(int))


def test_without_a_margin_there_is_no_band() -> None:
    angle = np.linspace(0, np.pi / 2, 1000)
    assert regions(angle, RIGHT_AND_UP, margins.build("norm-softmax"))[1].all()


def test_borders_lie_half_way_between_neighbours() -> None:
    np.testing.assert_allclose(np.mod(borders(RIGHT_AND_UP), 2 * np.pi), [np.pi / 4, 5 * np.pi / 4])


def test_wider_embeddings_have_no_decision_picture(drawn_run: Path) -> None:
    with pytest.raises(LeftOut, match="two dimensions; these embeddings have 3"):
        decision_figure(Run(drawn_run))


def test_softmax_says_that_its_bias_is_not_in_the_picture(tmp_path: Path, make_run: Callable[..., Path]) -> None:
    run = Run(make_run(tmp_path / "run", loss="softmax", dim=2, num_epochs=1, num_samples=100, num_final=200))
    with house_style():
        words = " ".join(text.get_text() for text in decision_figure(run).texts).replace("\n", " ")
    assert "The bias is not stored" in words

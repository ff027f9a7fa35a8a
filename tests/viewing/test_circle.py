"""The circle."""

from __future__ import annotations

import numpy as np
import pytest

from arcwise.viewing.circle import HILL_FOOT, HILL_HEIGHT, NUM_BINS, CirclePanel, densities
from arcwise.viewing.panel import Cast
from arcwise.viewing.run_folder import Array
from arcwise.viewing.style import house_style, new_figure


def around(degrees: list[float]) -> Array:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_a_density_counts_each_class_as_one_whole_and_peaks_where_the_samples_are() -> None:
    labels = np.array([0, 0, 0, 1])
    density = densities(around([90, 90, 90, 200]), labels, 3)
    np.testing.assert_allclose(density.sum(axis=1), [1, 1, 0], atol=1e-3)
    assert density[0].argmax() * 360 / NUM_BINS == pytest.approx(90, abs=1)
    assert density[1].argmax() * 360 / NUM_BINS == pytest.approx(200, abs=1)


def test_a_hill_across_the_zero_angle_is_whole_and_no_higher_than_its_room() -> None:
    points = around([359.0, 0.5, 1.0, 2.0])
    with house_style():
        axes = new_figure(5, 5, title="").add_subplot()
        panel = CirclePanel(axes, Cast(np.zeros(4, dtype=np.int64), ("a",)), inches=4, reference_MD=points)
        panel.show(points, points[:1])
        outline = np.asarray(panel._hills[0].get_xy())
    radius = np.linalg.norm(outline, axis=1)
    assert radius.max() <= HILL_FOOT + HILL_HEIGHT + 1e-6
    assert radius.min() >= HILL_FOOT - 1e-6
    assert outline[:, 0].min() > 0.8

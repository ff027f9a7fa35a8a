"""Directions move along great circles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from arcwise.viewing.interpolation import along_great_circles
from arcwise.viewing.run_folder import Array, unit

CLOUDS = hnp.arrays(np.float32, (5, 4), elements=st.floats(-1, 1, width=32))


@given(CLOUDS, CLOUDS, st.floats(0, 1))
def test_the_way_stays_on_the_sphere_and_the_angle_grows_evenly(start: Array, end: Array, share: float) -> None:
    usable = (np.linalg.norm(start, axis=1) > 0.1) & (np.linalg.norm(end, axis=1) > 0.1)
    start, end = unit(start[usable]), unit(end[usable])
    moved = along_great_circles(start, end, share)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, atol=2e-3)
    whole = np.arccos(np.clip((start * end).sum(axis=1), -1, 1))
    passed = np.arccos(np.clip((start * moved).sum(axis=1), -1, 1))
    np.testing.assert_allclose(passed, share * whole, atol=0.05)


def test_the_ends_are_the_snapshots_themselves() -> None:
    generator = np.random.default_rng(0)
    start, end = (unit(generator.normal(size=(50, 3)).astype(np.float32)) for _ in range(2))
    np.testing.assert_allclose(along_great_circles(start, end, 0.0), start, atol=1e-6)
    np.testing.assert_allclose(along_great_circles(start, end, 1.0), end, atol=1e-6)


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_opposite_directions_go_over_the_side_and_not_through_the_middle(dim: int) -> None:
    start = unit(np.ones((1, dim), dtype=np.float32))
    middle = along_great_circles(start, -start, 0.5)
    assert np.linalg.norm(middle) == pytest.approx(1, abs=1e-5)
    assert float((middle * start).sum()) == pytest.approx(0, abs=1e-5)


def test_a_vector_without_direction_stays_finite() -> None:
    zero, one = np.zeros((1, 3), dtype=np.float32), np.array([[0, 0, 1]], dtype=np.float32)
    np.testing.assert_allclose(along_great_circles(zero, one, 0.25), [[0, 0, 0.25]])

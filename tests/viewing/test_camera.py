"""The orthographic camera."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise.viewing.camera import Camera, best_view

ANGLES = st.floats(-720, 720)


@given(ANGLES, ANGLES)
def test_a_camera_only_turns_things(azimuth: float, elevation: float) -> None:
    rotation = Camera(azimuth, elevation).rotation
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(rotation) == pytest.approx(1)


def test_what_lies_towards_the_eye_has_positive_depth_and_falls_on_the_middle() -> None:
    picture = Camera(0, 0).project(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32))
    np.testing.assert_allclose(picture, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-7)


def test_the_best_view_keeps_centres_apart_on_the_picture() -> None:
    centres = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=np.float32)
    picture = best_view(centres).project(centres)[:, :2]
    gaps = np.linalg.norm(picture[:, None] - picture[None], axis=-1) + 9 * np.eye(6)
    assert gaps.min() > 0.5
    assert best_view(centres) == best_view(centres)


def test_the_best_view_of_two_classes_does_not_hide_one_behind_the_other() -> None:
    centres = np.array([[0.6, 0.8, 0], [-0.6, -0.8, 0]], dtype=np.float32)
    picture = best_view(centres).project(centres)[:, :2]
    assert np.linalg.norm(picture[0] - picture[1]) > 1.5

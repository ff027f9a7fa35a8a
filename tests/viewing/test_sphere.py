"""The sphere: what is drawn lies where it should."""

from __future__ import annotations

import numpy as np

from arcwise.viewing.camera import Camera
from arcwise.viewing.panel import Cast, arrow_polygons
from arcwise.viewing.sphere import SpherePanel
from arcwise.viewing.style import house_style, new_figure

FRONT = Camera(0, 0)
POINTS = np.array([[1, 0, 0], [0.6, 0.8, 0], [-0.6, 0, 0.8], [-1, 0, 0]], dtype=np.float32)


def panel() -> SpherePanel:
    figure = new_figure(5, 5, title="")
    return SpherePanel(figure.add_subplot(), Cast(np.array([0, 1, 1, 0]), ("a", "b")), inches=4)


def test_near_samples_are_drawn_at_their_projection_in_full_colour_and_far_ones_pale_and_small() -> None:
    with house_style():
        sphere = panel()
        sphere.show(POINTS, POINTS[:2], FRONT)
        near, far = sphere._near_points, sphere._far_points
        np.testing.assert_allclose(np.array(near.get_offsets(), dtype=float), [[0.8, 0.0], [0.0, 0.0]], atol=1e-6)
        np.testing.assert_allclose(np.array(far.get_offsets(), dtype=float), [[0.0, 0.0], [0.0, 0.8]], atol=1e-6)
        np.testing.assert_allclose(np.asarray(near.get_facecolor())[:, :3], sphere.cast.colours[[1, 0]])
        assert (np.asarray(far.get_facecolor())[:, :3] > sphere.cast.colours[[0, 1]]).any(axis=1).all()
        assert np.asarray(far.get_sizes()).max() < np.asarray(near.get_sizes()).min()


def test_showing_twice_moves_the_same_artists() -> None:
    with house_style():
        sphere = panel()
        sphere.show(POINTS, POINTS[:2], FRONT)
        before = len(sphere.axes.get_children())
        sphere.show(-POINTS, -POINTS[:2], FRONT.turned(40))
        assert len(sphere.axes.get_children()) == before


def test_a_label_moves_a_little_when_its_centre_does() -> None:
    with house_style():
        sphere = panel()
        places = []
        for angle in np.linspace(0, np.pi, 400):
            centre = np.array([[np.cos(angle), np.sin(angle) * 0.02, np.sin(angle)]], dtype=np.float32)
            sphere.show(POINTS, np.concatenate([centre, -centre]), FRONT)
            places.append(sphere.tags[0].get_position())
        steps = np.linalg.norm(np.diff(np.array(places), axis=0), axis=1)
        assert steps.max() < 0.06


def test_arrows_end_at_their_tips_and_one_without_length_is_nothing() -> None:
    long, none = arrow_polygons(np.array([[0.6, 0.8], [0.0, 0.0]]))
    np.testing.assert_allclose(long[3], [0.6, 0.8])
    assert np.ptp(none, axis=0).max() == 0

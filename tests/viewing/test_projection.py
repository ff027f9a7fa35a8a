"""Projections of wide embeddings say what they are."""

from __future__ import annotations

import numpy as np
import pytest

from arcwise.viewing.projection import Projection, extent_of
from arcwise.viewing.run_folder import Array, Labels, unit


def clusters(centres: Array, spread: float, each: int = 40) -> tuple[Array, Labels]:
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(centres)), each)
    noise = generator.normal(size=(len(labels), centres.shape[1])).astype(np.float32)
    return unit(centres[labels] + spread * noise), labels


def test_the_share_is_that_of_the_principal_components() -> None:
    generator = np.random.default_rng(1)
    points = (generator.normal(size=(3000, 6)) * np.array([5, 4, 1, 1, 1, 1])).astype(np.float32)
    projection = Projection.fit(points, np.zeros(3000, dtype=np.int64))
    variance = points.var(axis=0, dtype=np.float64)
    assert not projection.is_fan
    assert projection.share == pytest.approx(variance[:2].sum() / variance.sum(), abs=0.01)
    assert projection.share == projection.best_share
    assert "PCA" in projection.describe(6, "vectors")


def test_classes_at_equal_angles_are_fanned_out_instead_of_piled_up() -> None:
    points, labels = clusters(np.eye(8, 32, dtype=np.float32), 0.02)
    projection = Projection.fit(points, labels)
    means = np.stack([projection(points[labels == index]).mean(axis=0) for index in range(8)])
    gaps = np.linalg.norm(means[:, None] - means[None], axis=-1) + 9 * np.eye(8)
    assert projection.is_fan
    assert gaps.min() > 0.3
    assert 0.9 * projection.best_share < projection.share <= projection.best_share
    assert "fan the classes out" in projection.describe(32, "vectors")


def test_a_plane_that_shows_much_more_is_preferred_to_the_fan() -> None:
    points, labels = clusters(np.eye(6, 16, dtype=np.float32), 0.0)
    wide = np.random.default_rng(2).normal(size=(120, 2)).astype(np.float32)
    points = points * 0.1
    # In mirrored pairs, so that the variance within the classes says nothing about where they stand.
    points[0::2, 14:], points[1::2, 14:] = wide, -wide
    projection = Projection.fit(points, labels)
    assert not projection.is_fan
    assert projection.share > 0.95


def test_the_basis_is_orthonormal_and_the_origin_is_where_zero_goes() -> None:
    points, labels = clusters(np.eye(5, 12, dtype=np.float32), 0.1)
    projection = Projection.fit(points, labels)
    np.testing.assert_allclose(projection.basis.T @ projection.basis, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(projection(np.zeros((1, 12), dtype=np.float32))[0], projection.origin, atol=1e-9)


def test_the_frame_holds_all_that_is_drawn() -> None:
    points, labels = clusters(np.eye(5, 12, dtype=np.float32), 0.3)
    projection = Projection.fit(points, labels)
    assert np.abs(projection(points)).max() <= extent_of(projection, points)


def test_points_that_are_all_the_same_do_not_break_it() -> None:
    points = np.ones((10, 4), dtype=np.float32)
    projection = Projection.fit(points, np.arange(10) % 5)
    assert projection.share == pytest.approx(0, abs=1e-6)
    assert np.isfinite(projection(points)).all()

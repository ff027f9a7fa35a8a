from __future__ import annotations

import numpy as np

from arcwise.viewing.projection import Projection


def test_more_dimensions_than_samples_need_no_square_matrix() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 200_000)).astype(np.float32)
    points[:, 0] += np.linspace(-900, 900, 40)
    projection = Projection.fit(points, np.arange(40) % 4)
    shown = projection(points)
    assert shown.shape == (40, 2)
    assert abs(np.corrcoef(shown[:, 0], points[:, 0])[0, 1]) > 0.99

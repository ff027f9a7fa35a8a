"""Our own orthographic camera: three numbers in, two and a depth out. Much faster than 3-D axes, and nothing moves by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.run_folder import Array

NUM_CANDIDATES = 600
HIGHEST_ELEVATION = 50.0
SIDE_WEIGHT = 0.35


@dataclass(frozen=True)
class Camera:
    """Looks at the origin from `azimuth` and `elevation`, in degrees, with the third axis upwards."""

    azimuth: float = 30.0
    elevation: float = 20.0

    def turned(self, degrees: float) -> Camera:
        """The camera moved sideways around the upright axis."""
        return Camera(self.azimuth + degrees, self.elevation)

    @property
    def rotation(self) -> NDArray[np.float64]:
        """Rows: the picture's right, the picture's up, and towards the eye."""
        a, e = np.radians(self.azimuth), np.radians(self.elevation)
        right = [-np.sin(a), np.cos(a), 0.0]
        up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
        eye = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
        return np.array([right, up, eye])

    def project(self, points_M3: Array) -> NDArray[np.float64]:
        """(M, 3): x and y on the picture, and the depth, positive towards the eye."""
        return np.asarray(points_M3 @ self.rotation.T, dtype=np.float64)


def best_view(centres_N3: Array) -> Camera:
    """The camera that shows the centres best: far from each other on the picture, and on the near side rather than behind."""
    if len(centres_N3) < 2:
        return Camera()
    best, best_score = Camera(), -np.inf
    for camera in _candidates():
        picture = camera.project(centres_N3)
        gaps = np.linalg.norm(picture[:, None, :2] - picture[None, :, :2], axis=-1)
        np.fill_diagonal(gaps, np.inf)
        nearest = np.sort(gaps.min(axis=1))
        score = (
            nearest[0]
            + 0.5 * nearest[: max(2, len(nearest) // 2)].mean()
            + SIDE_WEIGHT * np.tanh(3 * picture[:, 2]).mean()
        )
        if score > best_score:
            best, best_score = camera, score
    return best


def _candidates() -> list[Camera]:
    """Directions spread evenly over the band of elevations that looks natural (a Fibonacci spiral)."""
    top = np.sin(np.radians(HIGHEST_ELEVATION))
    heights = np.linspace(-0.4 * top, top, NUM_CANDIDATES)
    turns = np.arange(NUM_CANDIDATES) * 180 * (3 - np.sqrt(5))
    return [Camera(float(turn % 360), float(np.degrees(np.arcsin(h)))) for turn, h in zip(turns, heights, strict=True)]

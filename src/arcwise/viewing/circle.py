"""Two-dimensional embeddings on the unit circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera
from arcwise.viewing.palette import BALL
from arcwise.viewing.panel import LABEL_POINTS, MOST_ARROWS, Cast, Panel, arrow_polygons, outward
from arcwise.viewing.run_folder import Array, Labels
from arcwise.viewing.style import bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Polygon

HILL_FOOT, HILL_HEIGHT = 1.035, 0.34
TAG_RADIUS = HILL_FOOT + HILL_HEIGHT + 0.03
NUM_BINS, BLUR_DEGREES = 720, 1.5


class CirclePanel(Panel):
    """Samples on the circle, and outside it a hill for each class: how densely its samples lie there (square-root scale)."""

    def __init__(
        self,
        axes: Axes,
        cast: Cast,
        *,
        inches: float,
        reference_MD: Array,
        label_points: float = LABEL_POINTS,
    ) -> None:
        super().__init__(axes, cast, inches=inches, label_points=label_points)
        from matplotlib.patches import Circle, Polygon

        tag_half = cast.tag_inches(label_points) / 2 * 3.4 / inches if cast.has_names else 0.0
        bare(axes, TAG_RADIUS + 0.24)
        axes.set_xlim(-TAG_RADIUS - 0.12 - tag_half, TAG_RADIUS + 0.12 + tag_half)
        axes.add_patch(Circle((0, 0), 1, facecolor=BALL, edgecolor="#aab2bf", linewidth=1.0, zorder=1))
        self._hills: list[Polygon] = []
        for colour in cast.colours:
            hill = Polygon(
                np.zeros((3, 2)), closed=True, facecolor=(*colour, 0.4), edgecolor=colour, linewidth=1.0, zorder=2
            )
            axes.add_patch(hill)
            self._hills.append(hill)
        self._arrows = self.add_arrows(4)
        self._points = self.add_points(5)
        self._highest = max(float(densities(reference_MD, cast.labels, len(cast.names)).max(initial=0.0)), 1e-9)
        self.add_tags()

    def show(self, points_MD: Array, centres_ND: Array, camera: Camera | None = None) -> None:
        self._points.set_offsets(points_MD[self.order])
        angle = np.linspace(0, 2 * np.pi, NUM_BINS + 1)
        height_NK = densities(points_MD, self.cast.labels, len(self.cast.names)) / self._highest
        height_NK = HILL_HEIGHT * np.sqrt(np.clip(height_NK, 0, 1))
        for hill, height in zip(self._hills, height_NK, strict=True):
            hill.set_xy(_hill_outline(angle, height))
        if len(centres_ND) <= MOST_ARROWS:
            thin = 1.0 if self.cast.has_names else 0.6
            self._arrows.set_verts(arrow_polygons(0.965 * centres_ND.astype(np.float64), size=thin))
        places = outward(TAG_RADIUS * centres_ND.astype(np.float64), 0.04)
        for index in range(len(self.tags)):
            self.move_tag(index, places[index])


def densities(points_M2: Array, labels_M: Labels, num_classes: int) -> NDArray[np.float64]:
    """(N, K): the share of each class's samples per bin of angle, blurred a little."""
    angle = np.arctan2(points_M2[:, 1], points_M2[:, 0])
    bins = np.floor(angle / (2 * np.pi) * NUM_BINS).astype(np.int64) % NUM_BINS
    pointing = np.abs(points_M2).sum(axis=1) > 0
    counts = np.bincount(labels_M[pointing] * NUM_BINS + bins[pointing], minlength=num_classes * NUM_BINS)
    counts_NK = counts.reshape(num_classes, NUM_BINS).astype(np.float64)
    frequency = np.fft.rfftfreq(NUM_BINS, d=360 / NUM_BINS)
    blur = np.exp(-2 * (np.pi * frequency * BLUR_DEGREES) ** 2)
    smooth = np.fft.irfft(np.fft.rfft(counts_NK, axis=1) * blur, n=NUM_BINS, axis=1)
    smooth[smooth < 1e-6] = 0.0
    return np.asarray(smooth / np.maximum(counts_NK.sum(axis=1, keepdims=True), 1))


def _hill_outline(angle: NDArray[np.float64], height: NDArray[np.float64]) -> NDArray[np.float64]:
    """The hill of one class as a ring-shaped polygon that has no thickness where the class has no samples."""
    middle = (angle[:-1] + angle[1:]) / 2
    kept = np.flatnonzero(height > 0.004)
    if not kept.size:
        return np.zeros((3, 2))
    # Start the walk in the widest empty stretch, so that only the occupied arc is outlined.
    gaps = np.diff(np.append(kept, kept[0] + NUM_BINS))
    first = int(kept[(int(gaps.argmax()) + 1) % len(kept)])
    span = (int(kept[int(gaps.argmax())]) - first) % NUM_BINS + 1
    walk = (first + np.arange(span)) % NUM_BINS
    direction = np.stack([np.cos(middle[walk]), np.sin(middle[walk])], axis=1)
    outer = direction * (HILL_FOOT + height[walk])[:, None]
    return np.concatenate([outer, (direction * HILL_FOOT)[::-1]])

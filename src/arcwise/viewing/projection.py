"""Wider embeddings, flattened: a projection, always labelled as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera
from arcwise.viewing.palette import FAINT, GRID
from arcwise.viewing.panel import LABEL_POINTS, MOST_ARROWS, Cast, Panel, arrow_polygons
from arcwise.viewing.run_folder import Array
from arcwise.viewing.style import bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Projection:
    """Principal components: where the mean lies, `num` directions of the largest variance, and the share of it that they show."""

    mean_D: NDArray[np.float64]
    basis_DK: NDArray[np.float64]
    share: float

    @classmethod
    def fit(cls, points_MD: Array, num: int = 2) -> Projection:
        points = points_MD.astype(np.float64)
        mean_D = points.mean(axis=0)
        covariance_DD = np.cov((points - mean_D).T, bias=True) if len(points) > 1 else np.zeros((points.shape[1],) * 2)
        variance, directions = np.linalg.eigh(covariance_DD)
        basis = directions[:, ::-1][:, :num]
        # An eigenvector's sign is arbitrary: the largest entry is made positive so that pictures come out the same everywhere.
        largest = np.abs(basis).argmax(axis=0)
        basis = basis * np.where(basis[largest, np.arange(num)] < 0, -1.0, 1.0)
        total = float(variance.clip(0).sum())
        return cls(mean_D, basis, float(variance[::-1][:num].clip(0).sum()) / total if total > 0 else 0.0)

    def __call__(self, points_MD: Array) -> NDArray[np.float64]:
        return np.asarray((points_MD - self.mean_D) @ self.basis_DK)

    @property
    def origin(self) -> tuple[float, float]:
        x, y = (-self.mean_D @ self.basis_DK)[:2]
        return float(x), float(y)


class ProjectionPanel(Panel):
    """Unit vectors seen through two principal components. The circle is the outline of the unit sphere; arrows start at its middle."""

    def __init__(
        self,
        axes: Axes,
        cast: Cast,
        projection: Projection,
        *,
        inches: float,
        extent: float,
        label_points: float = LABEL_POINTS,
    ) -> None:
        super().__init__(axes, cast, inches=inches, label_points=label_points)
        from matplotlib.patches import Circle

        self.projection = projection
        self._extent = extent
        tag_half = cast.tag_inches(label_points) / 2 * 2 * extent / inches if cast.has_names else 0.0
        bare(axes, extent * 1.12)
        axes.set_xlim(-extent * 1.05 - tag_half, extent * 1.05 + tag_half)
        axes.add_patch(Circle(projection.origin, 1, facecolor="none", edgecolor=FAINT, linewidth=1.0, zorder=1))
        axes.axhline(projection.origin[1], color=GRID, linewidth=0.8, zorder=0.5)
        axes.axvline(projection.origin[0], color=GRID, linewidth=0.8, zorder=0.5)
        self._points = self.add_points(3)
        self._arrows = self.add_arrows(6)
        self.add_tags()

    def show(self, points_MD: Array, centres_ND: Array, camera: Camera | None = None) -> None:
        self._points.set_offsets(self.projection(points_MD)[self.order])
        tips = self.projection(centres_ND)
        origin = np.array(self.projection.origin)
        if len(tips) <= MOST_ARROWS:
            thin = (1.0 if self.cast.has_names else 0.6) * self._extent
            self._arrows.set_verts(arrow_polygons(tips, (float(origin[0]), float(origin[1])), size=thin))
        arms = tips - origin
        length = np.linalg.norm(arms, axis=1, keepdims=True)
        places = tips + 0.085 * self._extent * arms / (length + 0.04)
        for index in range(len(self.tags)):
            self.move_tag(index, places[index])


def extent_of(projection: Projection, *clouds: Array) -> float:
    """Half the side of a square around the middle that holds all these vectors, centres included."""
    reach = max((float(np.abs(projection(cloud)).max(initial=0.0)) for cloud in clouds), default=1.0)
    return max(reach, 0.05)

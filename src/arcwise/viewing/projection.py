"""Wider embeddings, flattened: a projection, always labelled as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera
from arcwise.viewing.palette import FAINT, GRID
from arcwise.viewing.panel import LABEL_POINTS, MOST_ARROWS, Cast, Panel, arrow_polygons
from arcwise.viewing.run_folder import Array, Labels
from arcwise.viewing.style import bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GOOD_ENOUGH = 0.6  # of the best plane's share
FEWEST_FANNED, MOST_FANNED = 4, 20
WHOLE_SPHERE = 0.75


@dataclass(frozen=True, eq=False)
class Projection:
    """A plane through a cloud of points: where the mean lies, two directions, the share of the variance that they show.

    `best_share` is what the two principal components would show: no plane can show more.
    """

    mean: NDArray[np.float64]
    basis: NDArray[np.float64]
    share: float
    best_share: float
    is_fan: bool = False

    @classmethod
    def fit(cls, points_MD: Array, labels_M: Labels) -> Projection:
        """The principal plane; or, where it is nearly as good, a plane that fans the classes out.

        Well-trained class centres stand at equal angles to each other, all directions between them then have the same variance, and
        principal components pick two of them by chance: a few classes stand out and all others lie on one heap. Any other plane in
        their span shows just as much, so the one is taken that spreads all classes around.
        """
        points = points_MD.astype(np.float64)
        mean_D = points.mean(axis=0)
        if points.shape[1] > len(points):
            return cls._fit_in_span(points, mean_D)
        covariance_DD = np.cov((points - mean_D).T, bias=True)
        variance, directions = np.linalg.eigh(covariance_DD)
        total = max(float(variance.clip(0).sum()), 1e-12)
        principal_D2 = _with_fixed_signs(directions[:, :-3:-1])
        best = float(variance[-2:].clip(0).sum()) / total
        fan_D2 = _fan(points - mean_D, labels_M, principal_D2)
        if fan_D2 is not None:
            share = float(np.trace(fan_D2.T @ covariance_DD @ fan_D2)) / total
            if share >= GOOD_ENOUGH * best:
                return cls(mean_D, fan_D2, share, best, is_fan=True)
        return cls(mean_D, principal_D2, best, best)

    @classmethod
    def _fit_in_span(cls, points: NDArray[np.float64], mean_D: NDArray[np.float64]) -> Projection:
        """The principal plane where there are fewer samples than dimensions, without a D×D matrix."""
        _, lengths, directions = np.linalg.svd(points - mean_D, full_matrices=False)
        variance = lengths**2
        basis_D2 = _with_fixed_signs(directions[:2].T)
        share = float(variance[:2].sum()) / max(float(variance.sum()), 1e-12)
        return cls(mean_D, basis_D2, share, share)

    def __call__(self, points_MD: Array) -> NDArray[np.float64]:
        return np.asarray((points_MD - self.mean) @ self.basis)

    def describe(self, dim: int, what: str) -> str:
        """What kind of picture this is, in words that stand below it."""
        if not self.is_fan:
            return f"a flat projection (PCA) of {dim}-D {what} that shows {self.share:.0%} of their variance"
        best = "" if f"{self.best_share:.0%}" == f"{self.share:.0%}" else f" (the best plane: {self.best_share:.0%})"
        return f"a flat projection of {dim}-D {what}, chosen to fan the classes out, that shows {self.share:.0%} of their variance{best}"

    @property
    def origin(self) -> tuple[float, float]:
        x, y = (-self.mean @ self.basis)[:2]
        return float(x), float(y)


def _fan(
    points_MD: NDArray[np.float64], labels_M: Labels, principal_D2: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """The plane in which the class means come closest to standing evenly around, in the order in which they stand on the principal one."""
    classes = np.unique(labels_M)
    if not FEWEST_FANNED <= len(classes) <= MOST_FANNED:
        return None
    means = np.stack([points_MD[labels_M == index].mean(axis=0) for index in classes])
    means -= means.mean(axis=0)
    flat = means @ principal_D2
    around = np.argsort(np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))) * 2 * np.pi / len(classes)
    directions = means.T @ np.stack([np.cos(around), np.sin(around)], axis=1)
    left, size, right = np.linalg.svd(directions, full_matrices=False)
    if size[-1] < 1e-6 * max(float(size[0]), 1e-12):
        return None
    # The nearest pair of orthogonal unit vectors.
    return np.asarray(left @ right)


def _with_fixed_signs(basis_D2: NDArray[np.float64]) -> NDArray[np.float64]:
    """An eigenvector's sign is arbitrary: the largest entry is made positive, so that pictures come out the same everywhere."""
    largest = np.abs(basis_D2).argmax(axis=0)
    return np.asarray(basis_D2 * np.where(basis_D2[largest, np.arange(basis_D2.shape[1])] < 0, -1.0, 1.0))


class ProjectionPanel(Panel):
    """Unit vectors on a plane through them. Arrows start where the sphere's middle lies; its outline is drawn where there is room."""

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
        if extent > 1:
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
    """Half the side of a square around the middle that holds all these vectors, and the sphere's outline where that is near."""
    reach = max((float(np.abs(projection(cloud)).max(initial=0.0)) for cloud in clouds), default=1.0)
    return max(reach, 1.02) if reach > WHOLE_SPHERE else max(reach, 0.05)

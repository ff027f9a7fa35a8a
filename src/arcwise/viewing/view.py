"""How the embeddings of one run are looked at, decided once (from where they ended) and kept for every picture and every frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcwise.viewing.camera import Camera, best_view
from arcwise.viewing.circle import CirclePanel
from arcwise.viewing.panel import LABEL_POINTS, MOST_ARROWS, Cast, Panel
from arcwise.viewing.projection import Projection, ProjectionPanel, extent_of
from arcwise.viewing.run_folder import Array, Snapshot, spread_sample, unit
from arcwise.viewing.sphere import SpherePanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class View:
    """A cast and a way of looking at it: the circle in 2-D, the sphere in 3-D, a projection beyond."""

    cast: Cast
    points: Array
    centres: Array
    camera: Camera | None
    projection: Projection | None
    extent: float
    num_samples: int

    @classmethod
    def of(cls, snapshot: Snapshot, names: tuple[str, ...], *, most: int) -> View:
        """The view for these embeddings, of at most `most` samples, every class in its share."""
        rows = spread_sample(snapshot.labels, most)
        points, centres = unit(snapshot.embeddings), unit(snapshot.centres)
        projection = Projection.fit(points, snapshot.labels) if snapshot.dim > 3 else None
        return cls(
            cast=Cast(snapshot.labels[rows], names),
            points=points[rows],
            centres=centres,
            camera=best_view(centres) if snapshot.dim == 3 else None,
            projection=projection,
            extent=extent_of(projection, points[rows], centres) if projection else 1.0,
            num_samples=len(points),
        )

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def panel(self, axes: Axes, *, inches: float, label_points: float = LABEL_POINTS, shaded: bool = True) -> Panel:
        """The picture on these axes, still empty: call `show`."""
        if self.projection is not None:
            return ProjectionPanel(
                axes, self.cast, self.projection, inches=inches, extent=self.extent, label_points=label_points
            )
        if self.camera is not None:
            return SpherePanel(axes, self.cast, inches=inches, label_points=label_points, shaded=shaded)
        return CirclePanel(axes, self.cast, inches=inches, reference_MD=self.points, label_points=label_points)

    @property
    def place(self) -> str:
        """Where the samples are drawn, for a title."""
        if self.projection is not None:
            return f"projection of {self.dim}-D embeddings"
        return "embeddings on the unit sphere" if self.camera is not None else "embeddings on the unit circle"

    @property
    def samples(self) -> str:
        """How many samples are on the picture, and of how many."""
        shown = len(self.points)
        return f"{shown:,}" if shown == self.num_samples else f"{shown:,} of {self.num_samples:,}"

    @property
    def caption(self) -> str:
        """What a reader needs to know to read the picture."""
        if self.projection is not None:
            how = f"{self.projection.describe(self.dim, 'unit vectors')}. Distances and angles on it are not the real ones."
        elif self.camera is not None:
            how = "the far side is pale."
        else:
            how = "hills outside the circle show how densely each class lies (square-root scale)."
        text = f"{self.samples} test samples; {how}"
        if len(self.centres) <= MOST_ARROWS:
            text += " Arrows: class centres."
        return f"{text} {self.cast.note()}".strip()

"""Raw embeddings, before normalisation: with softmax, the petals that grow outwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.camera import Camera, best_view
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import shorten
from arcwise.viewing.palette import FAINT, INK, MUTED, PAPER, Colours, blend
from arcwise.viewing.panel import Cast, add_legend
from arcwise.viewing.projection import Projection
from arcwise.viewing.run_folder import Array, Run, class_means, spread_sample, unit
from arcwise.viewing.style import SMALL_POINTS, bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SAMPLES = 4000
WITHIN = 0.995  # share of the samples that the frame is sure to hold


def raw_figure(run: Run) -> Figure:
    """Embeddings as the network put them out, neither normalised nor scaled."""
    final = run.final
    if final is None:
        raise LeftOut("there are no embeddings")
    rows = spread_sample(final.labels, MOST_SAMPLES)
    points, cast = final.embeddings[rows], Cast(final.labels[rows], run.classes)
    reach = float(np.quantile(np.linalg.norm(points, axis=1), WITHIN)) * 1.06
    if reach <= 0:
        raise LeftOut("all embeddings lie at the origin")
    outside = int((np.linalg.norm(points, axis=1) > reach).sum())
    count = f"{len(points):,}" if len(points) == len(final.labels) else f"{len(points):,} of {len(final.labels):,}"
    text = f"{count} test samples as the network puts them out, with their lengths."
    if final.dim > 3:
        projection = Projection.fit(points, final.labels[rows])
        text += f" The picture is {projection.describe(final.dim, 'vectors')}."
    if final.dim == 3:
        text += " Samples farther from the eye are paler."
    if outside:
        text += f" {outside} outside the frame."
    figure = new_figure(
        max(5.7 + cast.legend_inches(), 6.4),
        6.1,
        title=f"{run.title} on {shorten(run.data, 30)}: raw embeddings",
        subtitle=f"{text} {cast.note()}".strip(),
    )
    axes = figure.add_subplot()
    if final.dim == 3:
        _draw_3d(axes, points, cast, reach)
    elif final.dim == 2:
        _draw_flat(axes, points.astype(np.float64), cast, reach, (0.0, 0.0))
        axes.set_xlabel("first dimension")
        axes.set_ylabel("second dimension")
    else:
        flat = projection(points)
        _draw_flat(axes, flat, cast, float(np.quantile(np.abs(flat), WITHIN)) * 1.08, projection.origin)
    add_legend(figure, cast)
    return figure


def _draw_flat(axes: Axes, points: NDArray[np.float64], cast: Cast, reach: float, origin: tuple[float, float]) -> None:
    axes.set_aspect("equal")
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.axhline(origin[1], color=FAINT, linewidth=1, zorder=1)
    axes.axvline(origin[0], color=FAINT, linewidth=1, zorder=1)
    axes.plot(*origin, marker="+", markersize=11, markeredgewidth=1.6, color=INK, zorder=6)
    order = np.random.default_rng(0).permutation(len(points))
    _scatter(axes, points[order], cast.point_colours[order], 7.0, 3)


def _draw_3d(axes: Axes, points: Array, cast: Cast, reach: float) -> None:
    camera = best_view(unit(class_means(unit(points), cast.labels)))
    picture = camera.project(points)
    bare(axes, reach * 1.08)
    _axes_cross(axes, camera, reach)
    order = np.argsort(picture[:, 2], kind="stable")
    farness = np.clip(0.5 - picture[order, 2] / (1.5 * reach), 0, 1)
    colours = blend(cast.point_colours[order], PAPER, 0.78 * farness[:, None])
    _scatter(axes, picture[order, :2], colours, 9.0 * (1 - 0.45 * farness), 3)


def _axes_cross(axes: Axes, camera: Camera, reach: float) -> None:
    """The three axes through the origin, so that the flat picture reads as a space."""
    for number, tip in enumerate(camera.project(np.eye(3, dtype=np.float32)) * reach, start=1):
        axes.plot([-tip[0], 0], [-tip[1], 0], color=FAINT, linewidth=1, zorder=1, linestyle=(0, (3, 2)))
        axes.plot([0, tip[0]], [0, tip[1]], color="#a3abb8", linewidth=1.3, zorder=1)
        if np.hypot(tip[0], tip[1]) > 0.2 * reach:
            axes.text(
                1.05 * tip[0],
                1.05 * tip[1],
                f"x{'₁₂₃'[number - 1]}",
                color=MUTED,
                ha="center",
                va="center",
                size=SMALL_POINTS,
            )


def _scatter(
    axes: Axes, xy: NDArray[np.float64], colours: Colours, sizes: float | NDArray[np.float64], zorder: float
) -> None:
    axes.scatter(xy[:, 0], xy[:, 1], s=sizes, c=colours, linewidths=0, zorder=zorder, rasterized=True)

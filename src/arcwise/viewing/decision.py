"""Decision regions in two dimensions, with the band that the margin keeps free between classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import shorten
from arcwise.viewing.margin_curves import formula_suffix, margin_of
from arcwise.viewing.palette import INK, PAPER, blend, rgb
from arcwise.viewing.panel import Cast, add_legend, arrow_polygons, outward, place_tags
from arcwise.viewing.run_folder import Run, Snapshot, spread_sample, unit
from arcwise.viewing.style import bare, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from arcwise.margins import Margin

MOST_SAMPLES = 4000
PIXELS = 720
REACH = 1.16
TINT = 0.62
BAND = "#eceef2"


def decision_figure(run: Run) -> Figure:
    """The plane coloured by the class that the head would choose there."""
    final = run.final
    if final is None:
        raise LeftOut("there are no embeddings")
    if final.dim != 2:
        raise LeftOut(f"decision regions are drawn in two dimensions; these embeddings have {final.dim}")
    cast = Cast(final.labels[spread_sample(final.labels, MOST_SAMPLES)], run.classes)
    margin = margin_of(run)
    if margin is None:
        return _plane_figure(run, final, cast)
    return _circle_figure(run, final, cast, margin)


def _circle_figure(run: Run, final: Snapshot, cast: Cast, margin: Margin) -> Figure:
    rows = spread_sample(final.labels, MOST_SAMPLES)
    points, centres = unit(final.embeddings[rows]), unit(final.centres)
    figure = new_figure(
        7.4,
        6.6,
        title=f"{run.title} on {shorten(run.data, 30)}: decision regions",
        subtitle="Each sector belongs to the nearest class centre. The grey band between two sectors is what "
        f"{run.title}{formula_suffix(margin)} asks training samples to keep out of. {cast.note()}",
    )
    axes = figure.add_subplot()
    tag_half = cast.tag_inches() / 2 * 3.0 / 5.0 if cast.has_names else 0.0
    bare(axes, 1.5)
    axes.set_xlim(-1.36 - tag_half, 1.36 + tag_half)
    x, y = np.meshgrid(np.linspace(-REACH, REACH, PIXELS), np.linspace(REACH, -REACH, PIXELS))
    angle = np.arctan2(y, x).ravel()
    nearest, satisfied = regions(angle, centres.astype(np.float64), margin)
    tint = blend(cast.colours[nearest], PAPER, TINT)
    tint[~satisfied] = rgb(BAND)
    radius = np.hypot(x, y)
    alpha = np.clip((REACH - radius) * PIXELS / (2 * REACH), 0, 1)
    picture = np.concatenate([tint.reshape(PIXELS, PIXELS, 3), alpha[..., None]], axis=-1)
    axes.imshow(picture, extent=(-REACH, REACH, -REACH, REACH), zorder=1, interpolation="bilinear", rasterized=True)
    axes.set_xlim(-1.36 - tag_half, 1.36 + tag_half)
    axes.set_ylim(-1.4, 1.4)
    for border in borders(centres.astype(np.float64)):
        axes.plot([0, REACH * np.cos(border)], [0, REACH * np.sin(border)], color="#8c95a3", linewidth=0.9, zorder=2)
    ring = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(ring), np.sin(ring), color="#aab2bf", linewidth=0.9, zorder=2)
    order = np.random.default_rng(0).permutation(len(points))
    axes.scatter(
        points[order, 0], points[order, 1], s=9, c=cast.point_colours[order], linewidths=0, zorder=3, rasterized=True
    )
    _arrows(axes, 0.94 * centres.astype(np.float64), 1.0)
    place_tags(axes, cast, outward((REACH + 0.06) * centres.astype(np.float64), 0.05))
    add_legend(figure, cast)
    return figure


def _plane_figure(run: Run, final: Snapshot, cast: Cast) -> Figure:
    """Without a margin and without normalisation, regions are those of w·x + b in the plane."""
    rows = spread_sample(final.labels, MOST_SAMPLES)
    points = final.embeddings[rows].astype(np.float64)
    reach = float(np.quantile(np.linalg.norm(points, axis=1), 0.995)) * 1.1
    if reach <= 0:
        raise LeftOut("all embeddings lie at the origin")
    centres = final.centres.astype(np.float64)
    has_bias = final.bias is not None and final.bias.shape == (len(centres),)
    bias = final.bias.astype(np.float64) if has_bias and final.bias is not None else np.zeros(len(centres))
    figure = new_figure(
        7.4,
        6.6,
        title=f"{run.title} on {shorten(run.data, 30)}: decision regions",
        subtitle=f"The plane of raw embeddings, coloured by the largest w·x{' + b' if has_bias else ''}. "
        + ("" if has_bias else "The bias is not stored with the embeddings and is left out. ")
        + f"No band lies between the classes: softmax asks for no margin. Arrows: directions of the class weights. {cast.note()}",
    )
    axes = figure.add_subplot()
    x, y = np.meshgrid(np.linspace(-reach, reach, PIXELS), np.linspace(reach, -reach, PIXELS))
    logits = x.ravel()[:, None] * centres[:, 0] + y.ravel()[:, None] * centres[:, 1] + bias
    tint = blend(cast.colours[logits.argmax(axis=1)], PAPER, TINT).reshape(PIXELS, PIXELS, 3)
    axes.imshow(tint, extent=(-reach, reach, -reach, reach), zorder=1, interpolation="nearest", rasterized=True)
    axes.grid(visible=False)
    axes.set_aspect("equal")
    order = np.random.default_rng(0).permutation(len(points))
    axes.scatter(
        points[order, 0], points[order, 1], s=9, c=cast.point_colours[order], linewidths=0, zorder=3, rasterized=True
    )
    tips = unit(final.centres).astype(np.float64) * reach * 0.8
    _arrows(axes, tips, reach)
    place_tags(axes, cast, outward(tips, 0.09 * reach))
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_xlabel("first dimension")
    axes.set_ylabel("second dimension")
    add_legend(figure, cast)
    return figure


def regions(
    angle_P: NDArray[np.float64], centres_N2: NDArray[np.float64], margin: Margin
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each direction the nearest class, and whether it would still win with the margin held against it: ψ(θ_own) > cos θ_next."""
    import torch

    cos_PN = np.cos(angle_P)[:, None] * centres_N2[:, 0] + np.sin(angle_P)[:, None] * centres_N2[:, 1]
    nearest = cos_PN.argmax(axis=1)
    own = cos_PN.max(axis=1)
    cos_PN[np.arange(len(nearest)), nearest] = -np.inf
    following = cos_PN.max(axis=1)
    psi = margin.target(torch.from_numpy(np.clip(own, -1, 1))).detach().numpy()
    return nearest, np.asarray(psi > following)


def borders(centres_N2: NDArray[np.float64]) -> NDArray[np.float64]:
    """The angles half-way between neighbouring centres on the circle."""
    angle = np.sort(np.arctan2(centres_N2[:, 1], centres_N2[:, 0]))
    gap = np.diff(np.append(angle, angle[0] + 2 * np.pi))
    return np.asarray(angle + gap / 2)


def _arrows(axes: Axes, tips: NDArray[np.float64], size: float) -> None:
    from matplotlib.collections import PolyCollection

    if len(tips) <= 64:
        polygons = arrow_polygons(tips, size=size)
        axes.add_collection(
            PolyCollection(polygons, facecolors=INK, edgecolors=PAPER, linewidths=0.5, zorder=5), autolim=False
        )

"""Angles between pairs of test samples: of one class (genuine) and of two (impostor)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.embeddings import grid
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import plain, shorten
from arcwise.viewing.palette import INK, MUTED, rgb
from arcwise.viewing.run_folder import Run
from arcwise.viewing.selection import MOST_PANELS, selected
from arcwise.viewing.style import SMALL_POINTS, degree_axis, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GENUINE, IMPOSTOR = "#0072b2", "#d55e00"
MOST_BELOW = 3
KINDS = ("same class (genuine)", "different classes (impostor)")


@dataclass(frozen=True)
class Angles:
    """Shares of the pairs per bin, and where the two kinds of error are equally frequent."""

    edges: NDArray[np.float64]
    genuine: NDArray[np.float64]
    impostor: NDArray[np.float64]
    threshold: float | None
    eer: float | None

    @property
    def highest(self) -> float:
        return float(max(self.genuine.max(initial=0), self.impostor.max(initial=0)))


def angles_of(run: Run) -> Angles:
    """The histograms in evaluation.json."""
    verification = run.evaluation.get("verification")
    histogram = verification.get("histogram") if isinstance(verification, dict) else None
    if not isinstance(verification, dict) or not isinstance(histogram, dict):
        raise LeftOut("evaluation.json holds no verification histogram")
    try:
        edges, genuine, impostor = (
            np.asarray(histogram[key], dtype=np.float64) for key in ("degrees", "genuine", "impostor")
        )
        fits = edges.ndim == 1 and len(edges) == len(genuine) + 1 == len(impostor) + 1 and len(genuine) > 0
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise LeftOut("the histogram in evaluation.json is not one of angles")
    if genuine.sum() + impostor.sum() <= 0:
        raise LeftOut("no pairs were compared")
    threshold, eer = verification.get("threshold_degrees"), verification.get("eer")
    return Angles(
        edges,
        genuine / max(genuine.sum(), 1) / np.diff(edges),
        impostor / max(impostor.sum(), 1) / np.diff(edges),
        float(threshold) if isinstance(threshold, (int, float)) else None,
        float(eer) if isinstance(eer, (int, float)) else None,
    )


def angles_figure(run: Run) -> Figure:
    """How far apart two samples of one class lie, and two of different classes."""
    angles = angles_of(run)
    figure = new_figure(
        7.4,
        4.4,
        title=f"{run.title} on {shorten(run.data, 30)}: angles between pairs of test samples",
        subtitle="The less the two overlap, the better one threshold tells “same class” from “different class”.",
        legend=KINDS,
    )
    axes = figure.add_subplot()
    _draw(axes, angles, headroom=1.24)
    axes.set_xlabel("angle between two embeddings")
    _legend(figure)
    return figure


def compared_angles_figure(runs: list[Run]) -> Figure:
    """The same for each loss, below each other on one axis."""
    drawn = []
    for run in runs:
        try:
            drawn.append((run, angles_of(run)))
        except LeftOut:
            continue
    if not drawn:
        raise LeftOut("no run has a verification histogram")
    shown, selection = selected([run for run, _ in drawn], MOST_PANELS)
    drawn = [(run, angles) for run, angles in drawn if run in shown]
    # Below each other they are compared best; of more than three the last would be far from the first.
    columns, rows = grid(len(drawn)) if len(drawn) > MOST_BELOW else (1, len(drawn))
    figure = new_figure(
        {1: 7.4, 2: 8.6}.get(columns, 10.8),
        1.3 + 2.0 * rows,
        title=f"{shorten(runs[0].data, 30)}: angles between pairs of test samples",
        subtitle="The less the two overlap, the better one threshold tells “same class” from “different class”. "
        + selection.sentence,
        legend=KINDS,
    )
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes, (run, angles) in zip(panels.flat, drawn, strict=False):
        _draw(axes, angles, headroom=1.5)
        axes.set_title(plain(run.title), weight="bold")
    for axes in panels.flat[len(drawn) :]:
        axes.set_visible(False)
    for index, axes in enumerate(panels.flat[: len(drawn)]):
        if index % columns:
            axes.set_ylabel("")
        if index + columns < len(drawn):
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel("angle between two embeddings")
    _legend(figure)
    return figure


def _draw(axes: Axes, angles: Angles, *, headroom: float) -> None:
    for shares, colour in ((angles.impostor, IMPOSTOR), (angles.genuine, GENUINE)):
        axes.stairs(shares, angles.edges, fill=True, color=colour, alpha=0.28, zorder=2)
        axes.stairs(shares, angles.edges, color=colour, linewidth=1.7, zorder=3)
    axes.set_ylim(0, angles.highest * headroom)
    axes.set_yticks([])
    axes.set_ylabel("share of pairs")
    axes.grid(visible=False, axis="y")
    degree_axis(axes)
    if angles.threshold is not None:
        axes.axvline(angles.threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=4)
        text = f"threshold {angles.threshold:.1f}°"
        if angles.eer is not None:
            text += f"\nequal error rate {_percent(angles.eer)}"
        _write_beside(axes, angles.threshold, text, angles.highest * headroom * 0.975)


def _write_beside(axes: Axes, threshold: float, text: str, height: float) -> None:
    """Next to the line at the threshold, in the empty space above the histograms."""
    right = threshold < 120
    axes.annotate(
        text,
        (threshold, height),
        xytext=(6 if right else -6, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="top",
        size=SMALL_POINTS,
        color=MUTED,
        linespacing=1.3,
        bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        zorder=5,
    )


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=(*rgb(colour), 0.28), edgecolor=colour, linewidth=1.7) for colour in (GENUINE, IMPOSTOR)]
    legend_above(figure, handles, KINDS)


def _percent(share: float) -> str:
    return f"{share:.2%}" if share < 0.1 else f"{share:.1%}"

"""Accuracy under added noise: nearest class by angle against nearest class by distance, for each loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import plain, shorten, width
from arcwise.viewing.palette import GRID, INK, MUTED, loss_colour, loss_marker
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import SMALL_POINTS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES, GAP = 0.2, 0.9
MOST_BLOCKS = 6  # losses that are told apart by marker and colour; of more, each has a row by name
ANGLE, DISTANCE = "#0072b2", "#d55e00"

Table = dict[str, tuple[float, float]]


def robustness_figure(runs: list[Run]) -> Figure:
    """One block a noise, one row a loss: the filled mark is accuracy by angle, the open one by distance."""
    tables = [(run, table) for run in runs if (table := noise_of(run))]
    if not tables:
        raise LeftOut("no run has robustness in evaluation.json")
    noises = list(dict.fromkeys(noise for _, table in tables for noise in table))
    if len(tables) > MOST_BLOCKS:
        return _panels_by_noise(tables, noises)
    block = len(tables) + GAP
    labels = [*(run.title for run, _ in tables), "by angle", "by distance"]
    figure = new_figure(
        7.8,
        1.7 + ROW_INCHES * block * len(noises),
        title=f"{shorten(runs[0].data, 30)}: accuracy under added noise",
        subtitle="Filled: nearest class mean by angle. Open: the same model, nearest class mean by distance.",
        legend=labels,
    )
    axes = figure.add_subplot()
    values: list[float] = []
    for number, noise in enumerate(noises):
        for index, (_, table) in enumerate(tables):
            if noise not in table:
                continue
            angle, distance = table[noise]
            height = number * block + index
            style: dict[str, Any] = {
                "marker": loss_marker(index),
                "markersize": 7,
                "linestyle": "none",
                "color": loss_colour(index),
            }
            axes.plot(
                [angle, distance], [height, height], color=loss_colour(index), linewidth=1.6, alpha=0.55, zorder=2
            )
            axes.plot(distance, height, **style, markerfacecolor="white", markeredgewidth=1.6, zorder=3)
            axes.plot(angle, height, **style, zorder=4)
            values += [angle, distance]
        if number:
            axes.axhline(number * block - (GAP + 1) / 2, color=GRID, linewidth=0.8, zorder=1)
    middle = (len(tables) - 1) / 2
    axes.set_yticks(
        [number * block + middle for number in range(len(noises))], [plain(shorten(noise, 24)) for noise in noises]
    )
    axes.set_ylim(len(noises) * block - GAP, -GAP)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    _percent_axis(axes, values)
    _legend(figure, labels)
    return figure


def _panels_by_noise(tables: list[tuple[Run, Table]], noises: list[str]) -> Figure:
    """A panel a noise, a row a loss, named at the side."""
    names = [plain(shorten(run.title, 32)) for run, _ in tables]
    labels = ["by angle", "by distance"]
    columns = min(len(noises), 5)
    rows = -(-len(noises) // columns)
    beside = 0.075 * max(map(width, names))
    figure = new_figure(
        beside + 1.75 * columns + 0.3,
        1.2 + rows * (0.7 + 0.225 * len(tables)),
        title=f"{shorten(tables[0][0].data, 30)}: accuracy under added noise",
        subtitle="The same models, deciding by the nearest class mean in angle and in distance.",
        legend=labels,
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, noise in zip(panels.flat, noises, strict=False):
        pairs = [(height, *table[noise]) for height, (_, table) in enumerate(tables) if noise in table]
        heights, by_angle, by_distance = (list(column) for column in zip(*pairs, strict=True))
        axes.hlines(heights, by_angle, by_distance, color=MUTED, linewidth=1.2, alpha=0.6, zorder=2)
        axes.plot(by_distance, heights, **_mark(DISTANCE, "s"), markerfacecolor="white", markeredgewidth=1.4, zorder=3)
        axes.plot(by_angle, heights, **_mark(ANGLE, "o"), zorder=4)
        axes.set_title(plain(shorten(noise, 22)), size=SMALL_POINTS + 0.5, weight="bold")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _percent_axis(axes, [*by_angle, *by_distance], nbins=3)
    for axes in panels.flat[len(noises) :]:
        axes.set_visible(False)
    handles = [_entry(ANGLE, "o"), _entry(DISTANCE, "s", markerfacecolor="white", markeredgewidth=1.4)]
    legend_above(figure, handles, labels)
    return figure


def _mark(colour: str, marker: str) -> dict[str, Any]:
    return {"marker": marker, "markersize": 5.5, "linestyle": "none", "color": colour}


def _entry(colour: str, marker: str, **more: Any) -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], **_mark(colour, marker), **more)


def noise_of(run: Run) -> Table:
    """Noise by name: (accuracy by angle, accuracy by distance)."""
    rows = run.evaluation.get("robustness")
    found: Table = {}
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and all(isinstance(row.get(key), (int, float)) for key in ("angle", "distance")):
            found[str(row.get("noise", "noise"))] = (float(row["angle"]), float(row["distance"]))
    return found


def _percent_axis(axes: Axes, values: list[float], nbins: int | None = None) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    low = min(values)
    room = max(1 - low, 0.02)
    axes.set_xlim(max(-0.02, low - 0.08 * room), 1 + 0.02 * room)
    if nbins is not None:  # narrow
        axes.set_xlim(max(-0.02, low - 0.08 * room), max(values) + 0.08 * room)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=nbins, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if room > 0.1 else 1))
    axes.set_xlabel("accuracy")


def _legend(figure: Figure, labels: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker=loss_marker(i), color=loss_colour(i), markersize=7.5)
        for i in range(len(labels) - 2)
    ]
    handles += [
        Line2D([], [], linestyle="none", marker="o", color=INK, markersize=7),
        Line2D(
            [],
            [],
            linestyle="none",
            marker="o",
            color=MUTED,
            markerfacecolor="white",
            markeredgewidth=1.6,
            markersize=7,
        ),
    ]
    legend_above(figure, handles, labels)

"""Loss, accuracy and angle over the epochs, for one run or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import shorten
from arcwise.viewing.palette import LOSS_COLOURS, loss_colour, loss_dash, loss_marker
from arcwise.viewing.run_folder import Run
from arcwise.viewing.selection import MOST_MOVING, selected
from arcwise.viewing.style import legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Series = tuple[NDArray[np.float64], NDArray[np.float64]]
SMOOTHING_SHARE = 0.02  # of all steps: the width of the running mean
OTHERS = "#b4bac4"
TRAIN, TEST = "#0072b2", "#d55e00"
WHICH = ("training", "test")


def training_figure(run: Run) -> Figure:
    """How training went: each quantity by step (pale), smoothed, and as measured on the test samples after each epoch."""
    if not run.steps and not run.epochs:
        raise LeftOut("metrics.jsonl holds no steps and no epochs")
    figure = new_figure(
        9.6,
        4.0,
        title=f"{run.title} on {shorten(run.data, 30)}: training",
        subtitle="Pale: every step. Line: running mean. Points: measured on the test samples after each epoch.",
        legend=WHICH,
    )
    loss, accuracy, angle = figure.subplots(1, 3)
    _draw_steps(loss, series(run.steps, "loss"), series(run.epochs, "loss"))
    _draw_steps(accuracy, series(run.steps, "accuracy"), series(run.epochs, "accuracy"))
    _draw_steps(angle, series(run.steps, "target_angle"), series(run.epochs, "target_angle"))
    _draw_test(accuracy, series(run.epochs, "test_accuracy"))
    _draw_test(angle, series(run.epochs, "test_angle"))
    titles = ("loss", "accuracy", "angle to the own centre")
    for axes, title in zip((loss, accuracy, angle), titles, strict=True):
        axes.set_title(title, weight="bold")
        _epoch_axis(axes)
    _finish_axes(loss, accuracy, angle)
    legend_above(figure, _train_and_test(), WHICH)
    return figure


def compared_training_figure(runs: list[Run]) -> Figure:
    """Test accuracy and angle of several runs on the same axes; loss values of different losses cannot be compared."""
    runs = [run for run in runs if run.epochs]
    if not runs:
        raise LeftOut("no run has epochs in metrics.jsonl")
    coloured, words = runs, ""
    if len(runs) > len(LOSS_COLOURS):
        coloured, selection = selected(runs, MOST_MOVING)
        words = f" In colour: {selection.which}. Grey: the other {len(selection.left_out)} of the {len(runs)} losses."
    labels = [run.title for run in coloured]
    if len(coloured) < len(runs):
        labels.append("the other losses")
    figure = new_figure(
        8.6,
        4.4,
        title=f"{shorten(runs[0].data, 30)}: test samples after each epoch",
        subtitle=f"The losses’ own values are not shown: they are on different scales and cannot be compared.{words}",
        legend=labels,
    )
    accuracy, angle = figure.subplots(1, 2)
    handles: list[Any] = []
    for index, run in enumerate(coloured):
        for axes, key in ((accuracy, "test_accuracy"), (angle, "test_angle")):
            x, y = series(run.epochs, key)
            (line,) = axes.plot(
                x,
                y,
                color=loss_colour(index),
                linestyle=loss_dash(index),
                marker=loss_marker(index),
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=3,
            )
            if axes is accuracy:
                handles.append(line)
    for run in runs:
        if run not in coloured:
            for axes, key in ((accuracy, "test_accuracy"), (angle, "test_angle")):
                (line,) = axes.plot(*series(run.epochs, key), color=OTHERS, linewidth=1.0, zorder=2)
    if len(coloured) < len(runs):
        handles.append(line)
    accuracy.set_title("accuracy", weight="bold")
    angle.set_title("mean angle to the own centre", weight="bold")
    for axes in (accuracy, angle):
        _epoch_axis(axes)
    _focus_accuracy(accuracy)
    _degrees(angle)
    legend_above(figure, handles, labels)
    return figure


def series(rows: list[dict[str, Any]], key: str) -> Series:
    """(epochs, values) of one quantity, without what is missing or not finite."""
    pairs = [
        (float(row["epoch"]), float(row[key]))
        for row in rows
        if isinstance(row.get("epoch"), (int, float))
        and isinstance(row.get(key), (int, float))
        and np.isfinite(row[key])
    ]
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def running_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value's mean with its neighbours; the window shrinks at the ends, so nothing is invented there."""
    half = max(1, round(SMOOTHING_SHARE * len(values) / 2))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    low, high = np.maximum(index - half, 0), np.minimum(index + half + 1, len(values))
    return np.asarray((sums[high] - sums[low]) / (high - low))


def _draw_steps(axes: Axes, steps: Series, epochs: Series) -> None:
    x, y = steps
    if len(x) > 3:
        axes.plot(x, y, color=TRAIN, alpha=0.22, linewidth=0.7, zorder=2, rasterized=len(x) > 3000)
        axes.plot(x, running_mean(y), color=TRAIN, linewidth=1.9, zorder=3)
    else:
        axes.plot(*epochs, color=TRAIN, linewidth=1.9, zorder=3)


def _draw_test(axes: Axes, test: Series) -> None:
    axes.plot(
        *test,
        color=TEST,
        marker="o",
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.2,
        zorder=4,
    )


def _finish_axes(loss: Axes, accuracy: Axes, angle: Axes) -> None:
    values = np.concatenate([_values(line) for line in loss.get_lines()] or [np.zeros(0)])
    if values.size:
        # A few wild first steps must not flatten the rest.
        loss.set_ylim(min(0.0, float(values.min())), max(float(np.quantile(values, 0.995)) * 1.05, 1e-3))
    _focus_accuracy(accuracy)
    _degrees(angle)


def _focus_accuracy(axes: Axes) -> None:
    """Percent, from where the story happens: every measured point is inside, but the first steps far below may be cut off."""
    from matplotlib.ticker import PercentFormatter

    lines = [line for line in axes.get_lines() if _values(line).size]
    lows = [_values(line).min() if line.get_marker() != "None" else np.quantile(_values(line), 0.05) for line in lines]
    low = float(min(lows, default=0.0))
    room = max(1 - low, 0.004)
    axes.set_ylim(max(-0.02 * room, low - 0.1 * room), 1.0 + 0.04 * room)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if room > 0.05 else 1))


def _values(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def _degrees(axes: Axes) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}°"))


def _epoch_axis(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(left=0)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.set_xlabel("epoch")


def _train_and_test() -> list[Artist]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=TRAIN), Line2D([], [], color=TEST, marker="o", markersize=5.5)]

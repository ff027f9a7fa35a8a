"""Which class is taken for which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import class_names, shorten, width
from arcwise.viewing.palette import INK, MUTED, PAPER
from arcwise.viewing.run_folder import Run
from arcwise.viewing.style import SMALL_POINTS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERED, MOST_CLASSES = 20, 2000
COLUMNS = 14


def confusion_figure(run: Run) -> Figure:
    """True classes down, predicted ones across; numbers in the cells up to twenty classes, a heat map beyond."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    counts_NN = confusion_of(run)
    num_classes = len(counts_NN)
    names = (*run.classes, *(str(j) for j in range(len(run.classes), num_classes)))[:num_classes]
    share_NN = counts_NN / np.maximum(counts_NN.sum(axis=1, keepdims=True), 1)
    numbered = num_classes <= MOST_NUMBERED
    side = max(4.2, 0.46 * num_classes) if numbered else 6.0
    labels = class_names(names, COLUMNS)
    letters = max(width(label) for label in labels)
    wrong = int(counts_NN.sum() - np.trace(counts_NN))
    figure = new_figure(
        side + 1.7 + 0.075 * letters,
        side + 1.62 + 0.05 * letters,
        title=f"{run.title} on {shorten(run.data, 30)}: which class is taken for which",
        subtitle=f"{wrong:,} of {int(counts_NN.sum()):,} test samples are nearest to the centre of another class. "
        "Shading: share of the true class, stretched so that single mistakes show.",
    )
    axes = figure.add_subplot()
    shades = LinearSegmentedColormap.from_list("shades", ["#ffffff", "#c9dcf3", "#6ea6d8", "#1f6bb0", "#0b3c73"])
    picture = axes.imshow(
        share_NN, cmap=shades, norm=PowerNorm(0.35, 0, 1), interpolation="nearest", rasterized=not numbered
    )
    axes.grid(visible=False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.spines[:].set_visible(True)
    if numbered:
        slanted = letters > 3
        axes.set_xticks(
            range(num_classes),
            labels,
            rotation=40 if slanted else 0,
            ha="right" if slanted else "center",
            rotation_mode="anchor" if slanted else "default",
        )
        axes.set_yticks(range(num_classes), labels)
        axes.tick_params(length=0)
        _write_numbers(axes, counts_NN, share_NN)
    bar = figure.colorbar(picture, ax=axes, shrink=0.8, pad=0.02, aspect=28, ticks=[0, 0.01, 0.1, 0.5, 1.0])
    bar.set_ticklabels(["0 %", "1 %", "10 %", "50 %", "100 %"])
    bar.outline.set_visible(False)
    return figure


def confusion_of(run: Run) -> NDArray[np.int64]:
    """The matrix in evaluation.json, else counted from the predictions stored with the final embeddings."""
    table = run.evaluation.get("confusion")
    if table is not None:
        try:
            counts = np.asarray(table, dtype=np.int64)
        except (TypeError, ValueError):
            raise LeftOut("the confusion matrix in evaluation.json is not one") from None
        if counts.ndim == 2 and counts.shape[0] == counts.shape[1] and counts.sum() > 0:
            return counts
        raise LeftOut("the confusion matrix in evaluation.json is not square, or is empty")
    final = run.final
    if final is None or final.predicted is None:
        raise LeftOut(
            "there is no confusion matrix in evaluation.json and there are no predictions with the embeddings"
        )
    num_classes = max(len(run.classes), int(final.predicted.max()) + 1)
    if num_classes > MOST_CLASSES:
        raise LeftOut(f"{num_classes:,} classes are too many for a picture of a matrix")
    pairs = final.labels * num_classes + final.predicted
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def _write_numbers(axes: Axes, counts_NN: NDArray[np.int64], share_NN: NDArray[np.float64]) -> None:
    longest = len(str(int(counts_NN.max())))
    points = SMALL_POINTS if longest <= 4 else 9.0
    for row, column in np.argwhere(counts_NN > 0).tolist():
        dark = share_NN[row, column] > 0.12
        axes.text(
            column,
            row,
            str(counts_NN[row, column]),
            ha="center",
            va="center",
            size=points,
            color=PAPER if dark else INK,
        )
    for row in np.flatnonzero(counts_NN.sum(axis=1) == 0).tolist():
        axes.text(row, row, "–", ha="center", va="center", size=points, color=MUTED)

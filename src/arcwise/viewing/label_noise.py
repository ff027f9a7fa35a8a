"""What wrong labels cost each loss, and how many of them are found: curves over the share that was shuffled."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcwise.errors import RunError
from arcwise.loss_titles import heading_of
from arcwise.progress import Reporter
from arcwise.viewing.lettering import plain, shorten
from arcwise.viewing.palette import loss_colour, loss_marker
from arcwise.viewing.style import house_style, legend_above, new_figure, require_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULT = "label_noise.json"


def draw_label_noise(folder: Path, *, reporter: Reporter | None = None) -> list[Path]:
    """Draw the curve that `arcwise bench label-noise` measured, as PNG and SVG, into `folder`/figures."""
    require_matplotlib("Drawing figures")
    try:
        result = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        raise RunError(
            f"{folder} holds no {RESULT} that can be read. Give the folder that `arcwise bench label-noise` wrote."
        ) from None
    with house_style(), (reporter or Reporter()).stage("Drawing the curve"):
        return save(label_noise_figure(result), folder / "figures", "label_noise")


def label_noise_figure(result: dict[str, Any]) -> Figure:
    """A panel for each score, and the share of the shuffled labels that is found on the right."""
    losses, scores = list(result["losses"]), result["scores"]
    # What stands behind a comma says how the loss was trained.
    names = [", ".join([heading_of(name), *how]) for name, *how in (loss.split(", ") for loss in losses)]
    several = f"Mean over {result['seeds']} seeds; a bar is the standard deviation."
    found = "Found: of the shuffled labels, the share among as many first of the ranked list."
    figure = new_figure(
        4.6 * (len(scores) + 1),
        4.6,
        title=f"{shorten(result['data'], 30)}: what wrong labels cost, and how many of them are found",
        subtitle=f"{several if result['seeds'] > 1 else 'One seed.'} {found}",
        legend=names,
    )
    *panels, right = figure.subplots(1, len(scores) + 1)
    for index, loss in enumerate(losses):
        cells = result["losses"][loss]
        for axes, score in zip(panels, scores, strict=True):
            _curve(axes, index, len(losses), [(cell["share"], cell["scores"][score]) for cell in cells])
        _curve(right, index, len(losses), [(cell["share"], cell["found"]) for cell in cells if cell["found"]])
    for axes, meaning in zip([*panels, right], [*scores.values(), "Shuffled labels found"], strict=True):
        axes.set_title(plain(meaning))
        _percent_axes(axes, result["shares"])
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.02))
    legend_above(figure, _handles(losses), names)
    return figure


def _curve(axes: Axes, index: int, of: int, points: list[tuple[float, list[float]]]) -> None:
    # A small step aside, so that bars at the same share stay apart.
    aside = 0.004 * (index - (of - 1) / 2)
    axes.errorbar(
        [share + aside for share, _ in points],
        [statistics.fmean(values) for _, values in points],
        yerr=[statistics.stdev(values) if len(values) > 1 else 0.0 for _, values in points],
        color=loss_colour(index),
        marker=loss_marker(index),
        markersize=6.5,
        capsize=2.5,
        elinewidth=1.2,
    )


def _percent_axes(axes: Axes, shares: list[float]) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_xticks(shares, [f"{share:.0%}" for share in shares])
    axes.set_xlim(-0.03, max(shares) + 0.03)
    axes.set_xlabel("training labels shuffled")
    low, high = axes.get_ylim()
    # No steps of 2.5, which whole percents would round.
    axes.yaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if high - low > 0.05 else 1))


def _handles(losses: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=loss_colour(index), marker=loss_marker(index), markersize=7)
        for index in range(len(losses))
    ]

"""Embeddings with their class centres: one run, or several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.lettering import plain, shorten
from arcwise.viewing.panel import add_legend
from arcwise.viewing.run_folder import Run
from arcwise.viewing.selection import MOST_PANELS, selected
from arcwise.viewing.style import new_figure
from arcwise.viewing.view import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SAMPLES = 4000


def embeddings_figure(run: Run) -> Figure:
    """Where the test samples point at the end of training."""
    view = _view(run)
    title = f"{run.title} on {shorten(run.data, 30)}: {view.place}"
    width = 5.1 + view.cast.legend_inches() + (view.cast.tag_inches() if view.cast.has_names else 0.0)
    figure = new_figure(max(width, 6.4), 6.1, title=title, subtitle=view.caption[0].upper() + view.caption[1:])
    axes = figure.add_subplot()
    view.panel(axes, inches=5.0).show(view.points, view.centres, view.camera)
    add_legend(figure, view.cast)
    return figure


def compared_embeddings_figure(runs: list[Run]) -> Figure:
    """The same, one panel a loss."""
    runs, selection = selected([run for run in runs if run.final is not None], MOST_PANELS)
    views = [(run, _view(run)) for run in runs]
    if not views:
        raise LeftOut("no run has embeddings")
    columns, rows = grid(len(views))
    inches = 4.3 if columns < 3 else 3.7
    first = views[0][1]
    figure = new_figure(
        columns * inches + 0.3 + first.cast.legend_inches(),
        rows * (inches + 0.3) + 0.75,
        title=f"{shorten(runs[0].data, 30)}: {first.place}",
        subtitle=f"{selection.sentence} "
        + (first.caption[0].upper() + first.caption[1:] if first.projection is None else _projected(views)),
    )
    for place, (run, view) in enumerate(views, start=1):
        axes = figure.add_subplot(rows, columns, place)
        view.panel(axes, inches=inches).show(view.points, view.centres, view.camera)
        axes.set_title(plain(panel_title(run)), loc="center", weight="bold", pad=6)
    add_legend(figure, first.cast)
    return figure


def panel_title(run: Run) -> str:
    """The loss, and the accuracy that was measured where it was."""
    accuracy = run.evaluation.get("accuracy")
    return f"{run.title} · {accuracy:.1%} correct" if isinstance(accuracy, (int, float)) else run.title


def grid(count: int) -> tuple[int, int]:
    """Columns and rows for so many panels: up to three in a row, four as a square."""
    columns = {1: 1, 2: 2, 4: 2}.get(count, 3)
    return columns, -(-count // columns)


def _projected(views: list[tuple[Run, View]]) -> str:
    shares = ", ".join(f"{run.title} {view.projection.share:.0%}" for run, view in views if view.projection)
    first = views[0][1]
    return (
        f"{first.samples} test samples each; flat projections of {first.dim}-D unit vectors; share of the variance shown: "
        f"{shares}. Distances and angles on them are not the real ones. Arrows: class centres. {first.cast.note()}"
    )


def _view(run: Run) -> View:
    final = run.final
    if final is None:
        raise LeftOut("there are no embeddings")
    return View.of(final, run.classes, most=MOST_SAMPLES)

"""Every figure that fits a run or a comparison, into its folder of figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.viewing.confusion import confusion_figure
from arcwise.viewing.decision import decision_figure
from arcwise.viewing.embeddings import compared_embeddings_figure, embeddings_figure
from arcwise.viewing.histograms import angles_figure, compared_angles_figure
from arcwise.viewing.left_out import LeftOut
from arcwise.viewing.margin_curves import margins_figure, target_logit_figure
from arcwise.viewing.raw import raw_figure
from arcwise.viewing.robustness import robustness_figure
from arcwise.viewing.run_folder import Run, open_comparison, open_run
from arcwise.viewing.style import house_style, require_matplotlib, save
from arcwise.viewing.training_curves import compared_training_figure, training_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Painter = Callable[[], "Figure"]


def draw_run(run: Path, *, out: Path | None = None, reporter: Reporter | None = None) -> list[Path]:
    """Draw every figure that fits one run, each as PNG and SVG.

    **Arguments:**

    - `run`: the run folder. Whatever it lacks is left out, and the reporter says what and why.
    - `out`: where the figures go; `figures` inside the run folder unless given.

    **Returns:** the files that were written, in the order in which one would show them.
    """
    require_matplotlib("Drawing figures")
    reporter = reporter if reporter is not None else Reporter()
    source = open_run(run, reporter)
    painters: dict[str, Painter] = {
        "embeddings": lambda: embeddings_figure(source),
        "embeddings_raw": lambda: raw_figure(source),
        "angles": lambda: angles_figure(source),
        "training": lambda: training_figure(source),
        "confusion": lambda: confusion_figure(source),
        "decision": lambda: decision_figure(source),
        "target_logit": lambda: target_logit_figure(source),
    }
    written = _draw(painters, out or source.path / "figures", f"Figures of {source.path.name}", reporter)
    if not written:
        raise RunError(
            f"{source.path} holds nothing that can be drawn: neither embeddings nor metrics.jsonl nor evaluation.json. "
            "Give the folder that `arcwise train` wrote."
        )
    # The margins are the same for every run: they alone do not make a folder a run.
    extra: dict[str, Painter] = {"margins": lambda: margins_figure(source, reporter)}
    return written + _draw(extra, out or source.path / "figures", "Curves of the margins", reporter)


def draw_comparison(folder: Path, *, reporter: Reporter | None = None) -> list[Path]:
    """Draw the figures that set the losses of a comparison side by side (first seed), each as PNG and SVG, into `folder`/figures."""
    require_matplotlib("Drawing figures")
    reporter = reporter if reporter is not None else Reporter()
    runs: list[Run] = open_comparison(folder, reporter)
    painters: dict[str, Painter] = {
        "embeddings": lambda: compared_embeddings_figure(runs),
        "angles": lambda: compared_angles_figure(runs),
        "training": lambda: compared_training_figure(runs),
        "robustness": lambda: robustness_figure(runs),
    }
    written = _draw(painters, Path(folder) / "figures", f"Figures of {Path(folder).name}", reporter)
    if not written:
        raise RunError(f"The runs of {folder} hold nothing that can be drawn. Run `arcwise compare` again.")
    return written


def _draw(painters: dict[str, Painter], folder: Path, title: str, reporter: Reporter) -> list[Path]:
    written: list[Path] = []
    with house_style(), reporter.stage(title, total=len(painters)) as stage:
        for stem, paint in painters.items():
            stage.update(stem)
            try:
                written += save(paint(), folder, stem)
            except LeftOut as reason:
                reporter.say(f"No figure {stem!r}: {reason}.")
            stage.advance()
    return written

"""Embeddings through training as a GIF: of one run, or of several side by side and in step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.viewing.camera import Camera
from arcwise.viewing.embeddings import grid
from arcwise.viewing.gif import Frame, encode
from arcwise.viewing.lettering import plain, shorten
from arcwise.viewing.lettering import width as columns_of
from arcwise.viewing.palette import FAINT, INK, MUTED
from arcwise.viewing.panel import Panel
from arcwise.viewing.reel import Reel
from arcwise.viewing.run_folder import open_comparison, open_run
from arcwise.viewing.selection import MOST_MOVING, selected
from arcwise.viewing.style import house_style, put, require_matplotlib
from arcwise.viewing.timeline import Moment, chosen, timeline
from arcwise.viewing.view import View

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.lines import Line2D

DPI = 100
MOST_SAMPLES, MOST_TOGETHER = 1500, 2400
TURN_DEGREES = 36.0  # how far the camera moves sideways over the whole animation, to end at the best view
TITLE_INCHES, HEAD_INCHES, FOOT_INCHES = 0.36, 0.52, 0.62
NAME = "training.gif"


def animate_run(run: Path, *, reporter: Reporter | None = None) -> Path:
    """Animate one run through its snapshots.

    **Arguments:** `run`: the run folder, with at least two snapshots of embeddings.

    **Returns:** the GIF's path, `figures/training.gif` in the run folder.
    """
    require_matplotlib("Drawing animations")
    reporter = reporter if reporter is not None else Reporter()
    source = open_run(run, reporter)
    return _animate([Reel(source, most=MOST_SAMPLES)], source.path, reporter)


def animate_comparison(folder: Path, *, reporter: Reporter | None = None) -> Path:
    """Animate the losses of a comparison side by side (first seed), all at the same epoch in every frame.

    Of more than six losses six are shown: the baselines, ArcFace, and the most accurate of the others.

    **Arguments:** `folder`: the folder of a comparison, whose runs share at least two snapshots.

    **Returns:** the GIF's path, `figures/training.gif` in `folder`.
    """
    require_matplotlib("Drawing animations")
    reporter = reporter if reporter is not None else Reporter()
    runs, selection = selected(open_comparison(folder, reporter), MOST_MOVING)
    if selection.left_out:
        reporter.say(f"Animation of {Path(folder).name}: {selection.sentence} Each run's folder has its own animation.")
    most = min(MOST_SAMPLES, max(MOST_TOGETHER // len(runs), 500))
    reels = [Reel(run, most=most) for run in runs]
    for reel in reels:
        if not reel.epochs:
            reporter.warn(f"{reel.run.path.name} has no snapshots of embeddings, so the animation goes without it.")
    return _animate([reel for reel in reels if reel.epochs], Path(folder), reporter)


def _animate(reels: list[Reel], folder: Path, reporter: Reporter) -> Path:
    shared = set(reels[0].epochs).intersection(*(reel.epochs for reel in reels)) if reels else set()
    if len(shared) < 2:
        raise RunError(
            f"{folder} cannot be animated: that needs two snapshots of embeddings of the same samples, and there "
            f"{'is one' if len(shared) == 1 else 'are none'}. Train with a snapshot after each epoch."
        )
    epochs = chosen(sorted(shared))
    moments = timeline(len(epochs))
    frames: list[Frame] = []
    with house_style(), reporter.stage(f"Animation of {folder.name}", total=len(moments)) as stage:
        film = Film(reels, epochs)
        for moment in moments:
            frames.append(film.frame(moment))
            stage.advance()
        stage.update("packing frames")
        content = encode(frames, [moment.milliseconds for moment in moments])
    path = folder / "figures" / NAME
    put(path, content)
    return path


class Film:
    """The picture whose parts move. Axes, colours, projections and labels are made once; frames only move them."""

    def __init__(self, reels: list[Reel], epochs: list[float]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.reels, self.epochs = reels, epochs
        columns, rows = grid(len(reels))
        side = {1: 5.4, 2: 4.5}.get(columns, 3.8)
        width = columns * side + (0.6 if columns == 1 else 0.0)
        height = TITLE_INCHES + rows * (HEAD_INCHES + side * 0.86) + FOOT_INCHES
        self._figure = Figure(figsize=(width, height), dpi=DPI)
        self._canvas: FigureCanvasAgg = FigureCanvasAgg(self._figure)
        self._panels: list[Panel] = []
        self._scores = []
        first = reels[0].view
        title = f"{shorten(reels[0].run.data, 24)}: {first.place} through training"
        size = min(13.0, (width - 0.3) * 72 / (0.62 * columns_of(title)))
        self._figure.text(0.5, 1 - 0.12 / height, plain(title), size=size, weight="bold", ha="center", va="top")
        for index, reel in enumerate(reels):
            column, row = index % columns, index // columns
            left = (width - columns * side) / 2 + column * side
            top = height - TITLE_INCHES - row * (HEAD_INCHES + side * 0.86)
            axes = self._figure.add_axes(
                (left / width, (top - HEAD_INCHES - side * 0.86) / height, side / width, side * 0.86 / height)
            )
            middle = (left + side / 2) / width
            self._figure.text(
                middle,
                (top - 0.06) / height,
                plain(shorten(reel.run.title, 24)),
                size=13,
                weight="bold",
                ha="center",
                va="top",
            )
            self._scores.append(
                self._figure.text(
                    middle,
                    (top - 0.29) / height,
                    "",
                    size=12 if columns < 3 and first.projection is None else 11,
                    color=MUTED,
                    ha="center",
                    va="top",
                )
            )
            self._panels.append(reel.view.panel(axes, inches=side * 0.86, label_points=10.5, shaded=False))
        self._add_clock(width, height)

    def _add_clock(self, width: float, height: float) -> None:
        """Below: the epoch, and a line with a tick for each snapshot on which the moment moves along."""
        left, right, level = 1.5 / width, 1 - 0.35 / width, 0.44 / height
        self._span = (left, right)
        self._epoch = self._figure.text(0.22 / width, level, "", size=13, weight="bold", va="center")
        ticks = np.linspace(left, right, len(self.epochs))
        self._line([left, right], level, color=FAINT, linewidth=2.0, zorder=1)
        self._line(
            ticks, level, color="#9aa3b0", linestyle="none", marker="|", markersize=8, markeredgewidth=1.2, zorder=2
        )
        self._passed = self._line([left, left], level, color=INK, linewidth=2.0, zorder=3)
        self._hand = self._line([left], level, color=INK, linestyle="none", marker="o", markersize=8, zorder=4)
        self._figure.text(
            right,
            0.10 / height,
            "accuracy: measured at the marks; movement in between: interpolated",
            size=9.5,
            color=MUTED,
            ha="right",
            va="bottom",
        )

    def _line(self, x: Sequence[float] | NDArray[np.float64], level: float, **style: Any) -> Line2D:
        from matplotlib.lines import Line2D

        line = Line2D(x, [level] * len(x), transform=self._figure.transFigure, **style)
        self._figure.add_artist(line)
        return line

    def frame(self, moment: Moment) -> Frame:
        """The picture of one moment. Numbers on it are those of the last snapshot that was reached."""
        last = len(self.epochs) - 1
        epoch = self.epochs[moment.snapshot]
        following = self.epochs[moment.snapshot + 1] if moment.snapshot < last else None
        for reel, panel, score in zip(self.reels, self._panels, self._scores, strict=True):
            points, centres = reel.at(epoch, following, moment.share)
            panel.show(points, centres, self.camera(reel.view.camera, moment.position / last))
            accuracy = reel.accuracy.get(epoch)
            score.set_text(_score(accuracy, reel.view))
        self._epoch.set_text(f"epoch {epoch:g}")
        left, right = self._span
        now = left + (right - left) * moment.position / last
        self._passed.set_xdata([left, now])
        self._hand.set_xdata([now])
        self._canvas.draw()  # type: ignore[no-untyped-call]
        pixels = self._canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        return np.asarray(pixels)[..., :3].copy()

    @staticmethod
    def camera(best: Camera | None, progress: float) -> Camera | None:
        """A slow turn that comes to rest at the best view."""
        if best is None:
            return None
        return best.turned(-TURN_DEGREES * (1 - progress) ** 2)


def _score(accuracy: float | None, view: View) -> str:
    """The line below a panel's name: only what was measured at the last snapshot, and how much a projection shows."""
    parts = [] if accuracy is None else [f"test accuracy {accuracy:.1%}"]
    if view.projection is not None:
        parts.append(f"{view.projection.share:.0%} of variance shown")
    return " · ".join(parts)

"""How every figure looks, and how it becomes bytes that are the same twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcwise.atomic_write import write_file
from arcwise.errors import MissingExtraError, RunError
from arcwise.viewing.lettering import families, plain, wrap
from arcwise.viewing.lettering import width as columns_of
from arcwise.viewing.palette import FAINT, GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 160
TITLE_POINTS, TEXT_POINTS, SMALL_POINTS = 13.5, 10.5, 9.5
MARGIN_INCHES, LEGEND_ROW_INCHES = 0.14, 0.26


def require_matplotlib(purpose: str) -> None:
    """Raise the error that names the extra where matplotlib is absent."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "viz", purpose) from None


@contextmanager
def house_style() -> Iterator[None]:
    """The style of all figures, for as long as the block runs; the caller's own settings are back afterwards."""
    import matplotlib as mpl

    settings: dict[str, Any] = {
        "font.family": list(families()),
        "font.size": TEXT_POINTS,
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.labelsize": TEXT_POINTS,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.linewidth": 0.8,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.unicode_minus": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": SMALL_POINTS,
        "ytick.labelsize": SMALL_POINTS,
        "legend.fontsize": TEXT_POINTS,
        "legend.frameon": True,
        "legend.framealpha": 0.92,
        "legend.edgecolor": FAINT,
        "text.color": INK,
        "lines.linewidth": 1.8,
        "figure.facecolor": PAPER,
        "savefig.facecolor": PAPER,
        "svg.hashsalt": "arcwise",
        "svg.fonttype": "path",
        "path.simplify": True,
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float, *, title: str, subtitle: str = "", legend: Sequence[str] = ()) -> Figure:
    """A figure `width` by `height` inches with its words on top, and room below them for a legend with these labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def fitted(text: str, letter_points: float) -> str:
        return wrap(plain(text), int((width - 2 * MARGIN_INCHES) * 72 / letter_points))

    head, body = fitted(title, 0.61 * TITLE_POINTS), fitted(subtitle, 0.53 * SMALL_POINTS)
    head_inches = (head.count("\n") + 1) * TITLE_POINTS * 1.25 / 72
    body_inches = (body.count("\n") + 1) * SMALL_POINTS * 1.28 / 72 if subtitle else 0.0
    rows = -(-len(legend) // legend_columns(legend, width)) if legend else 0
    above = MARGIN_INCHES + head_inches + body_inches + 0.1 + rows * LEGEND_ROW_INCHES + 0.04 * bool(rows)
    # Two rows of a legend are part of the height that was asked for; more make the figure higher, not the plots flatter.
    height = max(height + max(rows - 2, 0) * LEGEND_ROW_INCHES, above + 1)
    figure = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(figure)
    figure.set_layout_engine(
        "constrained",
        rect=(0.012, 0.012, 0.976, 1 - above / height - 0.012),
        w_pad=0.06,
        h_pad=0.06,
        wspace=0.03,
        hspace=0.04,
    )
    left = MARGIN_INCHES / width
    figure.text(left, 1 - MARGIN_INCHES / height, head, size=TITLE_POINTS, weight="bold", va="top", linespacing=1.15)
    if subtitle:
        below = 1 - (MARGIN_INCHES + head_inches + 0.03) / height
        figure.text(left, below, body, size=SMALL_POINTS, color=MUTED, va="top", linespacing=1.25)
    return figure


def legend_columns(labels: Sequence[str], inches: float) -> int:
    """How many entries fit beside each other in so many inches."""
    widest = max(map(columns_of, labels)) * 0.58 * TEXT_POINTS / 72 + 0.62
    return int(min(max((inches - 2 * MARGIN_INCHES) // widest, 1), len(labels)))


def legend_above(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """A legend between the words and the picture, in the room that `new_figure` kept for it."""
    engine = figure.get_layout_engine()
    rect = engine.get()["rect"] if engine is not None else (0, 0, 1, 1)
    legend = figure.legend(
        handles,
        ["·"] * len(labels),
        loc="lower left",
        bbox_to_anchor=(MARGIN_INCHES / figure.get_figwidth(), rect[1] + rect[3] + 0.05 / figure.get_figheight()),
        borderaxespad=0.0,
        borderpad=0.0,
        ncols=legend_columns(labels, figure.get_figwidth()),
        frameon=False,
        columnspacing=1.6,
        labelspacing=0.3,
    )
    legend.set_in_layout(False)
    # Texts go in afterwards: a legend drops labels that begin with an underscore.
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(plain(label))


def legend_beside(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """A legend in one column to the right of the picture."""
    legend = figure.legend(
        handles, ["·"] * len(labels), loc="outside right center", frameon=False, handlelength=2.6, labelspacing=0.5
    )
    # Texts go in afterwards: a legend drops labels that begin with an underscore.
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(plain(label))


def bare(axes: Axes, extent: float, centre: tuple[float, float] = (0.0, 0.0)) -> None:
    """A square stage for geometry: equal axes, no frame, no ticks."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(centre[0] - extent, centre[0] + extent)
    axes.set_ylim(centre[1] - extent, centre[1] + extent)


def degree_axis(axes: Axes, upto: float = 180.0) -> None:
    """An x axis in degrees with ticks where people expect them."""
    step = 30 if upto > 100 else 15 if upto > 50 else 10
    axes.set_xlim(0, upto)
    ticks = list(range(0, int(upto) + 1, step))
    axes.set_xticks(ticks, [f"{tick}°" for tick in ticks])


def save(figure: Figure, folder: Path, stem: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write the figure in each format into `folder`, whole or not at all, the same bytes every time."""
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
    _settle(figure)
    contents = {}
    for form in formats:
        buffer = BytesIO()
        figure.savefig(buffer, format=form, dpi=DPI, metadata=metadata[form])
        contents[folder / f"{stem}.{form}"] = buffer.getvalue()
    for path, content in contents.items():
        put(path, content)
    return list(contents)


def _settle(figure: Figure) -> None:
    """Lay the figure out once and for all, with rounded places.

    The layout's solver visits its variables in the order of their memory addresses, so its last digits differ from run to run.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        x, y, width, height = axes.get_position(original=True).bounds
        axes.set_position((round(x, 4), round(y, 4), round(width, 4), round(height, 4)))


def put(path: Path, content: bytes) -> None:
    """Write a file and its folder; a disk that refuses gives one sentence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(
            f"{path} cannot be written ({reason}): free some space, or give another folder with --out."
        ) from error

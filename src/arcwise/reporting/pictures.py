"""The figures of a report: those that a folder has, and those that can still be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arcwise.errors import ArcwiseError, MissingExtraError
from arcwise.progress import Reporter

# In the order in which the report shows them.
RUN_STEMS = (
    "embeddings",
    "embeddings_raw",
    "angles",
    "margins",
    "target_logit",
    "training",
    "confusion",
    "decision",
    "robustness",
)
COMPARISON_STEMS = (
    "embeddings",
    "embeddings_raw",
    "angles",
    "training",
    "robustness",
    "margins",
    "target_logit",
    "decision",
)


@dataclass(frozen=True)
class Picture:
    """A figure on disk that can be shown: what it shows (its stem), and width by height."""

    stem: str
    path: Path
    aspect: float


def find(folder: Path, stems: Sequence[str], reporter: Reporter) -> dict[str, Picture]:
    """The usable figures of a folder by stem, PNG before SVG. A damaged one is named and left out."""
    found: dict[str, Picture] = {}
    for stem in stems:
        for suffix in (".png", ".svg"):
            path = folder / "figures" / f"{stem}{suffix}"
            if not path.is_file():
                continue
            aspect = _aspect(path)
            if aspect is None:
                reporter.warn(f"{path} is damaged and left out of the report.")
                continue
            found[stem] = Picture(stem, path, aspect)
            break
    return found


def draw_missing_run(folder: Path, reporter: Reporter) -> None:
    """Have the figures of a run drawn where it has none. Without what drawing needs, the report goes on without them."""
    if not find(folder, RUN_STEMS, Reporter()):
        _draw("draw_run", folder, reporter)


def draw_missing_comparison(folder: Path, reporter: Reporter) -> None:
    """Have the side-by-side figures of a comparison drawn where it has none."""
    if not find(folder, COMPARISON_STEMS, Reporter()):
        _draw("draw_comparison", folder, reporter)


def _draw(function: str, folder: Path, reporter: Reporter) -> None:
    from arcwise import viewing

    try:
        getattr(viewing, function)(folder, reporter=reporter)
    except MissingExtraError as error:
        reporter.warn(f"The figures of {folder} are missing from the report: {error}")
    except (ArcwiseError, OSError) as error:
        reporter.warn(f"The figures of {folder} could not be drawn: {error}")


def _aspect(path: Path) -> float | None:
    if path.suffix == ".svg":
        return _svg_aspect(path)
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            image.verify()
        with Image.open(path) as image:
            image.load()  # verify() does not see a file that ends too early
            width, height = image.size
    except (OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError):
        return None
    return width / height if width and height else None


def _svg_aspect(path: Path) -> float | None:
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(path.read_bytes())
        box = root.get("viewBox", "").replace(",", " ").split()
        width, height = (float(box[2]), float(box[3])) if len(box) == 4 else (0.0, 0.0)
    except (OSError, ValueError, ElementTree.ParseError):
        return None
    return width / height if width > 0 and height > 0 else None

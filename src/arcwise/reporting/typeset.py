"""From a document as plain data to a PDF: typst, the fonts that come inside it, and nothing from the network.

The data reaches the template as a JSON file. No text of a user is ever put into markup, so there is nothing to escape.
"""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from arcwise.errors import ArcwiseError, MissingExtraError

FONTS = ("New Computer Modern", "New Computer Modern Math", "DejaVu Sans Mono")
"""All of them are inside the typst package, so the same report comes out the same on every machine."""

TEMPLATES = ("report.typ", "technique.typ", "layout.typ")


class TypesettingError(ArcwiseError):
    """The report could not be set. This is a fault of the template, not of the user."""


def typeset(document: Mapping[str, Any], pictures: Mapping[str, Path], date: datetime.datetime | None) -> bytes:
    """Set the document.

    Args:
        document: what the template shows; only text, numbers, lists and tables of these.
        pictures: the file for every picture name that the document mentions.
        date: the date that the PDF carries; with it fixed, the same document gives the same bytes. None: no run is left to date it.
    """
    typst = require_typst()
    with tempfile.TemporaryDirectory(prefix="arcwise-report-") as temporary:
        root = Path(temporary)
        for template in TEMPLATES:
            (root / template).write_bytes((resources.files("arcwise.reporting") / template).read_bytes())
        for name, path in pictures.items():
            shutil.copyfile(path, root / name)
        readable, needs_system_fonts = _readable(document, typst)
        (root / "document.json").write_text(json.dumps(readable, ensure_ascii=False), encoding="utf-8")
        try:
            pdf = typst.compile(
                str(root / "report.typ"),
                root=str(root),
                format="pdf",
                ignore_system_fonts=not needs_system_fonts,
                timestamp=date or datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
            )
        except typst.TypstError as error:
            details = getattr(error, "diagnostic", None) or error
            raise TypesettingError(
                f"The report could not be typeset with typst: {details} "
                "Please report this with the run's folder; the run itself is intact."
            ) from error
    return bytes(pdf)


def require_typst() -> Any:
    """The typst package, or an error that says how to install it."""
    try:
        import typst
    except ImportError as error:
        raise MissingExtraError("typst", "report", "Writing a report") from error
    return typst


def _readable(document: Mapping[str, Any], typst: Any) -> tuple[Any, bool]:
    """The document with every character that no font can show written as its number, and whether system fonts are needed."""
    printable = _each_text(document, _printable)
    unusual = "".join(sorted({character for text in _texts(printable) for character in text if ord(character) > 0x24F}))
    hidden = _without_glyph(unusual, typst, system_fonts=False)
    if not hidden:
        return printable, False
    numbers = {ord(c): f"[U+{ord(c):04X}]" for c in _without_glyph(hidden, typst, system_fonts=True)}
    return _each_text(printable, lambda text: text.translate(numbers)), True


def _without_glyph(characters: str, typst: Any, *, system_fonts: bool) -> str:
    """Those of the characters for which there is no glyph, found by halving: typst refuses archival PDFs that lack one."""
    if not characters:
        return ""
    source = '#set text(font: ("New Computer Modern", "DejaVu Sans Mono"))\n#sys.inputs.at("characters")'
    try:
        typst.compile(
            source.encode(),
            format="pdf",
            pdf_standards=["a-2b"],
            ignore_system_fonts=not system_fonts,
            sys_inputs={"characters": " ".join(characters)},
        )
    except typst.TypstError:
        if len(characters) == 1:
            return characters
        middle = len(characters) // 2
        return _without_glyph(characters[:middle], typst, system_fonts=system_fonts) + _without_glyph(
            characters[middle:], typst, system_fonts=system_fonts
        )
    return ""


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _texts(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _texts(value)


def _each_text(part: Any, change: Callable[[str], str]) -> Any:
    if isinstance(part, str):
        return change(part)
    if isinstance(part, Mapping):
        return {key: _each_text(value, change) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_each_text(value, change) for value in part]
    return part


def _printable(text: str) -> str:
    """Control characters, and the halves of characters that a broken file name may hold, become a visible mark."""
    return "".join(
        "\ufffd" if (character < " " and character != "\n") or "\ud800" <= character <= "\udfff" else character
        for character in text.expandtabs(4)
    )

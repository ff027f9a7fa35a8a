"""Pages and pictures into a folder."""

from __future__ import annotations

from pathlib import Path

from arcwise.documentation.catalogue import catalogue
from arcwise.documentation.pages import index, page
from arcwise.progress import Reporter
from arcwise.viewing.style import house_style, put, require_matplotlib, save


def pages() -> dict[str, str]:
    """Every page by its file name."""
    entries = catalogue()
    return {"index.md": index(entries)} | {f"{entry.stem}.md": page(entry, entries) for entry in entries}


def write(folder: Path, *, reporter: Reporter | None = None) -> list[Path]:
    """Write all pages with their pictures; pages and pictures of losses that are gone are removed."""
    require_matplotlib("Drawing the curves of the losses")
    reporter = reporter if reporter is not None else Reporter()
    written = []
    for name, text in pages().items():
        put(folder / name, text.encode())
        written.append(folder / name)
    entries = catalogue()
    with house_style(), reporter.stage("drawing", total=len(entries)) as stage:
        for entry in entries:
            stage.update(entry.stem)
            written += save(entry.picture(), folder / "pictures", entry.stem, formats=("svg",))
            stage.advance()
    for path in [*folder.glob("*.md"), *folder.glob("pictures/*.svg")]:
        if path not in written:
            path.unlink()
    return written

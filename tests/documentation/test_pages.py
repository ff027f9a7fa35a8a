"""What is in docs/losses is what the docstrings say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arcwise import losses, margins
from arcwise.documentation.catalogue import Entry, catalogue
from arcwise.documentation.pages import index, page
from arcwise.documentation.writing import pages, write
from arcwise.training.loss_spec import parse_loss
from arcwise.viewing.style import house_style

FOLDER = Path(__file__).parent.parent.parent / "docs" / "losses"
ENTRIES = catalogue()
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.stem)


def test_what_is_committed_is_what_the_docstrings_say() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert committed == pages(), "run `python -m arcwise.documentation`"


def test_every_page_has_its_picture_and_no_picture_is_left_over() -> None:
    pictures = {path.stem: path for path in (FOLDER / "pictures").iterdir()}
    assert set(pictures) == {entry.stem for entry in ENTRIES}, "run `python -m arcwise.documentation`"
    for path in pictures.values():
        assert path.suffix == ".svg"
        assert 10_000 < path.stat().st_size < 150_000, path.name


def test_every_loss_that_can_be_trained_has_a_page() -> None:
    stems = [entry.stem for entry in ENTRIES]
    assert len(stems) == len(set(stems))
    assert {"softmax", "sub-centres", *margins.names(), *losses.names()} == set(stems)


@every_entry
def test_the_loss_as_typed_can_be_read(entry: Entry) -> None:
    parse_loss(entry.typed)


@every_entry
def test_every_parameter_is_explained_and_none_that_is_not_there(entry: Entry) -> None:
    assert list(entry.words.parameters) == list(entry.defaults)
    assert set(entry.search) <= set(entry.defaults)


@every_entry
def test_every_page_has_every_part(entry: Entry) -> None:
    text = page(entry, ENTRIES)
    for part in (
        "# ",
        "](pictures/",
        "```text",
        "## When to take it",
        "```python",
        "```console",
        "## Paper",
        "Prefer ",
    ):
        assert part in text
    assert ("| parameter |" in text) == bool(entry.defaults)


@every_entry
def test_the_picture_can_be_drawn_without_its_folder(entry: Entry) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra viz")
    with house_style():
        figure = entry.picture()
    lines = [line for axes in figure.axes for line in axes.get_lines()]
    assert lines
    for line in lines:
        assert np.abs(np.asarray(line.get_ydata(), dtype=float)).max() < 1e3, line.get_label()


def test_a_new_margin_has_its_page_without_further_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra viz")

    @dataclass(frozen=True)
    class Halved(margins.CosFace):
        """Half of the cosine is asked for.  Nobody et al. 2030.

        An idea.

        Prefer `ArcFace`.

        Asks for: half.
        Take it when: never.

        Formula:
            target: s·(cos θ_y − m/2)

        Args:
            m: twice the margin.

        Paper:
            A. Nobody. Halves. 2030.
        """

        m: float = 0.3

    monkeypatch.setitem(margins.base._registry, "halved", Halved)
    entries = catalogue()
    (entry,) = (entry for entry in entries if entry.stem == "halved")
    text = page(entry, entries)
    assert text.startswith("<!--")
    assert "# Halved\n\nHalf of the cosine is asked for.\n\nAn idea.\n" in text
    assert "| `m` | `0.3` |" in text
    assert "margin=arcwise.margins.Halved(m=0.3)" in text
    assert "| [Halved](halved.md) | `halved(m=0.3)` | half | never |" in index(entries)
    with house_style():
        assert entry.picture().axes


def test_names_in_backticks_become_links_but_not_on_their_own_page_nor_in_code() -> None:
    cosface = next(entry for entry in ENTRIES if entry.stem == "cosface")
    text = page(cosface, ENTRIES)
    assert "[`ArcFace`](arcface.md)" in text
    assert "[`CosFace`]" not in text
    blocks = "".join(re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL))
    assert ".md" not in blocks


def test_pages_of_losses_that_are_gone_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra viz")
    few = [entry for entry in ENTRIES if entry.stem in {"arcface", "intra"}]
    monkeypatch.setattr("arcwise.documentation.writing.catalogue", lambda: few)
    (tmp_path / "pictures").mkdir()
    for gone in ("gone.md", "pictures/gone.svg"):
        (tmp_path / gone).write_text("old")
    write(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == [
        "arcface.md",
        "index.md",
        "intra.md",
        "pictures/arcface.svg",
        "pictures/intra.svg",
    ]


def test_pictures_are_the_same_bytes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra viz")
    some = [entry for entry in ENTRIES if entry.stem in {"elasticface", "adaface", "triplet"}]
    monkeypatch.setattr("arcwise.documentation.writing.catalogue", lambda: some)
    contents: list[dict[str, Any]] = []
    for name in ("first", "second"):
        write(tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / name / "pictures").iterdir()})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 3

from __future__ import annotations

import datetime
import io
import sys
from pathlib import Path
from typing import Any

import pypdf
import pytest
from PIL import Image

from arcwise.errors import MissingExtraError
from arcwise.progress import Reporter
from arcwise.reporting.document import document
from arcwise.reporting.grouping import gather
from arcwise.reporting.typeset import FONTS, TypesettingError, typeset

DATE = datetime.datetime(2025, 6, 15, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def content(comparison: Path) -> dict[str, Any]:
    made, _ = document(gather([comparison], Reporter()), Reporter())
    for part in made["results"]:
        part["figures"] = []
    made["technique"]["figures"] = []
    return made


def pages(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages)


MARKUP = [
    "#hash #emit()", "$dollar$ *star* _under_", "<label> @reference", "back\\slash \\u{41}", "`tick` ```block```",
    "\"double\" 'single'", "[bracket] {brace} //comment /*c*/", "--dashes-- ~tilde~ =equals= - + /", "ümlaut ñ Ж α",
]  # fmt: skip


def test_text_of_a_user_is_shown_as_it_is(content: dict[str, Any]) -> None:
    shown = pages(typeset({**content, "summary": [f"begin {text} end" for text in MARKUP]}, {}, DATE)).replace(
        "\n", " "
    )
    assert [text for text in MARKUP if f"begin {text} end" not in shown] == []


def test_text_that_the_fonts_may_lack_never_breaks_a_report(content: dict[str, Any]) -> None:
    hard = ["猫と犬", "😀", "عربى", "a\x07b\x00c", "\ud800", "e\u0301", "\u202eabc"]
    shown = pages(typeset({**content, "summary": [f"begin{i} {text} end{i}" for i, text in enumerate(hard)]}, {}, DATE))
    assert all(f"begin{i}" in shown and f"end{i}" in shown for i in range(len(hard)) if i != 6)
    assert "a\ufffdb\ufffdc" in shown


def test_a_character_without_any_glyph_is_shown_by_its_number(content: dict[str, Any]) -> None:
    never_assigned = "\U000e0fff"
    private = "\U0010fffd"
    shown = pages(typeset({**content, "summary": [f"begin {private}{never_assigned} end"]}, {}, DATE))
    assert "[U+10FFFD]" in shown


def test_the_same_document_gives_the_same_bytes(content: dict[str, Any]) -> None:
    assert typeset(content, {}, DATE) == typeset(content, {}, DATE)


def test_only_the_fonts_inside_typst_are_used(content: dict[str, Any]) -> None:
    reader = pypdf.PdfReader(io.BytesIO(typeset(content, {}, DATE)))
    used = set()
    for page in reader.pages:
        for font in page["/Resources"].get("/Font", {}).values():  # type: ignore[attr-defined]
            used.add(str(font.get_object()["/BaseFont"]).partition("+")[2])
    families = {family.replace(" ", "").replace("NewComputerModern", "NewCM") for family in FONTS}
    assert used
    assert all(any(name.startswith(family) for family in families) for name in used), used


def test_pictures_are_shown(content: dict[str, Any], tmp_path: Path) -> None:
    Image.new("RGB", (300, 100), "red").save(tmp_path / "red.png")
    figure = {
        "stem": "angles",
        "panels": [{"file": "figure-1.png", "aspect": 3.0, "label": ""}],
        "caption": "Red.",
        "highest": 9.5,
    }
    changed = {**content, "technique": {**content["technique"], "figures": [figure]}}
    reader = pypdf.PdfReader(io.BytesIO(typeset(changed, {"figure-1.png": tmp_path / "red.png"}, DATE)))
    assert sum(len(page.images) for page in reader.pages) == 1


def test_a_fault_of_the_template_is_one_error_of_ours(content: dict[str, Any]) -> None:
    with pytest.raises(TypesettingError, match="could not be typeset"):
        typeset({key: value for key, value in content.items() if key != "title"}, {}, DATE)


def test_without_typst_the_install_command_is_named(content: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(MissingExtraError, match=r"Writing a report needs typst.*pip install 'arcwise\[report\]'"):
        typeset(content, {}, DATE)

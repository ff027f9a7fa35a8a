from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from arcwise.progress import Reporter
from arcwise.reporting.pictures import find


class Listening(Reporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_a_png_is_preferred_and_its_shape_is_known(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    Image.new("RGB", (200, 100)).save(tmp_path / "figures" / "angles.png")
    (tmp_path / "figures" / "angles.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 1"/>')
    (tmp_path / "figures" / "training.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 1"/>')
    found = find(tmp_path, ("angles", "training", "confusion"), Reporter())
    assert {stem: (picture.path.name, picture.aspect) for stem, picture in found.items()} == {
        "angles": ("angles.png", 2.0),
        "training": ("training.svg", 3.0),
    }


@pytest.mark.parametrize("content", [b"", b"not a picture", "truncated"])
def test_a_damaged_picture_is_named_and_left_out(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "figures" / "angles.png"
    path.parent.mkdir()
    if isinstance(content, str):
        Image.effect_noise((200, 100), 50).save(path)
        content = path.read_bytes()[:2000]
    path.write_bytes(content)
    reporter = Listening()
    assert find(tmp_path, ("angles",), reporter) == {}
    assert "angles.png is damaged" in reporter.warnings[0]

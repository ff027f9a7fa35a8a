from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from arcwise.errors import RunError
from arcwise.viewing import draw_label_noise
from arcwise.viewing.label_noise import label_noise_figure
from arcwise.viewing.style import house_style


def result(seeds: int = 3) -> dict[str, Any]:
    def cells(fall: float) -> list[dict[str, Any]]:
        return [
            {
                "share": share,
                "scores": {"accuracy": [0.98 - fall * share + 0.002 * seed for seed in range(seeds)]},
                "found": [0.9 + 0.01 * seed for seed in range(seeds)] if share else [],
                "recovered": None,
            }
            for share in (0.0, 0.1, 0.2, 0.4)
        ]

    return {
        "data": "digits",
        "scores": {"accuracy": "Accuracy, nearest class mean by angle"},
        "shares": [0.0, 0.1, 0.2, 0.4],
        "seeds": seeds,
        "losses": {"arcface, again without those listed": cells(0.2), "arcface-centers3": cells(0.1)},
    }


def test_the_curve_is_drawn_from_what_was_measured_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "label_noise.json").write_text(json.dumps(result()))
    paths = draw_label_noise(tmp_path)
    assert [path.name for path in paths] == ["label_noise.png", "label_noise.svg"]
    with Image.open(paths[0]) as picture:
        assert min(picture.size) > 400
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in draw_label_noise(tmp_path)] == before


@pytest.mark.parametrize("seeds", [1, 3])
def test_both_sides_show_every_loss_and_no_more_than_all(seeds: int) -> None:
    with house_style():
        figure = label_noise_figure(result(seeds))
        left, right = figure.axes
        assert len(left.containers) == len(right.containers) == 2
        assert [len(np.asarray(axes.lines[0].get_xdata())) for axes in (left, right)] == [4, 3]
        assert max(left.get_ylim()[1], right.get_ylim()[1]) <= 1.02
        words = " ".join(text.get_text() for text in figure.texts)
        named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["ArcFace, again without those listed", "ArcFace with 3 centres"]
    assert ("One seed." in words) == (seeds == 1)
    assert ("Mean over 3 seeds" in words) == (seeds == 3)


def test_a_folder_without_the_measurement_is_named(tmp_path: Path) -> None:
    message = f"{tmp_path} holds no label_noise.json that can be read. Give the folder that `arcwise bench label-noise` wrote."
    with pytest.raises(RunError, match=re.escape(message)):
        draw_label_noise(tmp_path)

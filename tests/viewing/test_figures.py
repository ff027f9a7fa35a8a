"""The figures of a run and of a comparison, as files."""

from __future__ import annotations

import json
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from arcwise.errors import MissingExtraError, RunError
from arcwise.progress import Reporter
from arcwise.viewing import draw_comparison, draw_run
from arcwise.viewing.palette import CLASS_COLOURS, rgb
from arcwise.viewing.style import DPI

MakeRun = Callable[..., Path]
SMALL = {"num_samples": 200, "num_final": 400, "num_epochs": 2}
OF_EVERY_RUN = {"embeddings", "embeddings_raw", "angles", "training", "confusion", "margins"}


class Listener(Reporter):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, text: str = "") -> None:
        self.heard.append(text)

    def warn(self, text: str) -> None:
        self.heard.append(text)


def stems(paths: list[Path]) -> set[str]:
    return {path.stem for path in paths}


@pytest.fixture(scope="module")
def figures(drawn_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[str]]:
    """The figures of the sample run, and what was said while they were drawn."""
    listener = Listener()
    return draw_run(drawn_run, out=tmp_path_factory.mktemp("out") / "figures", reporter=listener), listener.heard


def test_a_run_gets_every_figure_that_fits_as_png_and_svg(figures: tuple[list[Path], list[str]]) -> None:
    paths, heard = figures
    assert stems(paths) == {*OF_EVERY_RUN, "target_logit"}
    assert len(paths) == 2 * len(stems(paths))
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(path.name for path in paths)
    assert any("decision" in text and "have 3" in text for text in heard)
    for path in paths:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
            assert path.stat().st_size < 1_500_000
        else:
            with Image.open(path) as picture:
                assert min(picture.size) >= 3.5 * DPI
                assert picture.size[0] <= 15 * DPI


def test_the_embeddings_picture_shows_every_class_in_its_colour(figures: tuple[list[Path], list[str]]) -> None:
    with Image.open(figures[0][0]) as picture:
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    for colour in CLASS_COLOURS[:10]:
        wanted = np.round(np.array(rgb(colour)) * 255)
        assert (np.abs(pixels - wanted).max(axis=1) <= 2).sum() > 60


def test_figures_are_the_same_bytes_every_time(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", **SMALL)
    first = {path.name: path.read_bytes() for path in draw_run(run, out=tmp_path / "a")}
    second = {path.name: path.read_bytes() for path in draw_run(run, out=tmp_path / "b")}
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.parametrize(("loss", "more"), [("arcface", {"decision", "target_logit"}), ("softmax", {"decision"})])
def test_two_dimensions_add_decision_regions(loss: str, more: set[str], tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", loss=loss, dim=2, **SMALL)
    paths = draw_run(run)
    assert stems(paths) == OF_EVERY_RUN | more
    assert {path.parent for path in paths} == {run / "figures"}


@pytest.mark.parametrize(
    "options", [{"dim": 16}, {"dim": 2, "classes": ["a", "b"]}, {"classes": [f"c{i}" for i in range(130)]}]
)
def test_wide_embeddings_two_classes_and_hundreds_are_drawn(
    options: dict[str, object], tmp_path: Path, make_run: MakeRun
) -> None:
    assert stems(draw_run(make_run(tmp_path / "run", **{**SMALL, **options}))) >= OF_EVERY_RUN


def test_names_with_markup_emoji_and_any_script_are_drawn_without_a_warning(tmp_path: Path, make_run: MakeRun) -> None:
    names = [
        "$x_1$",
        "_private",
        "<b>&amp;</b>",
        "日本語",
        "🦊😀",
        "back\\slash",
        "two\nlines",
        "",
        "\ue000",
        "x" * 200,
    ]
    run = make_run(tmp_path / "run", classes=names, data="$\\frac{data}", **SMALL)
    for path in draw_run(run):
        if path.suffix == ".svg":
            ElementTree.parse(path)


def test_what_is_missing_is_left_out_and_named(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", **SMALL)
    (run / "evaluation.json").unlink()
    (run / "metrics.jsonl").write_text("")
    listener = Listener()
    assert stems(draw_run(run, reporter=listener)) == {
        "embeddings",
        "embeddings_raw",
        "confusion",
        "margins",
        "target_logit",
    }
    assert any("'angles'" in text and "histogram" in text for text in listener.heard)
    assert any("'training'" in text for text in listener.heard)


def test_metrics_alone_are_enough_for_the_training_curves(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", **SMALL)
    shutil.rmtree(run / "embeddings")
    (run / "evaluation.json").unlink()
    (run / "config.toml").unlink()
    assert stems(draw_run(run)) == {"training", "margins"}


def test_a_folder_with_nothing_in_it_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"holds nothing that can be drawn.*`arcwise train` wrote"):
        draw_run(tmp_path)
    assert not (tmp_path / "figures").exists()


def test_a_comparison_sets_the_losses_side_by_side(tmp_path: Path, make_comparison: MakeRun) -> None:
    folder = make_comparison(tmp_path / "compare", **SMALL)
    paths = draw_comparison(folder)
    assert stems(paths) == {"embeddings", "angles", "training", "robustness"}
    assert {path.parent for path in paths} == {folder / "figures"}
    with Image.open(folder / "figures" / "embeddings.png") as picture:
        assert picture.width > 1.5 * picture.height


def test_a_comparison_goes_on_without_what_one_run_lacks(tmp_path: Path, make_comparison: MakeRun) -> None:
    folder = make_comparison(tmp_path / "compare", losses=("softmax", "arcface", "cosface"), **SMALL)
    evaluation = folder / "softmax-seed0" / "evaluation.json"
    evaluation.write_text(json.dumps({"accuracy": 0.5}))
    shutil.rmtree(folder / "arcface-seed0" / "embeddings")
    assert stems(draw_comparison(folder)) == {"embeddings", "angles", "training", "robustness"}


def test_the_users_own_matplotlib_settings_are_left_alone(tmp_path: Path, make_run: MakeRun) -> None:
    before = dict(mpl.rcParams)
    draw_run(make_run(tmp_path / "run", **SMALL))
    assert dict(mpl.rcParams) == before


def test_a_folder_that_cannot_be_written_is_one_sentence_and_nothing_is_left(tmp_path: Path, make_run: MakeRun) -> None:
    run = make_run(tmp_path / "run", **SMALL)
    (run / "figures").write_text("a file where the folder should be")
    with pytest.raises(RunError, match=r"cannot be written \(.*\): .*--out"):
        draw_run(run)
    assert (run / "figures").read_text() == "a file where the folder should be"


def test_without_matplotlib_the_error_names_the_extra(drawn_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'arcwise\[viz\]'"):
        draw_run(drawn_run)

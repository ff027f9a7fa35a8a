from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
SHORT = ("--dim", 3, "--epochs", 1, "--no-figures")


@pytest.fixture(scope="module")
def whole(
    start: Callable[..., subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, str]:
    """The bare command with everything it draws and writes: the folder, standard output and standard error; read only."""
    for package in ("sklearn", "matplotlib", "typst"):
        pytest.importorskip(package)
    home = tmp_path_factory.mktemp("whole")
    child = start("compare", "digits", "--dim", 2, "--epochs", 2, cwd=home)
    out, err = child.communicate()
    assert child.returncode == 0, err
    return home / "runs" / "digits-compare", out, err


def test_the_command_leaves_table_figures_animations_and_report(whole: tuple[Path, str, str]) -> None:
    folder, _, _ = whole
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF")
    for place in (folder, folder / "softmax-seed0", folder / "arcface-seed0"):
        drawn = {path.name for path in (place / "figures").iterdir()}
        assert {"embeddings.png", "embeddings.svg", "angles.png", "training.png", "training.gif"} <= drawn
        assert (place / "figures" / "training.gif").stat().st_size < 8e6
        assert (place / "figures" / "training.gif").read_bytes().startswith(b"GIF89a")
    for loss in ("softmax", "arcface"):
        figures = folder / f"{loss}-seed0" / "figures"
        assert (figures / "decision.png").is_file()
        assert (figures / "confusion.png").is_file()
    assert (
        json.loads((folder / "comparison.json").read_text())["command"] == "arcwise compare digits --dim 2 --epochs 2"
    )


def test_the_table_is_on_standard_output_and_progress_is_not(whole: tuple[Path, str, str]) -> None:
    _, out, err = whole
    assert out.startswith("\nruns/digits-compare · runs/digits-compare/report.pdf\n")
    assert "* the best of its column" in out
    assert out.endswith("\nNext: arcwise report runs/digits-compare --bundle report.zip\n")
    assert "2 runs, each 2 epochs of vgg8 in 2 dimensions" in err
    for progress in ("training softmax on digits", "training arcface on digits"):
        assert progress in err
        assert progress not in out


def test_the_table_marks_the_loss_that_is_best_even_if_it_is_softmax(whole: tuple[Path, str, str]) -> None:
    folder, out, _ = whole
    rows = json.loads((folder / "comparison.json").read_text())["rows"]
    values = {loss: rows[loss]["values"]["own_angle"][0] for loss in ("softmax", "arcface")}
    best = min(values, key=lambda loss: values[loss])
    line = next(line for line in out.splitlines() if "angle to own centre" in line)
    for loss, value in values.items():
        assert f"{value:.1f}°" in line
        assert (f"{value:.1f}°*" in line) == (loss == best)


def test_json_over_several_seeds_is_valid_and_alone_on_standard_output(arcwise: Command) -> None:
    done = arcwise("compare", "digits", *SHORT, "--seeds", 2, "--losses", "softmax,cosface(m=0.2)", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out, parse_constant=pytest.fail)
    assert list(told["losses"]) == ["softmax", "cosface-m0.2"]
    for columns in told["losses"].values():
        assert len(columns["accuracy"]["values"]) == 2
        assert columns["accuracy"]["mean"] == pytest.approx(sum(columns["accuracy"]["values"]) / 2)


def test_several_seeds_show_mean_and_deviation(arcwise: Command) -> None:
    done = arcwise("compare", "digits", *SHORT, "--seeds", 2, "--losses", "arcface", "--quiet")
    assert done.code == 0
    assert " ± " in done.out
    assert "* the best" not in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["digist"], "Did you mean digits?"),
        (["digits", "--losses", "softmax,arcfase"], "Did you mean arcface?"),
        (["digits", "--losses", "softmax,softmax"], "the loss softmax is named twice."),
        (["digits", "--losses", "arcface(m=28.6)"], "If that is in degrees"),
        (["digits", "--seeds", "0"], "seeds must be at least 1; got 0."),
        (["digits", "--fallback", "digist"], "digist"),
        (["digits", "--backbone", "vgg9"], "Did you mean vgg8?"),
        (["digits", "--device", "gpu"], "there is no device 'gpu'."),
        (["digits", "--out", "file"], "file already exists and is never overwritten."),
        (["digits", "--out", "file/below"], "cannot be written: Not a directory."),
        (["digits", "--set", "train.lrr=1"], "Did you mean train.lr?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence_and_leaves_nothing_in_the_way(
    words: list[str], message: str, arcwise: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    done = arcwise("compare", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.sentence
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "file"]


def test_a_comparison_in_the_way_is_left_alone(
    whole: tuple[Path, str, str], arcwise: Command, snapshot: Command
) -> None:
    folder, _, _ = whole
    before = snapshot(folder)
    done = arcwise("compare", "digits", "--dim", 2, "--epochs", 2, "--out", folder)
    assert done.code == 2
    assert "Continue it with --resume, or write elsewhere with --out DIR." in done.sentence
    done = arcwise("compare", "digits", "--dim", 2, "--epochs", 3, "--out", folder, "--resume")
    assert done.code == 2
    assert "was begun with other settings than this command's" in done.sentence
    assert snapshot(folder) == before

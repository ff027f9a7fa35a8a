"""Ctrl-C, SIGTERM and kill -9 to the real command, and going on from there."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither SIGTERM nor kill -9")

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
TIMINGS = ("seconds", "images_per_second")
TRAINING = ("digits", "--dim", 3, "--epochs", 8)


def written(run: Path) -> dict[str, Any]:
    """What the run wrote, but for how long it took."""
    state = load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])
    files = sorted((run / "embeddings").iterdir())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    evaluation = json.loads((run / "evaluation.json").read_text())
    return {
        **state,
        **{f"{file.name} {key}": value for file in files for key, value in load_file(file).items()},
        "metrics": [{key: value for key, value in line.items() if key not in TIMINGS} for line in lines],
        "evaluation": {key: value for key, value in evaluation.items() if key != "train_seconds"},
    }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        equal = torch.equal(found[key], value) if isinstance(value, torch.Tensor) else found[key] == value
        assert equal, key


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What training writes when nobody stops it."""
    pytest.importorskip("sklearn")
    from arcwise import train

    torch.set_num_threads(1)
    return written(train("digits", dim=3, epochs=8, out=tmp_path_factory.mktemp("whole") / "run").path)


def wait_for(child: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    """Until the child has got so far; it must not have ended before."""
    while not happened():
        assert child.poll() is None, child.communicate()
        time.sleep(0.001)


@pytest.mark.parametrize("lines", [1, 60])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_polite_stop_saves_everything_and_says_how_to_go_on(
    number: signal.Signals, lines: int, start: Start, arcwise: Command, tmp_path: Path, never_stopped: dict[str, Any]
) -> None:
    child = start("train", *TRAINING, "--out", "my run", "--no-figures", cwd=tmp_path)
    metrics = tmp_path / "my run" / "metrics.jsonl"
    wait_for(child, lambda: metrics.exists() and metrics.read_text().count("\n") >= lines)
    child.send_signal(number)
    out, err = child.communicate()
    assert child.returncode == (130 if number == signal.SIGINT else 143)
    assert out == ""
    assert "Traceback" not in err
    said = f"arcwise: stopped by {number.name}; everything is saved. Go on with: "
    assert err.splitlines()[-1].startswith(said)
    command = shlex.split(err.splitlines()[-1].removeprefix(said))
    assert command == ["arcwise", "train", "my run", "--resume"]
    done = arcwise(*command[1:], "--no-figures")
    assert done.code == 0
    assert "resuming my run at step" in done.err
    assert_same(written(tmp_path / "my run"), never_stopped)


@pytest.mark.parametrize("kills", [[3], [20, 50, 120]], ids=str)
def test_kill_nine_at_any_moment_loses_nothing_that_was_saved(
    kills: list[int], start: Start, arcwise: Command, tmp_path: Path, never_stopped: dict[str, Any]
) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"

    def saved() -> int:
        return max((int(path.stem[5:]) for path in checkpoints.glob("step-????????.json")), default=0)

    begin = ("train", *TRAINING, "--out", "run", "--set", "train.checkpoint_seconds=0", "--quiet", "--no-figures")
    for number, kill in enumerate(kills):
        again = ("--resume",) if number else ()
        child = start(*begin, *again, cwd=tmp_path)
        wait_for(child, lambda kill=kill: saved() >= kill)  # type: ignore[misc]
        child.kill()
        child.communicate()
        assert child.returncode == -signal.SIGKILL
    done = arcwise("train", "run", "--resume", "--no-figures")
    assert done.code == 0
    assert_same(written(tmp_path / "run"), never_stopped)


def test_a_stop_is_told_even_to_those_who_want_no_progress(start: Start, tmp_path: Path) -> None:
    child = start("train", *TRAINING, "--quiet", "--json", "--out", "run", cwd=tmp_path)
    wait_for(child, (tmp_path / "run" / "metrics.jsonl").exists)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate()
    assert (child.returncode, out) == (143, "")
    assert err == "arcwise: stopped by SIGTERM; everything is saved. Go on with: arcwise train run --resume\n"


def test_a_comparison_stopped_in_its_second_run_goes_on_with_the_command_it_names(
    start: Start, arcwise: Command, tmp_path: Path
) -> None:
    words = ("compare", "digits", "--dim", 3, "--epochs", 8, "--out", "both", "--no-figures")
    child = start(*words, cwd=tmp_path)
    wait_for(child, (tmp_path / "both" / "arcface-seed0" / "metrics.jsonl").exists)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    command = err.splitlines()[-1].partition("Go on with: ")[2]
    assert command == "arcwise compare digits --dim 3 --epochs 8 --out both --no-figures --resume"
    first = (tmp_path / "both" / "softmax-seed0" / "evaluation.json").read_bytes()
    assert arcwise(*shlex.split(command)[1:]).code == 0
    assert (tmp_path / "both" / "softmax-seed0" / "evaluation.json").read_bytes() == first
    record = json.loads((tmp_path / "both" / "comparison.json").read_text())
    assert set(record["rows"]) == {"softmax", "arcface"}

"""arcwise tune, and runs at the same time, by the real command with real signals."""

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

from arcwise.data import Split
from arcwise.training.tuned_settings import read_tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has neither SIGTERM nor kill -9")

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
WORDS = ("--losses", "softmax,arcface", "--trials", 4, "--dim", 3, "--epochs", 30, "--batch-size", 16)


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Rows of five classes, as a file."""
    numpy = pytest.importorskip("numpy")
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(5).repeat_interleave(24)
    rows = Split(torch.eye(6)[labels] * 3 + torch.randn(120, 6, generator=generator), labels)
    numpy.savez(tmp_path / "blobs.npz", features=rows.images.numpy(), labels=labels.numpy())
    return tmp_path / "blobs.npz"


def scores(folder: Path) -> dict[str, list[float]]:
    """What the trials that are done scored, by loss."""
    try:
        record = json.loads((folder / "tuning.json").read_text())
    except FileNotFoundError:
        return {}
    return {label: [trial["score"] for trial in loss["trials"]] for label, loss in record["losses"].items()}


def done(folder: Path) -> int:
    return sum(map(len, scores(folder).values()))


def wait_for(child: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    while not happened():
        assert child.poll() is None, child.communicate()
        time.sleep(0.005)


def test_the_command_prints_a_table_and_the_next_command_takes_its_file(arcwise: Command, features: Path) -> None:
    told = arcwise("tune", "blobs.npz", *WORDS[:4], "--dim", 3, "--epochs", 2, "--jobs", 2)
    assert told.code == 0, told.err
    assert told.out.startswith("\nruns/blobs-tune/tuned.toml\n")
    assert "accuracy on held-out samples, 4 trials a loss; the test part was not looked at" in told.out
    assert "held out: 20 of the 95 training samples" in told.err
    assert "8/8 trials" in told.err
    _, _, command = told.out.partition("\nNext: ")
    words = shlex.split(command)
    file = "runs/blobs-tune/tuned.toml"
    assert words == f"arcwise compare blobs.npz --losses softmax,arcface --tuned {file} --epochs 2".split()
    compared = arcwise(*words[1:], "--no-figures", "--json")
    assert compared.code == 0, compared.err
    assert "tuned on held-out training data (arcwise tune blobs.npz --losses softmax,arcface" in compared.err


def test_json_is_alone_on_standard_output(arcwise: Command, features: Path) -> None:
    told = arcwise("tune", features, "--losses", "softmax", "--trials", 2, "--epochs", 1, "--json", "--quiet")
    assert (told.code, told.err) == (0, "")
    record = json.loads(told.out, parse_constant=pytest.fail)
    assert list(record["losses"]) == ["softmax"]
    assert len(record["trials"]["softmax"]) == 2


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_polite_stop_keeps_every_trial_and_says_how_to_go_on(
    number: signal.Signals, jobs: int, start: Start, arcwise: Command, features: Path, tmp_path: Path
) -> None:
    child = start("tune", features, *WORDS, "--jobs", jobs, "-o", "my tune", cwd=tmp_path)
    wait_for(child, lambda: done(tmp_path / "my tune") >= 2)
    child.send_signal(number)
    out, err = child.communicate()
    assert (child.returncode, out) == (130 if number == signal.SIGINT else 143, "")
    assert "Traceback" not in err
    said = f"arcwise: stopped by {number.name}; everything is saved. Go on with: "
    assert err.splitlines()[-1].startswith(said)
    kept = scores(tmp_path / "my tune")
    after = arcwise(*shlex.split(err.splitlines()[-1].removeprefix(said))[1:])
    assert after.code == 0, after.err
    whole = scores(tmp_path / "my tune")
    assert {label: len(trials) for label, trials in whole.items()} == {"softmax": 4, "arcface": 4}
    assert all(whole[label][: len(trials)] == trials for label, trials in kept.items())


@pytest.mark.parametrize("jobs", [1, 2])
def test_kill_nine_loses_no_finished_trial_and_the_result_is_that_of_an_undisturbed_tuning(
    jobs: int, start: Start, arcwise: Command, features: Path, tmp_path: Path
) -> None:
    words = ("tune", features, *WORDS, "--quiet")
    for wanted in (1, 4):
        child = start(*words, "--jobs", jobs, "--resume", "-o", "killed", cwd=tmp_path)
        wait_for(child, lambda wanted=wanted: done(tmp_path / "killed") >= wanted)  # type: ignore[misc]
        child.kill()
        child.communicate()
        assert child.returncode == -signal.SIGKILL
    assert arcwise(*words, "--resume", "-o", "killed").code == 0
    assert arcwise(*words, "-o", "whole").code == 0
    assert scores(tmp_path / "killed") == scores(tmp_path / "whole")
    found, expected = (read_tuned(tmp_path / name / "tuned.toml").losses for name in ("killed", "whole"))
    assert found == expected


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
def test_no_process_outlives_the_command_even_after_kill_nine(start: Start, features: Path, tmp_path: Path) -> None:
    child = start("tune", features, *WORDS, "--jobs", 2, "-o", "tune", cwd=tmp_path)
    wait_for(child, lambda: done(tmp_path / "tune") >= 1)
    workers = [
        entry
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and parent_of(entry) == child.pid and b"worker" in (entry / "cmdline").read_bytes()
    ]
    assert len(workers) == 2
    child.kill()
    child.communicate()
    patience = time.monotonic() + 60
    while any(alive(entry) for entry in workers):
        assert time.monotonic() < patience, "a worker is still there"
        time.sleep(0.05)


def parent_of(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def alive(entry: Path) -> bool:
    """Whether the process is there and is no zombie."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune", "digts"], "Did you mean digits?"),
        (["tune", "digits", "--losses", "arcfase"], "Did you mean arcface?"),
        (["tune", "digits", "--trials", "0"], "trials must be at least 1"),
        (["tune", "digits", "--trial", "4"], "Did you mean --trials?"),
        (["tune", "digits", "--jobs", "0"], "jobs must be at least 1"),
        (["tune", "nowhere/tuned.csv"], "There is no file or folder nowhere/tuned.csv"),
        (["compare", "digits", "--jobs", "-1"], "jobs must be at least 1"),
        (["compare", "digits", "--tuned", "nowhere.toml"], "nowhere.toml cannot be read: No such file"),
        (["train", "digits", "--tuned", "nowhere.toml"], "nowhere.toml cannot be read: No such file"),
    ],
    ids=" ".join,
)
def test_a_mistake_is_told_in_one_sentence(words: list[str], said: str, arcwise: Command, tmp_path: Path) -> None:
    told = arcwise(*words)
    assert told.code == 2
    assert said in told.sentence
    assert not any(tmp_path.iterdir())

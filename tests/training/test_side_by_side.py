"""Runs at the same time, in real processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import arcwise
from arcwise.data import Dataset
from arcwise.errors import ConfigError, RunError, TrainingError
from arcwise.progress import Reporter, Stage
from arcwise.training import RunFolder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")

OPTIONS = {"dim": 3, "epochs": 2, "losses": "softmax,arcface,cosface"}


class Heard(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[Stage] = []

    def say(self, text: str = "") -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.said.append(f"warning: {text}")

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.stages.append(Stage(title, total))
        yield self.stages[-1]


def workers() -> list[int]:
    """The processes that this one has started as workers, where /proc tells."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if b"arcwise.training.worker" in command and int(parent) == os.getpid():
                found.append(int(entry.name))
    return found


def test_several_at_a_time_give_the_same_numbers_as_one_after_another(small_digits: Dataset, tmp_path: Path) -> None:
    reporter = Heard()
    one = arcwise.compare(small_digits, out=tmp_path / "one", **OPTIONS)  # type: ignore[arg-type]
    two = arcwise.compare(small_digits, out=tmp_path / "two", jobs=2, reporter=reporter, **OPTIONS)  # type: ignore[arg-type]
    assert list(two.values) == ["softmax", "arcface", "cosface"]
    for loss, columns in one.values.items():
        for key, values in columns.items():
            assert key == "train_seconds" or two.values[loss][key] == values, (loss, key)
    bar = next(stage for stage in reporter.stages if stage.title == "training, 2 runs at a time")
    assert (bar.done, bar.total) == (18, 18)
    assert bar.text.startswith("3/3 runs")
    assert workers() == []


def test_a_run_that_fails_stops_the_others_and_is_named(small_digits: Dataset, tmp_path: Path) -> None:
    before = {"train.lr": "1e30", "train.clip_norm": "0"}
    with pytest.raises(TrainingError, match=r"^(softmax|arcface|cosface)-seed0: "):
        arcwise.compare(small_digits, out=tmp_path / "runs", jobs=2, settings=before, **OPTIONS)  # type: ignore[arg-type]
    assert workers() == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
def test_a_worker_that_is_killed_is_told_and_the_rest_can_go_on(small_digits: Dataset, tmp_path: Path) -> None:
    options = {**OPTIONS, "epochs": 40, "out": tmp_path / "runs", "jobs": 2}

    def kill() -> None:
        while not (tmp_path / "runs" / "arcface-seed0" / "metrics.jsonl").exists():
            time.sleep(0.01)
        os.kill(workers()[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(RunError, match=r"the process that trained \w+-seed0 was ended by SIGKILL\. .* --resume"):
        arcwise.compare(small_digits, **options)  # type: ignore[arg-type]
    thread.join()
    assert workers() == []
    done = arcwise.compare(small_digits, resume=True, **options)  # type: ignore[arg-type]
    assert set(done.values) == {"softmax", "arcface", "cosface"}


def test_a_stop_saves_the_state_of_every_run_that_was_going_on(small_digits: Dataset, tmp_path: Path) -> None:
    options = {**OPTIONS, "epochs": 30}
    whole = arcwise.compare(small_digits, out=tmp_path / "whole", **options)  # type: ignore[arg-type]

    def interrupt() -> None:
        metrics = [tmp_path / "runs" / f"{loss}-seed0" / "metrics.jsonl" for loss in ("softmax", "arcface")]
        while not all(path.exists() for path in metrics):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    stopped = arcwise.compare(small_digits, out=tmp_path / "runs", jobs=2, **options)  # type: ignore[arg-type]
    thread.join()
    assert stopped.stopped_by == "SIGTERM"
    for loss in ("softmax", "arcface"):
        assert list((tmp_path / "runs" / f"{loss}-seed0" / "checkpoints").glob("step-*.json"))
    assert not (tmp_path / "runs" / "cosface-seed0").exists()
    done = arcwise.compare(small_digits, out=tmp_path / "runs", jobs=2, resume=True, **options)  # type: ignore[arg-type]
    for loss, columns in whole.values.items():
        for key, values in columns.items():
            assert key == "train_seconds" or done.values[loss][key] == values, (loss, key)


def test_runs_begun_with_other_settings_are_refused_before_any_process_starts(
    small_digits: Dataset, tmp_path: Path
) -> None:
    arcwise.compare(small_digits, losses="arcface", dim=3, epochs=1, out=tmp_path / "runs")
    with pytest.raises(RunError, match=r"arcface-seed0 was begun with other settings than this command's"):
        arcwise.compare(small_digits, out=tmp_path / "runs", resume=True, jobs=2, **OPTIONS)  # type: ignore[arg-type]
    assert not (tmp_path / "runs" / "softmax-seed0").exists()


def test_finished_runs_are_not_trained_again(small_digits: Dataset, tmp_path: Path) -> None:
    first = arcwise.compare(small_digits, losses="softmax,arcface", dim=3, epochs=1, out=tmp_path / "runs")
    marks = {path: path.stat().st_mtime_ns for runs in first.runs.values() for path in runs[0].rglob("*")}
    again = arcwise.compare(
        small_digits, losses="softmax,arcface", dim=3, epochs=1, out=tmp_path / "runs", resume=True, jobs=2
    )
    assert again.values == first.values
    assert {path: path.stat().st_mtime_ns for path in marks} == marks
    assert RunFolder.open(first.runs["softmax"][0]).evaluation() is not None


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(jobs: int, small_digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"jobs must be at least 1, the number of runs at a time; got {jobs}"):
        arcwise.compare(small_digits, jobs=jobs, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()

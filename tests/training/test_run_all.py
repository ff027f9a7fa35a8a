from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arcwise.data import Dataset
from arcwise.errors import RunError, TrainingError
from arcwise.progress import Reporter, Stage
from arcwise.training import RunFolder
from arcwise.training.build import Model
from arcwise.training.config import Config
from arcwise.training.jobs import Job
from arcwise.training.run_all import Ended, run_all


def measure_little(
    folder: RunFolder, config: Config, data: Dataset, model: Model, train_seconds: float, reporter: Reporter
) -> dict[str, Any]:
    """The seed of the run, and a failure for a width of five."""
    if config.backbone.dim == 5:
        raise TrainingError("five is too wide.")
    record = {"seed": config.train.seed}
    folder.write_evaluation(record)
    return record


@pytest.fixture
def jobs(tmp_path: Path, make_config: Callable[..., Config]) -> Callable[..., list[Job]]:
    """Jobs of one epoch, each with its number as its seed."""

    def make(*names: str, dim: int = 3) -> list[Job]:
        return [
            Job(name, tmp_path / name, make_config(dim=dim, epochs=1, seed=number), 7, measure_little)
            for number, name in enumerate(names)
        ]

    return make


class Heard(Reporter):
    """Keeps warnings and the titles of its stages, and sends a signal when one begins."""

    def __init__(self, interrupted: int = -1) -> None:
        self.titles: list[str] = []
        self.warnings: list[str] = []
        self._interrupted = interrupted

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.titles.append(title)
        if sum(heard.startswith("training ") for heard in self.titles) == self._interrupted:
            self._interrupted = -1
            signal.raise_signal(signal.SIGINT)
        yield Stage(title, total)


def test_every_run_is_trained_and_measured_under_its_name(
    jobs: Callable[..., list[Job]], small_digits: Dataset
) -> None:
    reporter = Heard()
    ended = run_all(jobs("a", "b"), small_digits, jobs=1, reporter=reporter)
    assert ended == Ended({"a": {"seed": 0}, "b": {"seed": 1}})
    assert len([title for title in reporter.titles if title.startswith("training ")]) == 2


def test_without_runs_there_is_nothing_to_tell(small_digits: Dataset) -> None:
    assert run_all([], small_digits, jobs=4, reporter=Reporter()) == Ended()


def test_finished_runs_are_read_and_the_others_trained_wherever_they_stand_in_the_list(
    jobs: Callable[..., list[Job]], small_digits: Dataset
) -> None:
    first, second, third = jobs("a", "b", "c")
    run_all([second], small_digits, jobs=1, reporter=Reporter())
    marks = {path: path.stat().st_mtime_ns for path in second.path.rglob("*")}
    reporter = Heard()
    ended = run_all(iter([first, second, third]), small_digits, jobs=1, reporter=reporter)
    assert ended.measured == {"a": {"seed": 0}, "b": {"seed": 1}, "c": {"seed": 2}}
    assert len([title for title in reporter.titles if title.startswith("training ")]) == 2
    assert {path: path.stat().st_mtime_ns for path in second.path.rglob("*")} == marks


def test_one_run_that_is_left_needs_no_process_of_its_own(
    jobs: Callable[..., list[Job]], small_digits: Dataset
) -> None:
    reporter = Heard()
    run_all(jobs("a"), small_digits, jobs=4, reporter=reporter)
    assert not any("at a time" in title for title in reporter.titles)


def test_two_at_a_time_measure_the_same(jobs: Callable[..., list[Job]], small_digits: Dataset) -> None:
    reporter = Heard()
    ended = run_all(jobs("a", "b"), small_digits, jobs=3, reporter=reporter)
    assert ended.measured == {"a": {"seed": 0}, "b": {"seed": 1}}
    assert "training, 2 runs at a time" in reporter.titles


def test_a_signal_stops_it_and_is_named_and_what_is_left_is_done_another_time(
    jobs: Callable[..., list[Job]], small_digits: Dataset
) -> None:
    ended = run_all(jobs("a", "b", "c"), small_digits, jobs=1, reporter=Heard(interrupted=2))
    assert ended == Ended({"a": {"seed": 0}}, stopped_by="SIGINT")
    ended = run_all(jobs("a", "b", "c"), small_digits, jobs=1, reporter=Reporter())
    assert ended == Ended({"a": {"seed": 0}, "b": {"seed": 1}, "c": {"seed": 2}})


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_run_that_comes_to_nothing_is_told_and_does_not_stop_the_others(
    jobs: Callable[..., list[Job]], small_digits: Dataset, at_once: int
) -> None:
    first, _, third = jobs("a", "b", "c")
    failing = jobs("b", dim=5)
    reporter = Heard()
    ended = run_all([first, *failing, third], small_digits, jobs=at_once, reporter=reporter)
    assert ended.measured == {"a": {"seed": 0}, "c": {"seed": 2}}
    assert list(ended.failed) == ["b"]
    assert reporter.warnings == ["b came to nothing: five is too wide."]
    assert "five is too wide" in str(ended.failed["b"])


def test_a_run_that_was_begun_with_other_settings_is_refused_before_any_is_trained(
    jobs: Callable[..., list[Job]], small_digits: Dataset
) -> None:
    (other,) = jobs("b", dim=4)
    RunFolder.create(other.path, other.config)
    with pytest.raises(RunError, match=r"b was begun with other settings than this command's"):
        run_all(jobs("a", "b"), small_digits, jobs=1, reporter=Reporter())
    assert not (other.path.parent / "a").exists()

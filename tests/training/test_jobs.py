"""Short runs on a few real pictures, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcwise.data import Dataset
from arcwise.errors import ConfigError, RunError, TrainingError
from arcwise.progress import Reporter, Stage
from arcwise.training import RunFolder
from arcwise.training.build import Model
from arcwise.training.config import Config
from arcwise.training.interrupt import StopRequest
from arcwise.training.jobs import Job, Outcome, begun_run, check_jobs, perform, run_in_turn

MakeConfig = Callable[..., Config]


def count_pictures(
    folder: RunFolder, config: Config, data: Dataset, model: Model, train_seconds: float, reporter: Reporter
) -> dict[str, Any]:
    """Measures next to nothing, and fails for a width of five."""
    if config.backbone.dim == 5:
        raise TrainingError("five is too wide.")
    record = {"pictures": len(model.embed(data.test.images)), "seconds": train_seconds}
    folder.write_evaluation(record)
    return record


@pytest.fixture
def job(tmp_path: Path, make_config: MakeConfig) -> Callable[..., Job]:
    """A job of one epoch, which has 7 steps."""

    def make(name: str = "run", dim: int = 3, **train: Any) -> Job:
        config = make_config(dim=dim, **{"epochs": 1, **train})
        return Job(name, tmp_path / name, config, 7 * config.train.epochs, count_pictures)

    return make


def test_a_run_that_was_never_begun_is_none(job: Callable[..., Job]) -> None:
    made = job()
    assert begun_run(made.path, made.config) is None
    made.path.mkdir()
    (made.path / "metrics.jsonl").write_text("")
    assert begun_run(made.path, made.config) is None


def test_a_run_that_was_begun_by_another_command_or_version_is_the_same_run(job: Callable[..., Job]) -> None:
    made = job()
    RunFolder.create(made.path, replace(made.config, command="arcwise train digits", arcwise="0.0.1"))
    folder = begun_run(made.path, made.config)
    assert folder is not None
    assert folder.config().arcwise == "0.0.1"


def test_a_run_that_was_begun_with_other_settings_is_refused_and_named(job: Callable[..., Job]) -> None:
    made = job()
    RunFolder.create(made.path, made.config)
    message = rf"{made.path} was begun with other settings than this command's; see its config\.toml\. .*--out DIR"
    with pytest.raises(RunError, match=message):
        begun_run(made.path, job(seed=1).config)


def test_a_job_is_trained_and_measured_in_its_own_folder(job: Callable[..., Job], small_digits: Dataset) -> None:
    made = job()
    evaluation = perform(made, small_digits, Reporter(), StopRequest())
    assert evaluation is not None
    assert evaluation["pictures"] == 60
    folder = RunFolder.open(made.path)
    assert folder.evaluation() == evaluation
    assert folder.config() == made.config
    assert [line["step"] for line in folder.metrics() if line["kind"] == "epoch"] == [7]


def test_a_job_that_is_done_is_not_done_again(job: Callable[..., Job], small_digits: Dataset) -> None:
    made = job()
    first = perform(made, small_digits, Reporter(), StopRequest())
    marks = {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    assert perform(made, small_digits, Reporter(), StopRequest()) == first
    assert {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()} == marks


def test_what_a_killed_process_left_before_the_config_is_not_in_the_way(
    job: Callable[..., Job], small_digits: Dataset
) -> None:
    made = job()
    made.path.mkdir()
    (made.path / ".config.toml.0123abcd.partial").write_text("half")
    evaluation = perform(made, small_digits, Reporter(), StopRequest())
    assert evaluation is not None
    assert not list(made.path.glob(".*.partial"))


def test_anything_else_in_the_folder_is_in_the_way(job: Callable[..., Job], small_digits: Dataset) -> None:
    made = job()
    made.path.mkdir()
    (made.path / "photo.png").write_bytes(b"photo")
    with pytest.raises(RunError, match="already exists and is never overwritten"):
        perform(made, small_digits, Reporter(), StopRequest())
    assert [path.name for path in made.path.iterdir()] == ["photo.png"]


class StopAfter(Reporter):
    """Asks for a stop once a run has taken so many steps."""

    def __init__(self, steps: int, stop: StopRequest) -> None:
        self._steps, self._stop = steps, stop

    def stage(self, title: str, total: int | None = None) -> Any:
        from contextlib import nullcontext

        return nullcontext(_Watched(title, total, self._steps, self._stop))


class _Watched(Stage):
    def __init__(self, title: str, total: int | None, steps: int, stop: StopRequest) -> None:
        super().__init__(title, total)
        self._steps, self._stop = steps, stop

    def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
        super().update(text, done=done, total=total)
        if self.title.startswith("training ") and self.done >= self._steps:
            self._stop.requested = True


def run(
    jobs: list[Job], data: Dataset, stop: StopRequest, reporter: Reporter | None = None
) -> tuple[list[tuple[str, Outcome]], list[str]]:
    """What was told about finished jobs, and the names of those for which a reporter was asked."""
    told: list[tuple[str, Outcome]] = []
    begun: list[str] = []

    def reporter_of(job: Job) -> Reporter:
        begun.append(job.name)
        return reporter or Reporter()

    waiting = list(jobs)
    run_in_turn(
        lambda: waiting.pop(0) if waiting else None,
        lambda job, outcome: told.append((job.name, outcome)),
        data,
        reporter_of,
        stop,
    )
    return told, begun


def test_jobs_are_done_one_after_another_and_a_failure_does_not_stop_the_next(
    job: Callable[..., Job], small_digits: Dataset
) -> None:
    told, begun = run([job("a"), job("b", dim=5), job("c")], small_digits, StopRequest())
    assert [name for name, _ in told] == begun == ["a", "b", "c"]
    (_, first), (_, failed), (_, last) = told
    assert (first.error, last.error) == (None, None)
    assert first.evaluation is not None
    assert first.evaluation["pictures"] == 60
    assert failed.evaluation is None
    assert isinstance(failed.error, TrainingError)
    assert str(failed.error) == "five is too wide."
    assert all(outcome.seconds > 0 for _, outcome in told)


def test_a_stop_ends_the_job_that_is_going_on_and_begins_no_other(
    job: Callable[..., Job], small_digits: Dataset
) -> None:
    stop = StopRequest()
    told, begun = run([job("a", epochs=3), job("b")], small_digits, stop, StopAfter(4, stop))
    assert (told, begun) == ([], ["a"])
    assert RunFolder.open(job("a").path).evaluation() is None
    assert not job("b").path.exists()


def test_a_stopped_job_goes_on_where_it_was(job: Callable[..., Job], small_digits: Dataset) -> None:
    stop = StopRequest()
    run([job("a", epochs=2)], small_digits, stop, StopAfter(4, stop))
    (saved,) = (job("a").path / "checkpoints").glob("step-*.json")
    ((_, outcome),), _ = run([job("a", epochs=2)], small_digits, StopRequest())
    assert outcome.evaluation is not None
    assert json.loads(saved.read_text()) if saved.exists() else True
    steps = [line["step"] for line in RunFolder.open(job("a").path).metrics() if line["kind"] == "epoch"]
    assert steps == [7, 14]


def test_nothing_is_taken_once_a_stop_was_asked_for(job: Callable[..., Job], small_digits: Dataset) -> None:
    stop = StopRequest()
    stop.requested = True
    assert run([job()], small_digits, stop) == ([], [])


def test_what_the_listener_raises_ends_it_all(job: Callable[..., Job], small_digits: Dataset) -> None:
    waiting = [job("a", dim=5), job("b")]

    def finish(_: Job, outcome: Outcome) -> None:
        assert outcome.error is not None
        raise outcome.error

    with pytest.raises(TrainingError, match="five is too wide"):
        run_in_turn(lambda: waiting.pop(0), finish, small_digits, lambda _: Reporter(), StopRequest())
    assert [left.name for left in waiting] == ["b"]


@pytest.mark.parametrize("jobs", [1, 2, 100])
def test_any_number_of_jobs_from_one_will_do(jobs: int) -> None:
    check_jobs(jobs)


@pytest.mark.parametrize("jobs", [0, -3])
def test_no_jobs_at_a_time_is_refused(jobs: int) -> None:
    with pytest.raises(ConfigError, match=f"jobs must be at least 1, the number of runs at a time; got {jobs}"):
        check_jobs(jobs)

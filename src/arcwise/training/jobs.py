"""Many runs on the same data: one after another in this process, or several at once in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arcwise.atomic_write import remove_partial_files
from arcwise.data import Dataset
from arcwise.errors import ArcwiseError, ConfigError, RunError
from arcwise.progress import Reporter
from arcwise.training.config import Config
from arcwise.training.finish import Measure, measure
from arcwise.training.interrupt import StopRequest
from arcwise.training.run_folder import RunFolder
from arcwise.training.session import train_in


@dataclass(frozen=True)
class Job:
    """One run to train, or to go on with where its folder says it stopped.

    Args:
        name: what the run is called where it is told about.
        path: its folder.
        steps: how many optimiser steps it takes.
        measuring: what is measured at the end; a function of a module, so that another process finds it.
    """

    name: str
    path: Path
    config: Config
    steps: int
    measuring: Measure = measure


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        evaluation: what was measured; None where the run was stopped or failed.
        seconds: from its beginning to its end, in this session.
        error: what it failed with.
    """

    evaluation: dict[str, Any] | None
    seconds: float
    error: ArcwiseError | None = None


# The next job that can begin now, or None: there is none, or the next one depends on jobs that are still running.
Take = Callable[[], Job | None]
# Told about every job that came to its end. It may raise the outcome's error, which stops all others with their state saved.
Finish = Callable[[Job, Outcome], None]


def check_jobs(jobs: int) -> None:
    """Refuse a number of jobs that makes no sense."""
    if jobs < 1:
        raise ConfigError(f"jobs must be at least 1, the number of runs at a time; got {jobs}.")


def run_in_turn(
    take: Take, finish: Finish, data: Dataset, reporter: Callable[[Job], Reporter], stop: StopRequest
) -> None:
    """One job after another in this process, until there is none or a stop is asked for."""
    while not stop.requested and (job := take()) is not None:
        started = time.perf_counter()
        try:
            evaluation = perform(job, data, reporter(job), stop)
        except ArcwiseError as error:
            finish(job, Outcome(None, time.perf_counter() - started, error))
            continue
        if evaluation is not None:
            finish(job, Outcome(evaluation, time.perf_counter() - started))


def perform(job: Job, data: Dataset, reporter: Reporter, stop: StopRequest) -> dict[str, Any] | None:
    """Train a job, or go on with it; returns what was measured, or None where it was stopped."""
    begun = begun_run(job.path, job.config)
    if begun is None:
        if job.path.is_dir():
            remove_partial_files(job.path)
        folder, config = RunFolder.create(job.path, job.config), job.config
    else:
        folder, config = begun, begun.config()
    run = train_in(
        folder,
        config,
        data,
        resumed=begun is not None,
        reporter=reporter,
        stop=stop,
        measuring=job.measuring,
    )
    return run.evaluation


def begun_run(path: Path, config: Config) -> RunFolder | None:
    """The folder of a run that was begun with this very config; None where none was begun."""
    if not (path / "config.toml").is_file():
        return None
    folder = RunFolder.open(path)
    begun = folder.config()
    if replace(begun, command=config.command, arcwise=config.arcwise) != config:
        raise RunError(
            f"{path} was begun with other settings than this command's; see its config.toml."
            " Give the same options to resume, or start another folder with --out DIR."
        )
    return folder

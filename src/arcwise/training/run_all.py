"""A list of runs, each of them done: those that are not yet finished are trained, one after another or several at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from arcwise.data import Dataset
from arcwise.errors import TrainingError
from arcwise.progress import Reporter
from arcwise.training.interrupt import stop_on_signals
from arcwise.training.jobs import Job, Outcome, begun_run, run_in_turn
from arcwise.training.jobs_progress import Board
from arcwise.training.side_by_side import run_side_by_side


@dataclass
class Ended:
    """How all runs ended, by their names.

    Attributes:
        measured: what those that were finished measured.
        failed: why training came to nothing.
        stopped_by: the signal that stopped it all early, or None.
    """

    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, TrainingError] = field(default_factory=dict)
    stopped_by: str | None = None


def run_all(runs: Iterable[Job], data: Dataset, *, jobs: int, reporter: Reporter) -> Ended:
    """Train what is not finished yet. A run whose training comes to nothing does not stop the others.

    Args:
        runs: each with a folder of its own, which may hold a part of it already.
        data: what all of them are trained on.
        jobs: how many are trained at a time.
        reporter: who is told about progress.
    """
    ended = Ended()
    waiting: list[Job] = []
    for run in runs:
        begun = begun_run(run.path, run.config)
        evaluation = begun.evaluation() if begun is not None else None
        if evaluation is None:
            waiting.append(run)
        else:
            ended.measured[run.name] = evaluation
    total, finished = len(ended.measured) + len(waiting), len(ended.measured)

    def take() -> Job | None:
        return waiting.pop(0) if waiting else None

    def finish(run: Job, outcome: Outcome) -> None:
        if isinstance(outcome.error, TrainingError):
            ended.failed[run.name] = outcome.error
            reporter.warn(f"{run.name} came to nothing: {str(outcome.error).removeprefix(f'{run.name}: ')}")
        elif outcome.error is not None:
            raise outcome.error
        else:
            assert outcome.evaluation is not None
            ended.measured[run.name] = outcome.evaluation

    with stop_on_signals() as stop:
        at_once = min(jobs, len(waiting))
        if at_once <= 1:
            run_in_turn(take, finish, data, lambda _: reporter, stop)
        else:
            title = f"training, {at_once} runs at a time"
            with reporter.stage(title, total=sum(run.steps for run in waiting)) as stage:
                board = Board(stage, "runs", total, finished)
                run_side_by_side(take, finish, data, jobs=at_once, board=board, reporter=reporter, stop=stop)
    ended.stopped_by = stop.signal_name
    return ended

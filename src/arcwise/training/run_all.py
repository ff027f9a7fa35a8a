"""A list of runs, each of them done: those that are not yet finished are trained, one after another or several at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from arcwise.data import Dataset
from arcwise.progress import Reporter
from arcwise.training.interrupt import stop_on_signals
from arcwise.training.jobs import Job, Outcome, begun_run, run_in_turn
from arcwise.training.jobs_progress import Board
from arcwise.training.side_by_side import run_side_by_side


def run_all(
    runs: Iterable[Job], data: Dataset, *, jobs: int, reporter: Reporter
) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Train what is not finished yet.

    Args:
        runs: each with a folder of its own, which may hold a part of it already.
        data: what all of them are trained on.
        jobs: how many are trained at a time.
        reporter: who is told about progress.

    Returns:
        What each run measured, by its name, and the signal that stopped it all early, or None.
    """
    measured: dict[str, dict[str, Any]] = {}
    waiting: list[Job] = []
    for run in runs:
        begun = begun_run(run.path, run.config)
        evaluation = begun.evaluation() if begun is not None else None
        if evaluation is None:
            waiting.append(run)
        else:
            measured[run.name] = evaluation
    total, finished = len(measured) + len(waiting), len(measured)

    def take() -> Job | None:
        return waiting.pop(0) if waiting else None

    def finish(run: Job, outcome: Outcome) -> None:
        if outcome.error is not None:
            raise outcome.error
        assert outcome.evaluation is not None
        measured[run.name] = outcome.evaluation

    with stop_on_signals() as stop:
        at_once = min(jobs, len(waiting))
        if at_once <= 1:
            run_in_turn(take, finish, data, lambda _: reporter, stop)
        else:
            title = f"training, {at_once} runs at a time"
            with reporter.stage(title, total=sum(run.steps for run in waiting)) as stage:
                board = Board(stage, "runs", total, finished)
                run_side_by_side(take, finish, data, jobs=at_once, board=board, reporter=reporter, stop=stop)
    return measured, stop.signal_name

"""One bar for many runs: runs done, steps taken of all steps, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arcwise.progress import Reporter, Stage
from arcwise.training.jobs import Job

SHOWN_NAMES = 3


class StepReporter(Reporter):
    """Hears the steps of one run's training and its warnings, and passes them on; shows nothing itself."""

    def __init__(self, moved: Callable[[int], None], warned: Callable[[str], None]) -> None:
        self._moved, self._warned = moved, warned

    def warn(self, text: str) -> None:
        self._warned(text)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        yield _HeardStage(title, total, self._moved) if title.startswith("training ") else Stage(title, total)


class _HeardStage(Stage):
    def __init__(self, title: str, total: int | None, moved: Callable[[int], None]) -> None:
        super().__init__(title, total)
        self._moved = moved

    def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
        super().update(text, done=done, total=total)
        if done is not None:
            self._moved(done)


class Board:
    """What is known about all runs together, written into one stage.

    Args:
        stage: where it is shown; its count is that of the steps.
        unit: what the runs are called, in the plural.
        runs: how many there are.
        done: how many of them were finished before.
    """

    def __init__(self, stage: Stage, unit: str, runs: int, done: int = 0) -> None:
        self._stage, self._unit, self._runs, self._done = stage, unit, runs, done
        self._steps: dict[str, int] = {}  # of the runs that are going on
        self._finished_steps = 0
        self._taken = 0  # in this session, unlike the steps of a resumed run
        self._since: float | None = None
        self.remark = ""
        self._show()

    def began(self, name: str) -> None:
        self._steps[name] = -1
        self._show()

    def moved(self, name: str, steps: int) -> None:
        """A run has taken so many steps altogether; the first report of a resumed run is where it goes on from."""
        self._since = self._since if self._since is not None else time.monotonic()
        before = self._steps[name]
        self._taken += steps - before if before >= 0 else 0
        self._steps[name] = steps
        self._show()

    def ended(self, name: str, steps: int) -> None:
        """A run is over: all of its steps count as done, even those that a failed run never took."""
        del self._steps[name]
        self._finished_steps += steps
        self._done += 1
        self._show()

    def reporter_of(self, job: Job) -> Reporter:
        """Who hears the steps of a job that is done in this process."""
        return StepReporter(lambda steps: self.moved(job.name, steps), lambda _: None)

    def _show(self) -> None:
        names = list(self._steps)
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        parts = [
            f"{self._done}/{self._runs} {self._unit}",
            self._rate(),
            self.remark,
            ", ".join(names[:SHOWN_NAMES]) + more,
        ]
        steps = self._finished_steps + sum(max(taken, 0) for taken in self._steps.values())
        self._stage.update(" · ".join(part for part in parts if part), done=steps)

    def _rate(self) -> str:
        if self._since is None or not self._taken:
            return ""
        return f"{self._taken / max(time.monotonic() - self._since, 1e-3):,.0f} steps/s"

"""Several jobs at once, each in a long-lived process of its own that holds a copy of the data.

The processes are told to stop through their messages, not by the terminal's Ctrl-C, from which they are kept away; they end when this
process does, even by kill -9.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from arcwise import errors
from arcwise.data import Dataset
from arcwise.errors import ArcwiseError, MissingExtraError, RunError
from arcwise.progress import Reporter
from arcwise.training.interrupt import StopRequest
from arcwise.training.jobs import Finish, Job, Outcome, Take
from arcwise.training.jobs_progress import Board

LOOK_SECONDS = 0.1
LEAVE_SECONDS = 10.0

Inbox = queue.Queue[tuple["_Worker", tuple[str, Any] | None]]


def run_side_by_side(
    take: Take,
    finish: Finish,
    data: Dataset,
    *,
    jobs: int,
    board: Board,
    reporter: Reporter,
    stop: StopRequest,
) -> None:
    """Keep `jobs` processes at work until there is no job left, or a stop is asked for, or one raises.

    Args:
        take: gives the next job.
        finish: told about every job that ended; an error that it raises stops the others, with their state saved, and is raised.
        board: shows the progress.
        reporter: told about warnings.
    """
    shift = _Shift(take, finish, board, reporter, stop)
    with _hired(data, jobs) as workers:
        idle = list(workers)
        while True:
            while idle and (job := shift.next_job()) is not None:
                shift.begin(idle.pop(0), job)
            if not shift.running:
                break
            worker = shift.hear(workers.inbox)
            if worker is not None:
                idle.append(worker)
    if shift.failure is not None:
        raise shift.failure


class _Shift:
    """Who works on what, and whether it is time to stop."""

    def __init__(self, take: Take, finish: Finish, board: Board, reporter: Reporter, stop: StopRequest) -> None:
        self._take, self._finish, self._board, self._reporter, self._stop = take, finish, board, reporter, stop
        self.running: dict[_Worker, Job] = {}
        self.failure: ArcwiseError | None = None
        self._told = False

    def next_job(self) -> Job | None:
        return None if self._stop.requested or self.failure is not None else self._take()

    def begin(self, worker: _Worker, job: Job) -> None:
        self.running[worker] = job
        self._board.began(job.name)
        worker.send("job", job)

    def hear(self, inbox: Inbox) -> _Worker | None:
        """Deal with one message, or with the lack of one; returns the worker that has nothing to do now."""
        self._stop_in_time()
        try:
            worker, message = inbox.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            return None
        job = self.running.get(worker)
        if job is None:
            self.failure = self.failure or RunError(f"a process that waited for its next run {worker.ended()}.")
            return None
        kind: str
        content: Any
        kind, content = message if message is not None else ("lost", worker.ended())
        if kind == "moved":
            self._board.moved(job.name, content)
        elif kind == "warned":
            self._reporter.warn(f"{job.name}: {content}")
        else:
            self._end(worker, job, kind, content)
            return worker if kind in ("done", "failed") else None
        return None

    def _end(self, worker: _Worker, job: Job, kind: str, content: Any) -> None:
        del self.running[worker]
        self._board.ended(job.name, job.steps)
        try:
            if kind == "done":
                evaluation, seconds = content
                if evaluation is not None:
                    self._finish(job, Outcome(evaluation, seconds))
            elif kind == "failed":
                name, text, seconds = content
                self._finish(job, Outcome(None, seconds, _error(name, f"{job.name}: {text}")))
            elif kind == "broke":
                sentence, trace = content
                raise RunError(f"{job.name} broke off with {sentence}.") from RuntimeError(trace)
            else:
                raise RunError(
                    f"the process that trained {job.name} {content}. Free memory or use fewer --jobs,"
                    " then go on with --resume; what was saved is intact."
                )
        except ArcwiseError as error:
            self.failure = self.failure or error

    def _stop_in_time(self) -> None:
        if self._told or not (self._stop.requested or self.failure is not None):
            return
        self._told = True
        for worker in self.running:
            worker.send("stop", self._stop.signal_name)


class _Worker:
    """A process, and the two threads that carry messages to and from it."""

    def __init__(self, setup: bytes, inbox: Inbox, threads: int) -> None:
        self._inbox = inbox
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outgoing.put(setup)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "arcwise.training.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": str(threads)},
            start_new_session=True,
        )
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def send(self, kind: str, content: Any) -> None:
        self._outgoing.put(pickle.dumps((kind, content)))

    def ended(self) -> str:
        """How the process ended, after "the process that trained it"."""
        code = self._process.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself with the code {code}"

    def leave(self, at_once: bool) -> None:
        """Let the process end: it does when its input does."""
        if at_once:
            self._process.kill()
        self._outgoing.put(None)
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _write(self) -> None:
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            try:
                while (message := self._outgoing.get()) is not None:
                    pipe.write(message)
                    pipe.flush()
            except OSError:
                return  # the process is gone, which the reader tells

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._inbox.put((self, pickle.load(self._process.stdout)))
        except (EOFError, OSError, pickle.UnpicklingError):
            self._inbox.put((self, None))


class _Workers(list[_Worker]):
    """The processes, and where their messages arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox: Inbox = queue.Queue()


@contextmanager
def _hired(data: Dataset, jobs: int) -> Iterator[_Workers]:
    threads = max(1, torch.get_num_threads() // jobs)
    # As plain bytes: handing tensors over in shared memory fails where that is small, as in many containers.
    setup = pickle.dumps((threads, pickle.dumps(data)))
    workers = _Workers()
    at_once = True
    try:
        for _ in range(jobs):
            workers.append(_Worker(setup, workers.inbox, threads))
        yield workers
        at_once = False
    finally:
        for worker in workers:
            worker.leave(at_once)


def _error(name: str, text: str) -> ArcwiseError:
    """An error of the same kind as the worker's."""
    kind: type[ArcwiseError] = getattr(errors, name, RunError)
    return RunError(text) if kind is MissingExtraError else kind(text)

"""The process of one worker: takes the data once, and then one job after another. `python -m arcwise.training.worker`

Messages come in on standard input and go out on what was standard output, each a pickled tuple from or to the process that started
this one. When that process ends, however it ends, so does standard input, and the worker leaves at once: what it writes is whole or
not there, so nothing is lost but the steps since the last checkpoint.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, NoReturn

import torch

from arcwise.data import Dataset
from arcwise.errors import ArcwiseError
from arcwise.training.interrupt import StopRequest
from arcwise.training.jobs import Job, perform
from arcwise.training.jobs_progress import StepReporter

MOVED_SECONDS = 0.2


class _Channel:
    """The way back, for messages from any thread."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._lock = out, threading.Lock()
        self._moved_at = 0.0

    def send(self, kind: str, content: Any) -> None:
        with self._lock:
            pickle.dump((kind, content), self._out)
            self._out.flush()

    def moved(self, steps: int) -> None:
        """Report the steps taken, now and then."""
        now = time.monotonic()
        if now - self._moved_at > MOVED_SECONDS:
            self._moved_at = now
            self.send("moved", steps)


def main() -> NoReturn:
    """Serve until standard input ends."""
    channel = _Channel(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # whatever is printed must not get among the messages
    threads, pickled = pickle.load(sys.stdin.buffer)
    torch.set_num_threads(threads)
    data: Dataset = pickle.loads(pickled)
    del pickled
    jobs: queue.Queue[Job] = queue.Queue()
    stop = StopRequest()

    def listen() -> None:
        try:
            while True:
                kind, content = pickle.load(sys.stdin.buffer)
                if kind == "job":
                    jobs.put(content)
                else:
                    stop.requested, stop.signal_name = True, content
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        _work(jobs.get(), data, stop, channel)


def _work(job: Job, data: Dataset, stop: StopRequest, channel: _Channel) -> None:
    reporter = StepReporter(channel.moved, lambda text: channel.send("warned", text))
    started = time.perf_counter()
    try:
        evaluation = perform(job, data, reporter, stop)
        channel.send("done", (evaluation, time.perf_counter() - started))
    except ArcwiseError as error:
        channel.send("failed", (type(error).__name__, str(error), time.perf_counter() - started))
    except torch.OutOfMemoryError:
        advice = "there is not enough memory on the device for so many runs at once. Use fewer --jobs or a smaller --batch-size."
        channel.send("failed", ("RunError", advice, time.perf_counter() - started))
    except Exception as error:
        # A mistake of the program's own: its traceback is for those who mend it, and travels with the sentence.
        channel.send("broke", (f"{type(error).__name__}: {error}", traceback.format_exc()))


if __name__ == "__main__":
    main()

"""Ctrl-C and SIGTERM as a polite request: finish the step, save, leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether someone has asked training to stop, and by which signal ("SIGINT" is Ctrl-C)."""

    def __init__(self) -> None:
        self.requested = False
        self.signal_name: str | None = None

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # Nothing is printed here: the main thread may be holding the output's lock at this moment.
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.requested:
            self.requested = True
            self.signal_name = signal.Signals(number).name


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into `stop.requested`; a SIGINT after that raises KeyboardInterrupt at once.

        with stop_on_signals() as stop:
            for batch in batches:
                train_on(batch)
                if stop.requested:
                    save()
                    break

    The previous handlers come back when the block ends. A signal that the process was started to ignore (as with nohup or in
    the background of a script) stays ignored. Outside the main thread, where Python sets no handlers, nothing is ever requested.
    """
    stop = StopRequest()
    previous = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if (
                    handler is not None and handler is not signal.SIG_IGN
                ):  # None: not set from Python, cannot be put back
                    previous[number] = handler
                    signal.signal(number, stop._on_signal)
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

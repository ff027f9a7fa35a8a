"""What a person sees while arcwise works: lines that stay, and a live bar for anything that takes a while.

On a terminal the bar is redrawn in place. Elsewhere (a log file, CI) a stage prints a plain line at least every two seconds, from
a thread of its own, so that no step is ever silent for longer. Everything goes to standard error; results go to standard output.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

HEARTBEAT_SECONDS = 1.5


class Stage:
    """One step of the work, with a count and a short text that may change as it goes on."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.text = ""

    def advance(self, count: int = 1) -> None:
        self.done += count

    def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
        """Change the text, and where given the count so far and the total."""
        self.text = text
        if done is not None:
            self.done = done
        if total is not None:
            self.total = total

    def line(self, seconds: float) -> str:
        """The stage as one plain line."""
        share = f" {self.done}/{self.total}" if self.total else (f" {self.done}" if self.done else "")
        text = f" · {self.text}" if self.text else ""
        return f"{self.title}{share}{text} · {seconds:.0f} s"


class Reporter:
    """Says nothing. The base class, and what library calls use unless they are given another one."""

    def say(self, text: str = "") -> None:
        """Print a line that stays."""

    def warn(self, text: str) -> None:
        """Print a warning that stays."""

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Show a step of the work for as long as the block runs."""
        yield Stage(title, total)


class PlainReporter(Reporter):
    """Plain lines, for logs: each stage reports when it starts, at least every two seconds, and when it ends."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._lock = threading.Lock()

    def say(self, text: str = "") -> None:
        with self._lock:
            print(text, file=self._stream, flush=True)

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        stage, started, ended = Stage(title, total), time.monotonic(), threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT_SECONDS):
                self.say(stage.line(time.monotonic() - started))

        self.say(title)
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield stage
        finally:
            ended.set()
            thread.join()
            self.say(stage.line(time.monotonic() - started))


class TerminalReporter(Reporter):
    """A live bar on a terminal, redrawn by a thread of its own; the finished stage stays as one line."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console if console is not None else Console(stderr=True)

    def say(self, text: str = "") -> None:
        self._console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        self._console.print(
            f"warning: {text}", style="yellow", markup=False, emoji=False, highlight=False, soft_wrap=True
        )

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        stage, started, ended = Stage(title, total), time.monotonic(), threading.Event()
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            TimeRemainingColumn(compact=True),
            console=self._console,
            transient=True,
        )
        task = bar.add_task(title, total=total, text="")

        def redraw() -> None:
            while not ended.wait(0.1):
                bar.update(task, completed=stage.done, total=stage.total, text=stage.text)

        thread = threading.Thread(target=redraw, daemon=True)
        with bar:
            thread.start()
            try:
                yield stage
            finally:
                ended.set()
                thread.join()
        self.say(stage.line(time.monotonic() - started))


def reporter_for(stream: TextIO | None = None, *, quiet: bool = False) -> Reporter:
    """The reporter that suits where standard error goes."""
    if quiet:
        return Reporter()
    stream = stream if stream is not None else sys.stderr
    return TerminalReporter(Console(file=stream)) if stream.isatty() else PlainReporter(stream)

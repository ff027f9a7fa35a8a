"""One writer at a time, across processes. The operating system lets go of the lock when its holder dies, however it dies."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from arcwise.progress import Reporter

POLL_SECONDS = 0.1

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def locked(path: Path, reporter: Reporter, what: str) -> Iterator[bool]:
    """Hold the lock file at `path` for the block; gives True where another process held it first and had to be waited for.

    The file stays: removing it would let two processes lock two different files of the same name.
    """
    with path.open("ab") as file:
        waited = not _try_lock(file)
        if waited:
            with reporter.stage(f"Another process is {what}: waiting for it"):
                while not _try_lock(file):
                    time.sleep(POLL_SECONDS)
        yield waited

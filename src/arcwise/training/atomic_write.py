"""Files that are whole or not there: temp, flush, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> None:
    """Put `content` at `path`; a crash at any moment leaves the old file or the new one, never a part of it."""
    data = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_partial_files(folder: Path) -> None:
    """Delete what an interrupted `write_file` left behind."""
    for leftover in folder.glob(".*.partial"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

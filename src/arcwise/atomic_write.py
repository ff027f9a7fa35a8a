"""Files that are whole or not there: temp, flush, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> None:
    """Put `content` at `path`; a crash at any moment leaves the old file or the new one, never a part of it.

    The file gets the permissions that any new file gets (0666 less the umask, which the kernel applies).
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105  (the system call, by its own name)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut, where the system can do that for folders."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no fsync for folders
            raise
    finally:
        os.close(descriptor)


def remove_partial_files(folder: Path) -> None:
    """Delete what an interrupted `write_file` left behind."""
    for leftover in folder.glob(".*.partial"):
        with contextlib.suppress(OSError):
            leftover.unlink()

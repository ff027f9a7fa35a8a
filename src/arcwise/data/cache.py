"""Where fetched sets are kept: one safetensors file for each, and a manifest with its SHA-256, written last.

A set is cached if its manifest is there and its file is what the manifest says. A kill at any moment leaves either that, or
leftovers that the next writer removes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
from torch import Tensor

from arcwise.atomic_write import write_file
from arcwise.data._download import sha256_of
from arcwise.data._lock import locked
from arcwise.errors import DataError
from arcwise.progress import Reporter

# Files whose hash this process has already checked: path, length and time of change.
_VERIFIED: set[tuple[str, int, int]] = set()


class DamagedCacheError(DataError):
    """A cached set that is not what its manifest says."""


class UnwritableCacheError(DataError):
    """A cache folder that cannot be written to."""


@dataclass(frozen=True)
class Manifest:
    """What the cache knows of a set: where it came from, and what its file must be."""

    name: str
    source: str
    size: int
    sha256: str


def cache_folder() -> Path:
    """Where arcwise keeps what it fetched: ARCWISE_HOME, or else the user's cache folder in the way of the platform."""
    if home := os.environ.get("ARCWISE_HOME"):
        return Path(home).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).expanduser() / "arcwise"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "arcwise"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "arcwise" / "Cache"
    return Path.home() / ".cache" / "arcwise"


def file_of(name: str) -> Path:
    return cache_folder() / "data" / f"{name}.safetensors"


def manifest_of(name: str) -> Path:
    return cache_folder() / "data" / f"{name}.json"


def manifest(name: str) -> Manifest | None:
    """The manifest of a cached set whose file is there with the right length; None where the set is not cached."""
    try:
        return _checked_manifest(name)
    except DamagedCacheError:
        return None


def read(name: str) -> tuple[dict[str, Tensor], Manifest] | None:
    """The tensors of a cached set, or None where it is not cached.

    Size and SHA-256 are checked when a process reads the file for the first time, then the file is mapped into memory.
    """
    found = _checked_manifest(name)
    if found is None:
        return None
    path = file_of(name)
    try:
        status = path.stat()
        key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
        if key not in _VERIFIED:
            if (actual := sha256_of(path)) != found.sha256:
                raise _damaged(path, f"its SHA-256 is {actual[:12]}… and should be {found.sha256[:12]}…")
            _VERIFIED.add(key)
        return safetensors.torch.load_file(path), found
    except (OSError, safetensors.SafetensorError) as error:
        raise _damaged(path, str(error)) from error


def _checked_manifest(name: str) -> Manifest | None:
    path = manifest_of(name)
    try:
        content = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    try:
        found = Manifest(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise _damaged(path, "it is not a manifest") from error
    try:
        size = file_of(name).stat().st_size
    except OSError as error:
        raise _damaged(file_of(name), error.strerror or "it cannot be read") from error
    if size != found.size:
        raise _damaged(file_of(name), f"it holds {size} bytes and should hold {found.size}")
    return found


def _damaged(path: Path, why: str) -> DamagedCacheError:
    return DamagedCacheError(f"The cached file {path} is damaged: {why}.")


def write(name: str, tensors: dict[str, Tensor], source: str) -> Manifest:
    """Keep a set. Call it with the lock of `writing` held."""
    path = file_of(name)
    try:
        # The old manifest goes first: it must never stand beside a file that it does not describe.
        manifest_of(name).unlink(missing_ok=True)
        write_file(path, safetensors.torch.save(tensors))
        made = Manifest(name, source, path.stat().st_size, sha256_of(path))
        write_file(manifest_of(name), json.dumps(asdict(made), indent=2) + "\n")
    except OSError as error:
        raise _unwritable(name, error) from error
    return made


@contextmanager
def writing(name: str, reporter: Reporter) -> Iterator[Path]:
    """Hold the right to write a set, and have a folder to work in.

    The folder outlives an interruption, so that a download goes on where it stopped; everything else that an interrupted writer
    left is removed here.
    """
    folder = file_of(name).parent
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(folder / f"{name}.lock", reporter, f"fetching {name}"))
            for leftover in folder.glob(f".{name}.*.partial"):
                leftover.unlink(missing_ok=True)
            work = folder / f"{name}.partial"
            work.mkdir(exist_ok=True)
            for leftover in work.iterdir():
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
        except OSError as error:
            raise _unwritable(name, error) from error
        yield work


def forget_work(work: Path) -> None:
    """Remove the folder that `writing` gave, once the set is kept."""
    with suppress(OSError):
        shutil.rmtree(work)


def _unwritable(name: str, error: OSError) -> UnwritableCacheError:
    why = error.strerror or str(error)
    return UnwritableCacheError(
        f"{name} cannot be kept in {file_of(name).parent}: {why[0].lower() + why[1:]}. "
        "Make room or make it writable, or set ARCWISE_HOME to another folder."
    )

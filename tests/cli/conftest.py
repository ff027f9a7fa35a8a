"""The command, in this process and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from arcwise.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line on standard error, where a mistake is told; with it nothing else may have gone wrong."""
        assert "Traceback" not in self.err
        return self.err.rstrip("\n").rsplit("\n", 1)[-1]


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def arcwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Outcome:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["arcwise", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(words)
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, printed.out, printed.err)

    return run


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", **extra}


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start the command in a process of its own."""

    def begin(*arguments: object, cwd: Path, **extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "arcwise", *map(str, arguments)],
            cwd=cwd,
            env=environment(extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.fixture
def process(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> Command:
    """Run the command in a process of its own, to its end."""

    def run(*arguments: object, cwd: Path = tmp_path, **extra: str) -> Outcome:
        child = start(*arguments, cwd=cwd, **extra)
        out, err = child.communicate()
        return Outcome(child.returncode, out, err)

    return run


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one epoch; read only."""
    pytest.importorskip("sklearn")
    from arcwise import train

    torch.set_num_threads(1)
    return train("digits", dim=3, epochs=1, out=tmp_path_factory.mktemp("digits") / "run").path


@pytest.fixture
def snapshot() -> Callable[[Path], dict[Path, bytes]]:
    """Every file under a folder with its content."""
    return lambda folder: {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

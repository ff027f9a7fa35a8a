"""What holds for every command: help, versions, exit codes, typing mistakes, broken pipes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arcwise import __version__

Command = Callable[..., Any]

COMMANDS = [["train"], ["compare"], ["tune"], ["report"], ["data"], ["data", "list"], ["data", "get"], ["bench"]]


def test_arcwise_alone_shows_how_to_begin(arcwise: Command) -> None:
    done = arcwise()
    assert (done.code, done.err) == (0, "")
    assert "Start with: arcwise compare mnist" in done.out
    assert all(f" {name} " in done.out for name in ("train", "compare", "tune", "report", "data", "bench"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(command: list[str], arcwise: Command) -> None:
    done = arcwise(*command, "--help")
    assert (done.code, done.err) == (0, "")
    example = re.compile(rf"^(\s{{4}}|Example: |Start with: )arcwise {command[0]}( \S|$)", re.MULTILINE)
    assert example.search(done.out), done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_version_is_printed(arcwise: Command) -> None:
    done = arcwise("--version")
    assert (done.code, done.out, done.err) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["trian", "digits"], 'Did you mean "train"?'),
        (["train", "digits", "--los", "arcface"], "Did you mean --loss?"),
        (["train", "digits", "--epoch", "3"], "Did you mean --epochs?"),
        (["compare", "digits", "--seed", "x"], "--seed"),
        (["train", "digits", "--epochs", "two"], 'unable to convert "two" into int'),
        (["train", "digits", "--epochs"], "--epochs"),
        (["train", "digits", "extra"], "extra"),
        (["compare"], "DATA"),
        (["report"], "RUNS"),
        (["bench", "nmist"], "Did you mean mnist-epoch?"),
        (["bench", "mnist-epoch", "--repeat", "0"], "--repeat must be at least 1; got 0"),
        (["data", "gte", "mnist"], 'Did you mean "get"?'),
        (["data", "get", "nmist"], "Did you mean mnist?"),
        (["train", "digits", "--quiet", "--set", "lr"], "--set takes section.key=value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_typing_mistake_is_one_sentence_and_exit_code_two(words: list[str], meant: str, arcwise: Command) -> None:
    done = arcwise(*words)
    assert (done.code, done.out) == (2, "")
    assert done.sentence.startswith("arcwise: ")
    assert meant in done.sentence


def test_showing_help_loads_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; from arcwise.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: print([name for name in ('torch', 'numpy', 'matplotlib') if name in sys.modules])"
    )
    for words in (["--help"], ["train", "--help"], ["data", "--help"], ["--version"], ["trian"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", words


def test_a_reader_who_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m arcwise data list --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[", "")

"""Every code block of README.md and docs/ is run: python blocks as programs, console blocks as commands.

A block after `<!-- slow -->` runs only with the slow tests; one after `<!-- not run: reason -->` is not run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    mark: str
    code: str


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text[: match.start("language")].count("\n") + 1
            name = str(page.relative_to(ROOT))
            found.append(Block(name, line, match["language"], match["mark"] or "", match["code"]))
    return found


def cases(language: str) -> list[object]:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}", marks=[pytest.mark.slow] if block.mark == "slow" else [])
        for block in blocks()
        if block.language == language and not block.mark.startswith("not run")
    ]


def test_every_block_is_of_a_known_kind() -> None:
    """A misspelt language or mark would silently keep a block from being run."""
    for block in blocks():
        assert block.language in {"python", "console", "toml", "text", "mermaid"}, f"{block.page}:{block.line}"
        assert block.mark in {"", "slow"} or re.fullmatch(r"not run: .{10,}", block.mark), f"{block.page}:{block.line}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(
            r"\]\(([^)#:]+)(?:#[^)]*)?\)|<img[^>]* src=\"([^\"]+)\"", page.read_text(encoding="utf-8")
        ):
            path = target[0] or target[1]
            assert (page.parent / path).exists(), f"{page.name} links to {path}, which is not there"


@pytest.mark.parametrize("block", cases("python"))
def test_python_block_runs(block: Block, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block.code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{block.page}:{block.line}\n{done.stderr}"


@pytest.mark.parametrize("block", cases("console"))
def test_console_block_runs(block: Block, tmp_path: Path) -> None:
    for line in block.code.splitlines():
        if not line.startswith("$ "):
            continue
        command = line[2:].split("#")[0].strip()
        words = shlex.split(command)
        assert words[0] == "arcwise", f"{block.page}:{block.line} runs something else than arcwise: {command}"
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{block.page}:{block.line} {command}\n{done.stderr}"

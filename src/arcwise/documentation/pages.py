"""The text of the pages and of their index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from arcwise.documentation.catalogue import CHAPTERS, REQUIRED, Entry

WRITTEN = "<!-- Written by `python -m arcwise.documentation` from the docstrings: change those, and run it again. -->"


def page(entry: Entry, entries: list[Entry]) -> str:
    """The page of one loss."""
    words = entry.words
    parts = [
        WRITTEN,
        f"# {entry.title}",
        words.headline,
        *words.idea,
        f"![{_alternative(entry)}](pictures/{entry.stem}.svg)",
        _block("text", "\n".join(words.formula)),
        _legend(entry),
    ]
    if entry.defaults:
        parts += ["## Parameters", _parameters(entry)]
    parts += ["## When to take it", f"Take it when {words.when}", words.prefer]
    parts += ["## In Python", _block("python", entry.example)]
    command = f"$ arcwise train digits --loss '{entry.typed}' --epochs 1 --no-figures"
    parts += ["## On the command line", "<!-- slow -->\n" + _block("console", command)]
    parts += ["## Paper" if len(words.papers) == 1 else "## Papers", "\n\n".join(map(_with_link, words.papers))]
    parts += ["[All losses](index.md)"]
    return _linked("\n\n".join(part for part in parts if part), entry, entries) + "\n"


def index(entries: list[Entry]) -> str:
    """The table of all losses."""
    parts = [
        WRITTEN,
        "# Losses",
        "Each page has the idea, the formula, its curve, what the parameters do, an example that is run by the tests, and the paper. "
        "When in doubt, begin with [ArcFace](arcface.md), and compare it with [norm-softmax](norm-softmax.md) at a scale that was"
        " tuned as carefully: `arcwise tune` gives every loss the same number of trials.",
    ]
    for chapter, words in CHAPTERS.items():
        rows = [entry for entry in entries if entry.chapter == chapter]
        table = ["| loss | typed as | what it asks for | take it when |", "|---|---|---|---|"]
        table += [
            f"| [{entry.title}]({entry.stem}.md) | `{entry.typed}` | {_cell(entry.words.asks)} | {_cell(entry.words.when)} |"
            for entry in rows
        ]
        parts += [f"## {chapter}", words, "\n".join(table)]
    return _linked("\n\n".join(parts), None, entries) + "\n"


def _parameters(entry: Entry) -> str:
    rows = ["| parameter | default | searched by `arcwise tune` | what it does |", "|---|---|---|---|"]
    for name, default in entry.defaults.items():
        low_high = entry.search.get(name)
        searched = f"{low_high[0]:g} to {low_high[1]:g}" if low_high else ""
        rows.append(f"| `{name}` | {_default(default)} | {searched} | {_table_safe(entry.words.parameters[name])} |")
    return "\n".join(rows)


def _default(value: Any) -> str:
    if value is REQUIRED:
        return "to be given"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value!r}`".replace("'", '"')


def _legend(entry: Entry) -> str:
    """What the letters mean, for those that occur."""
    text = "\n".join(entry.words.formula)
    letters: Mapping[str, str] = {
        r"θ_y": "θ_y is the angle between an embedding and the centre of its own class",
        r"θ_j|θ_k": "θ_j the one to the centre of another class j"
        if "θ_y" in text
        else "θ_j is the angle between an embedding and the centre of class j",
        r"(?<![a-z])s·|s_t": "s the scale",
        r"ψ": "ψ what takes the place of the own class's cosine",
    }
    found = [words for pattern, words in letters.items() if re.search(pattern, text)]
    return f"Here {', '.join(found)}." if found else ""


def _alternative(entry: Entry) -> str:
    return f"Curve of {entry.title}"


def _with_link(paper: str) -> str:
    return re.sub(r"arXiv:(\d{4}\.\d{5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", paper)


def _linked(text: str, own: Entry | None, entries: list[Entry]) -> str:
    """Names in backticks become links to their pages, outside code blocks."""
    pages = {entry.title: entry.stem for entry in entries if entry is not own}
    outside = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for i in range(0, len(outside), 2):
        outside[i] = re.sub(
            r"(?<!\[)`(\w+)`", lambda m: f"[`{m[1]}`]({pages[m[1]]}.md)" if m[1] in pages else m[0], outside[i]
        )
    return "".join(outside)


def _cell(phrase: str) -> str:
    return _table_safe(phrase.removesuffix("."))


def _table_safe(text: str) -> str:
    return text.replace("|", "\\|")


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"

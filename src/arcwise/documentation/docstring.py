"""Reading the docstring of a loss.

Its parts stand in a fixed order: what it does in one sentence with two spaces before the citation; the idea; a paragraph that begins
with “Prefer”; the lines “Asks for:” and “Take it when:”; the sections Formula, Args (where there is something to set), Paper, and Example
where the usual one does not serve.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass

from arcwise.errors import ConfigError

_SECTIONS = ("Formula", "Args", "Attributes", "Paper", "Example")
_HEADING = re.compile(rf"^({'|'.join(_SECTIONS)}):$\n", re.MULTILINE)
_CITATION = re.compile(r"\s\s(?=\S)")


@dataclass(frozen=True)
class Description:
    """A loss in words.

    Attributes:
        headline: what it does, one sentence.
        citation: the paper in short; empty where there is none.
        idea: its paragraphs.
        prefer: when to take another one.
        asks: what it asks for, a phrase.
        when: when to take it, a phrase.
        formula: lines.
        parameters: what each does.
        papers: one entry each.
        example: Python, or empty.
    """

    headline: str
    citation: str
    idea: list[str]
    prefer: str
    asks: str
    when: str
    formula: list[str]
    parameters: dict[str, str]
    papers: list[str]
    example: str


def describe(name: str, docstring: str | None) -> Description:
    """The parts of a docstring; one that lacks a part is refused."""
    prose, *rest = _HEADING.split(inspect.cleandoc(docstring or ""))
    sections = {heading: textwrap.dedent(text).strip("\n") for heading, text in zip(rest[::2], rest[1::2], strict=True)}
    first, *paragraphs = [part for part in re.split(r"\n\s*\n", prose.strip()) if part.strip()] or [""]
    headline, _, citation = _CITATION.sub("\0", first.replace("\n", " "), count=1).partition("\0")
    idea: list[str] = []
    labelled: dict[str, str] = {}
    prefer = ""
    for paragraph in paragraphs:
        if paragraph.startswith("Prefer "):
            prefer = _joined(paragraph)
        elif paragraph.startswith(("Asks for: ", "Take it when: ")):
            labelled |= dict(line.split(": ", 1) for line in paragraph.splitlines())
        else:
            idea.append(_joined(paragraph))
    description = Description(
        headline=headline.strip(),
        citation=_joined(citation),
        idea=idea,
        prefer=prefer,
        asks=labelled.get("Asks for", ""),
        when=labelled.get("Take it when", ""),
        formula=sections.get("Formula", "").splitlines(),
        parameters=_parameters(sections.get("Args", "")),
        papers=_papers(sections.get("Paper", "")),
        example=sections.get("Example", ""),
    )
    _check(name, description)
    return description


def _check(name: str, description: Description) -> None:
    wanted = {
        "a first sentence": description.headline,
        "the idea": description.idea,
        "a paragraph that begins with “Prefer”": description.prefer,
        "“Asks for:”": description.asks,
        "“Take it when:”": description.when,
        "“Formula:”": description.formula,
        "“Paper:”": description.papers,
    }
    missing = [words for words, part in wanted.items() if not part]
    if missing:
        raise ConfigError(f"the docstring of {name} lacks {', '.join(missing)}; see arcwise.documentation.docstring.")


def _parameters(text: str) -> dict[str, str]:
    """From lines such as “m: the margin”, continued on indented ones."""
    entries = re.split(r"\n(?=\S)", text) if text else []
    pairs = (entry.split(":", 1) for entry in entries)
    return {name.strip(): _joined(words) for name, words in pairs}


def _papers(text: str) -> list[str]:
    """An entry ends with an arXiv number at the end of a line, or before an empty line."""
    entries = re.split(r"\n\s*\n|(?<=arXiv:\d{4}\.\d{5})\n", text)
    return [_joined(entry) for entry in entries if entry.strip()]


def _joined(text: str) -> str:
    return " ".join(text.split())

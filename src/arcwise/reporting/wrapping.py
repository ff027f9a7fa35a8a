"""Places where a long word may be broken, so that no name of a user runs out of its column."""

from __future__ import annotations

import re

_BREAK = "\u200b"


def breakable(text: str, longest: int = 24) -> str:
    """The text with invisible places to break it: after punctuation inside words longer than `longest`, else at that length."""
    return re.sub(rf"\S{{{longest + 1},}}", lambda match: _cut(match.group(), longest), text)


def _cut(word: str, longest: int) -> str:
    pieces = [piece for piece in re.split(r"(?<=[_/.\-:=,@+])", word) if piece]
    shorter = [piece[start : start + longest] for piece in pieces for start in range(0, len(piece), longest)]
    return _BREAK.join(shorter)

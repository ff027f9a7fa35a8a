"""Words on figures, whatever is in them: names of classes are data, never markup."""

from __future__ import annotations

import unicodedata
from functools import cache

# Fonts with wide coverage that a machine may have; DejaVu Sans comes with matplotlib and goes first.
WIDE_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Arial Unicode MS",
)
MISSING = "□"
ZERO_WIDTH_JOINER, VARIATION_SELECTORS = "\u200d", ("\ufe0e", "\ufe0f")


@cache
def families() -> tuple[str, ...]:
    """DejaVu Sans, then those of the wide fonts that this machine has."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in WIDE_FONTS if name in installed))


@cache
def _drawable() -> frozenset[int]:
    from matplotlib import font_manager

    codes: set[int] = set()
    for family in families():
        codes.update(font_manager.get_font(font_manager.findfont(family)).get_charmap())
    return frozenset(codes)


def plain(text: str) -> str:
    """`text` as matplotlib will print it literally: no mathematics, one line, and a box for what no font can draw."""
    cleaned = []
    for character in " ".join(text.split()):
        if character == ZERO_WIDTH_JOINER or character in VARIATION_SELECTORS:
            continue
        is_control = unicodedata.category(character) in ("Cc", "Cs", "Cf")
        if is_control:
            continue
        cleaned.append(character if ord(character) in _drawable() else MISSING)
    return "".join(cleaned).replace("$", r"\$")


def shorten(text: str, columns: int) -> str:
    """`text`, cut with … where it is wider than `columns`; East Asian letters count as two."""
    text = " ".join(text.split())
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def width(text: str) -> int:
    """How many columns `text` takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def class_names(names: tuple[str, ...], columns: int) -> list[str]:
    """Names ready to draw; one that no font can draw, or that is empty, becomes its number."""
    labels = []
    for index, name in enumerate(names):
        label = plain(shorten(name, columns))
        legible = label.strip(f"{MISSING} …")
        labels.append(label if legible else f"class {index}")
    return labels


def wrap(text: str, columns: int) -> str:
    """`text` broken at blanks into as few lines as it takes, all about equally long; a word longer than a line stays whole."""
    best = _broken(text, columns)
    while columns > 1:
        columns -= 1
        tighter = _broken(text, columns)
        if tighter.count("\n") > best.count("\n") or max(map(width, tighter.split("\n"))) > columns:
            break
        best = tighter
    return best


def _broken(text: str, columns: int) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and width(f"{line} {word}") > columns:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])

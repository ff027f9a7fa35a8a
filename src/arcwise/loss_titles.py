"""Losses as they are called in prose and on figures: `arcface-centers3+intra0.1` is ArcFace with 3 centres + intra 0.1.

A margin brings its own name (`Margin.title`), so one that is registered tomorrow needs nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

SOFTMAX = "softmax"


def title_of(label: str) -> str:
    """The name of a loss inside a sentence. What stands behind it in brackets stays, and so does a name that is not known.

    Args:
        label: a registered loss, with parameters, centres and terms behind it as `arcwise compare` writes them.
    """
    name, bracket, rest = label.partition(" (")
    known = base_of(name)
    own = _own_title(known)
    if own is None:
        return label
    head, *terms = re.split(r"\+(?=[a-z])", name)
    words = _with(own, _said_of_head(known, head[len(known) :]))
    return " + ".join([words, *map(_term_words, terms)]) + bracket + rest


def heading_of(label: str) -> str:
    """The same where it stands alone, as on a figure or in a table: names made of ordinary words begin with a capital."""
    title = title_of(label)
    return title if title == label and base_of(label) not in _heads() else title[:1].upper() + title[1:]


def title_of_settings(loss: Mapping[str, Any]) -> str:
    """The name of the loss that a configuration's `[loss]` describes, standing alone; its margin's numbers are left out."""
    name = str(loss.get("name") or "")
    label = [name]
    if isinstance(centres := loss.get("centers_per_class"), int) and centres > 1:
        label.append(f"centers{centres}")
    if isinstance(above := loss.get("filter_above"), int | float) and above < 1:
        label.append(f"filter{above:g}")
    terms = loss.get("terms")
    for term, settings in terms.items() if isinstance(terms, Mapping) else ():
        weight = settings.get("weight") if isinstance(settings, Mapping) else None
        label[-1] += f"+{term}{weight:g}" if isinstance(weight, int | float) else f"+{term}"
    return heading_of("-".join(label)) if name else ""


def base_of(label: str) -> str:
    """The registered loss itself: `arcface` of `arcface-m0.3`, `arcface+intra0.1` and `arcface (my run)`."""
    name = label.partition(" (")[0]
    return _longest(name, _heads()) or name


def is_alone(label: str, name: str) -> bool:
    """Whether this is the loss `name` itself, without parameters or terms; a run's name in brackets may follow."""
    return label.partition(" (")[0] == name


def _heads() -> tuple[str, ...]:
    from arcwise import margins

    return (SOFTMAX, *margins.names())


def _longest(name: str, known: Iterable[str]) -> str | None:
    return max((one for one in known if name == one or name.startswith((f"{one}-", f"{one}+"))), key=len, default=None)


def _own_title(name: str) -> str | None:
    from arcwise import margins

    if name == SOFTMAX:
        return SOFTMAX
    return margins.margin_class(name).title if name in margins.names() else None


def _with(title: str, said: list[str]) -> str:
    if not said:
        return title
    return f"{title} with {', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else f"{title} with {said[0]}"


def _said_of_head(name: str, written: str) -> list[str]:
    """`m = 0.3` and `3 centres`, from `-m0.3-centers3`."""
    from arcwise import margins

    own = [field.name for field in fields(margins.margin_class(name))] if name in margins.names() else []  # type: ignore[arg-type]
    said = []
    for key, value in _parameters(written, (*own, "centers", "filter")):
        if key == "centers":
            said.append(f"{value} centres")
        else:
            said.append(f"{key} = {value}" if key else value)
    return said


def _term_words(written: str) -> str:
    """`triplet 0.5 (m = 0.2)`, from `triplet0.5-m0.2`."""
    from arcwise import losses

    name = max((one for one in losses.names() if written.startswith(one)), key=len, default="")
    match = re.match(r"[\d.]+(e[-+]?\d+)?", written[len(name) :])
    if not name or match is None:
        return written
    rest = written[len(name) + match.end() :]
    said = [f"{key} = {value}" if key else value for key, value in _parameters(rest, losses.defaults(name))]
    return f"{name} {match[0]}" + (f" ({', '.join(said)})" if said else "")


def _parameters(written: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs from `-m0.3-miningsemi-hard`; the key is empty where none is known."""
    keys = "|".join(sorted(map(re.escape, known), key=len, reverse=True)) or "(?!)"
    pairs: list[tuple[str, str]] = []
    for part in filter(None, re.split(rf"-(?=(?:{keys})[-\d.a-z])", written)):
        match = re.fullmatch(rf"({keys})(.+)", part)
        pairs.append((match[1], _number(match[2])) if match else ("", part.strip("-").replace("-", ", ")))
    return pairs


def _number(text: str) -> str:
    try:
        return f"{float(text):g}"
    except ValueError:
        return text

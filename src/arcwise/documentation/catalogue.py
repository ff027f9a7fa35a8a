"""Every loss that has a page."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import arcwise
from arcwise import losses, margins
from arcwise.documentation.docstring import Description, describe
from arcwise.documentation.margin_picture import margin_picture, softmax_picture, sub_centre_picture
from arcwise.documentation.term_picture import term_picture
from arcwise.heads import sub_centers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REQUIRED = object()
CHAPTERS = {
    "Plain": "The baseline.",
    "Margins": "One of these in a `MarginHead`. All work by angle alone, unless their page says otherwise.",
    "For noisy labels": "Options of `MarginHead` that go with any margin.",
    "Terms": "Added to the loss of a head with a weight: `--loss arcface+intra:0.1`.",
}


@dataclass(frozen=True)
class Entry:
    """What the page of a loss is made from.

    Attributes:
        chapter: its part of the index.
        stem: the page's file name without its ending.
        title: how it is called in prose; a class name where it is a class.
        words: its docstring.
        defaults: its parameters with their defaults; `REQUIRED` where there is none.
        search: the ranges in which `arcwise tune` looks.
        example: a program that uses it.
        typed: the loss as it is typed on the command line.
        picture: draws its curve.
    """

    chapter: str
    stem: str
    title: str
    words: Description
    defaults: Mapping[str, Any]
    example: str
    typed: str
    picture: Callable[[], Figure]
    search: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def catalogue() -> list[Entry]:
    """All losses, in the order of the index."""
    return [
        _softmax(),
        *(_margin(name) for name in _margin_names()),
        _sub_centres(),
        *(_term(name) for name in losses.names()),
    ]


def _margin_names() -> list[str]:
    """The plain one first, then as one would learn them, then whatever else is registered."""
    first = ["norm-softmax", "arcface", "cosface", "sphereface", "combined"]
    return first + [name for name in margins.names() if name not in first]


def _softmax() -> Entry:
    cls = arcwise.SoftmaxHead
    words = describe("SoftmaxHead", cls.__doc__)
    example = _program(
        "head = arcwise.SoftmaxHead(dim=64, num_classes=100)",
        "loss = head(embeddings, labels)",
        "loss.backward()",
        "print(loss.item())",
    )
    return Entry(
        "Plain", "softmax", "SoftmaxHead", words, _signature(cls), words.example or example, "softmax", softmax_picture
    )


def _margin(name: str) -> Entry:
    cls = margins.margin_class(name)
    words = describe(cls.__name__, cls.__doc__)
    defaults = {f.name: REQUIRED if f.default is MISSING else f.default for f in fields(cls)}  # type: ignore[arg-type]
    # The strengths are written out; the other parameters are for those who look for them.
    shown = {key: value for key, value in defaults.items() if key in _tunable(cls, defaults)}
    home = "arcwise" if cls.__name__ in arcwise.__all__ else "arcwise.margins"
    call = f"{home}.{cls.__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"
    example = _program(
        f"head = arcwise.MarginHead(dim=64, num_classes=100, margin={call})",
        "loss, stats = head(embeddings, labels, return_stats=True)",
        "loss.backward()",
        "print(loss.item(), stats.accuracy(), stats.target_angle())",
    )
    return Entry(
        "Margins",
        name,
        cls.__name__,
        words,
        defaults,
        words.example or example,
        f"{name}{_brackets(shown)}",
        partial(margin_picture, margins.build(name)),
        cls.search,
    )


def _sub_centres() -> Entry:
    words = describe("arcwise.heads.sub_centers", sub_centers.__doc__)
    defaults = {key: value for key, value in _signature(arcwise.MarginHead).items() if key in words.parameters}
    return Entry(
        "For noisy labels",
        "sub-centres",
        "Sub-centres and filtering",
        words,
        defaults,
        words.example,
        "arcface(centers=3,filter=0.6)",
        sub_centre_picture,
    )


def _term(name: str) -> Entry:
    cls = losses.term_class(name)
    words = describe(cls.__name__, cls.__doc__)
    sizes = "dim=64, num_classes=100" if cls.owns_centers else ""
    example = _program(
        "head = arcwise.MarginHead(dim=64, num_classes=100)",
        f"term = arcwise.losses.{cls.__name__}({sizes})",
        f"loss = head(embeddings, labels) + {cls.default_weight:g} * term(embeddings, labels, head.weight)",
        "loss.backward()",
        "print(loss.item())",
    )
    head = "arcface" if cls.is_angular else "softmax"
    return Entry(
        "Terms",
        name,
        cls.__name__,
        words,
        _signature(cls),
        words.example or example,
        f"{head}+{name}{_brackets({key: losses.defaults(name)[key] for key in cls.search})}:{cls.default_weight:g}",
        partial(term_picture, name),
        cls.search,
    )


def _tunable(cls: type[margins.Margin], defaults: Mapping[str, Any]) -> set[str]:
    return set(cls.search) or {key for key, value in defaults.items() if isinstance(value, float)}


def _brackets(parameters: Mapping[str, Any]) -> str:
    inside = ",".join(f"{key}={value:g}" for key, value in parameters.items())
    return f"({inside})" if inside else ""


def _signature(cls: type) -> dict[str, Any]:
    parameters = list(inspect.signature(cls).parameters.values())
    return {p.name: REQUIRED if p.default is p.empty else p.default for p in parameters}


def _program(*lines: str) -> str:
    start = """
        import torch
        import arcwise

        embeddings = torch.randn(32, 64, requires_grad=True)  # what a network makes of 32 images
        labels = torch.randint(0, 100, (32,))
    """
    return textwrap.dedent(start).strip() + "\n\n" + "\n".join(lines)

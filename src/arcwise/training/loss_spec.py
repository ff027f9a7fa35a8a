"""Losses as people write them.

arcface   arcface(m=0.3)   softmax,arcface,cosface(m=0.2)     a head's loss, or several
arcface(m=0.3, centers=3, filter=0.6)                          three centres for each class, and no negatives above a cosine of 0.6
arcface+intra:0.1+triplet(m=0.2, mining=semi-hard):0.5         with terms beside it, each with its weight
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from arcwise import losses, margins
from arcwise.errors import ConfigError, did_you_mean

Value = bool | float | str

_SPEC = re.compile(r"\s*([\w-]+)\s*(?:\(([^()]*)\))?\s*(?::\s*([^\s:]*)\s*)?", re.DOTALL)
_OUTSIDE_BRACKETS = r"(?![^()]*\))"
# What is said of the head in the brackets of its margin.
_HEAD_OPTIONS = ("centers", "filter")


@dataclass(frozen=True)
class TermSpec:
    """A term beside the head: its name, its weight and what was said about its parameters."""

    name: str
    weight: float
    parameters: dict[str, Value] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`intra0.1`, or `triplet0.5-m0.2`."""
        return "-".join([f"{self.name}{self.weight:g}", *_written(self.parameters)])


@dataclass(frozen=True)
class LossSpec:
    """The name of a head's loss, what was said about its margin and its centres, and the terms beside it."""

    name: str
    margin: dict[str, Value] = field(default_factory=dict)
    centers_per_class: int = 1
    filter_above: float = 1.0
    terms: tuple[TermSpec, ...] = ()

    @property
    def label(self) -> str:
        """A short name fit for a folder: `arcface`, `arcface-m0.3` where parameters were given, `arcface+intra0.1` with a term."""
        parts = [self.name, *_written(self.margin)]
        if self.centers_per_class != 1:
            parts.append(f"centers{self.centers_per_class}")
        if self.filter_above != 1:
            parts.append(f"filter{self.filter_above:g}")
        return "+".join(["-".join(parts), *(term.label for term in self.terms)])

    @property
    def with_one_centre(self) -> LossSpec:
        """The same loss with one centre for each class and no filter, for which the same scale and margin are right."""
        return replace(self, centers_per_class=1, filter_above=1.0)


def loss_names() -> tuple[str, ...]:
    """All losses of heads."""
    return ("softmax", *margins.names())


def all_losses() -> list[LossSpec]:
    """Every loss of a head, ArcFace with three centres for each class, and each term beside ArcFace."""
    terms = [TermSpec(name, losses.term_class(name).default_weight) for name in losses.names()]
    return [
        *(LossSpec(name) for name in loss_names()),
        LossSpec("arcface", centers_per_class=3),
        *(LossSpec("arcface", terms=(term,)) for term in terms),
    ]


def parse_loss(text: str) -> LossSpec:
    """Read one loss with its terms."""
    first, *others = re.split(rf"\+{_OUTSIDE_BRACKETS}", text)
    name, parameters, weight = _parts(first, text, "arcface(m=0.3)")
    name = _known_head(name)
    if weight is not None:
        raise ConfigError(f"only terms have a weight; got {first.strip()!r}. Write arcface+intra:0.1.")
    terms = tuple(_term(part, text) for part in others)
    for term in terms:
        if [other.name for other in terms].count(term.name) > 1:
            raise ConfigError(
                f"the term {term.name} is named twice in {text.strip()!r}; name it once with the weight of both."
            )
    if name == "softmax":
        if parameters:
            raise ConfigError(f"softmax has no margin and takes no parameters; got {first.strip()!r}.")
        return LossSpec(name, terms=terms)
    known = [*(f.name for f in fields(margins.margin_class(name))), *_HEAD_OPTIONS]  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            raise ConfigError(f"{name} has no parameter {key!r}. {did_you_mean(key, known)}")
    centers = _centers(parameters.pop("centers", 1))
    filter_above = _filter(parameters.pop("filter", 1.0))
    margins.build(name, **parameters)
    return LossSpec(name, parameters, centers, filter_above, terms)


def as_specs(losses: str | Sequence[str | LossSpec]) -> list[LossSpec]:
    """Losses in one string, or each by itself as a string or a specification."""
    return parse_losses(losses) if isinstance(losses, str) else [as_spec(loss) for loss in losses]


def as_spec(loss: object) -> LossSpec:
    """One loss, written or specified."""
    if not isinstance(loss, str | LossSpec):
        raise ConfigError(f'a loss is written as a word, such as "arcface(m=0.3)"; got {loss!r}.')
    return parse_loss(loss) if isinstance(loss, str) else loss


def parse_losses(text: str) -> list[LossSpec]:
    """Read a comma-separated list of losses; `all` is every loss there is."""
    if text.strip() == "all":
        return all_losses()
    parts = re.split(rf",{_OUTSIDE_BRACKETS}", text)
    specs = [parse_loss(part) for part in parts if part.strip()]
    if not specs:
        raise ConfigError(f"no loss was named. Known: {', '.join(loss_names())}.")
    seen: list[LossSpec] = []
    for spec in specs:
        in_one_order = LossSpec(
            spec.name, spec.margin, spec.centers_per_class, spec.filter_above, tuple(sorted(spec.terms, key=_name))
        )
        if in_one_order in seen:
            raise ConfigError(f"the loss {spec.label} is named twice.")
        seen.append(in_one_order)
    return specs


def _name(term: TermSpec) -> str:
    return term.name


def _written(parameters: dict[str, Value]) -> list[str]:
    return [f"{key}{str(value).lower() if isinstance(value, bool) else value}" for key, value in parameters.items()]


def _parts(part: str, text: str, example: str) -> tuple[str, dict[str, Value], str | None]:
    """The name, what is in the brackets, and what stands after a colon."""
    match = _SPEC.fullmatch(part)
    if match is None:
        where = f" at {part.strip()!r}" if part != text else ""
        raise ConfigError(
            f"the loss {text!r} cannot be read{where}; write a name, or a name with parameters: {example}."
        )
    parameters: dict[str, Value] = {}
    for item in (match[2] or "").split(","):
        if not item.strip():
            continue
        key, equals, value = (word.strip() for word in item.partition("="))
        if not equals or not key:
            raise ConfigError(
                f"the loss {text!r} cannot be read at {item.strip()!r}; write name=value, as in {example}."
            )
        if key in parameters:
            raise ConfigError(f"{key} is given twice in {part.strip()!r}; give it once.")
        parameters[key] = _value(value)
    return match[1], parameters, match[3]


def _value(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text.strip("\"'")


def _term(part: str, text: str) -> TermSpec:
    given, parameters, written = _parts(part, text, "arcface+intra:0.1")
    name = _among(given, losses.names())
    if name is None:
        if _among(given, loss_names()) is not None:
            raise ConfigError(
                f"{given} is the loss of a head, and {text.strip()!r} has one already; got it as a term."
                f" Known terms: {', '.join(losses.names())}."
            )
        raise ConfigError(f"there is no term {given!r}. {did_you_mean(given, losses.names())}")
    losses.check(name, parameters)
    weight = losses.term_class(name).default_weight if written is None else _weight(name, written)
    return TermSpec(name, weight, parameters)


def _weight(name: str, written: str) -> float:
    try:
        weight = float(written)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise ConfigError(
            f"the weight of {name} must be a positive number; got {written!r}. Write {name}:0.1, or leave the term out."
        )
    return weight


def _known_head(given: str) -> str:
    name = _among(given, loss_names())
    if name is None:
        if _among(given, losses.names()) is not None:
            raise ConfigError(
                f"{given} is a term and stands beside a head's loss; got it alone. Write arcface+{given}."
            )
        raise ConfigError(f"there is no loss {given!r}. {did_you_mean(given, loss_names())}")
    return name


def _among(given: str, known: Iterable[str]) -> str | None:
    """The known name that is meant, whatever its case and dashes."""
    folded = {name.replace("-", ""): name for name in known}
    return folded.get(given.lower().replace("-", "").replace("_", ""))


def _centers(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1 or value % 1 != 0:
        raise ConfigError(
            f"centers must be a whole number from 1, the centres that each class has; got {value!r}. Write centers=3."
        )
    return int(value)


def _filter(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 < value <= 1:
        raise ConfigError(
            f"filter must be a cosine in (−1, 1], above which negatives are dropped; got {value!r}. Write filter=0.6."
        )
    return float(value)

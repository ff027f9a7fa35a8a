"""Losses as people write them: `arcface`, `arcface(m=0.3)`, `softmax,arcface,cosface(m=0.2)`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from arcwise import margins
from arcwise.errors import ConfigError, did_you_mean

MarginValue = float | str

_SPEC = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True)
class LossSpec:
    """The name of a loss and what was said about its margin."""

    name: str
    margin: dict[str, MarginValue] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """A short name fit for a folder: `arcface`, or `arcface-m0.3` where parameters were given."""
        return "-".join([self.name, *(f"{key}{value}" for key, value in self.margin.items())])


def loss_names() -> tuple[str, ...]:
    """All losses that can be trained."""
    return ("softmax", *margins.names())


def parse_loss(text: str) -> LossSpec:
    """Read one loss."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ConfigError(f"the loss {text!r} cannot be read; write a name, or a name with parameters: arcface(m=0.3).")
    name = _known_name(match[1])
    parameters = dict(_parameter(part, text) for part in (match[2] or "").split(",") if part.strip())
    if name == "softmax" and parameters:
        raise ConfigError(f"softmax has no margin and takes no parameters; got {text!r}.")
    if name != "softmax":
        margins.build(name, **parameters)
    return LossSpec(name, parameters)


def parse_losses(text: str) -> list[LossSpec]:
    """Read a comma-separated list of losses; `all` is every loss there is."""
    if text.strip() == "all":
        return [LossSpec(name) for name in loss_names()]
    parts = re.split(r",(?![^()]*\))", text)
    specs = [parse_loss(part) for part in parts if part.strip()]
    if not specs:
        raise ConfigError(f"no loss was named. Known: {', '.join(loss_names())}.")
    for spec in specs:
        if specs.count(spec) > 1:
            raise ConfigError(f"the loss {spec.label} is named twice.")
    return specs


def _known_name(given: str) -> str:
    folded = {name.replace("-", ""): name for name in loss_names()}
    name = folded.get(given.lower().replace("-", "").replace("_", ""))
    if name is None:
        raise ConfigError(f"there is no loss {given!r}. {did_you_mean(given, loss_names())}")
    return name


def _parameter(part: str, text: str) -> tuple[str, MarginValue]:
    key, equals, value = part.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"the loss {text!r} cannot be read at {part.strip()!r}; write name=value, as in arcface(m=0.3)."
        )
    return key.strip(), _number_or_word(value.strip())


def _number_or_word(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value.strip("\"'")

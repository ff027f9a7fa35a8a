"""What is searched for a loss, and between which bounds.

scale                 0.35 to 5 times the one that `choose_scale` gives, on a logarithmic scale
a margin's parameters the ranges in its `search`
the learning rate     a quarter to four times the recipe's, on a logarithmic scale, for losses without a scale to search:
                      softmax, which has none, and margins that own theirs. So every loss has something to spend its trials on
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arcwise import losses, margins
from arcwise.training.config import Config
from arcwise.training.loss_spec import LossSpec

SCALE_FACTORS = (0.35, 5.0)
LR_FACTORS = (0.25, 4.0)
WEIGHT_FACTORS = (0.1, 10.0)
SCALE, LR, WEIGHT = "scale", "lr", "weight"


@dataclass(frozen=True)
class Dimension:
    """One number to search.

    Attributes:
        default: where the search begins; it may lie outside the bounds.
        log: whether equal ratios count as equal distances.
    """

    name: str
    low: float
    high: float
    default: float
    log: bool = False

    def at(self, share: float) -> float:
        """The value at a share of the way from `low` to `high`, to four digits that count."""
        if self.log:
            value = math.exp(math.log(self.low) + share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        return float(f"{value:.4g}")

    def share_of(self, value: float) -> float:
        """The share at which a value lies; at one of the ends where it lies outside."""
        linear = (value - self.low) / (self.high - self.low)
        share = math.log(value / self.low) / math.log(self.high / self.low) if self.log else linear
        return min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Space:
    """All that is searched for one loss."""

    dimensions: tuple[Dimension, ...]

    @property
    def default(self) -> dict[str, float]:
        return {dimension.name: dimension.default for dimension in self.dimensions}

    def at(self, shares: Sequence[float]) -> dict[str, float]:
        return {d.name: d.at(share) for d, share in zip(self.dimensions, shares, strict=True)}

    def shares_of(self, parameters: Mapping[str, float]) -> list[float]:
        return [d.share_of(parameters[d.name]) for d in self.dimensions]


def space_of(config: Config, loss_spec: LossSpec) -> Space:
    """The space around a config that stands for the default setting.

    Args:
        loss_spec: as it was typed: the parameters in its brackets are not searched.
    """
    loss = config.loss
    dimensions: list[Dimension] = []
    margin = None if loss.name == "softmax" else margins.margin_class(loss.name)
    if margin is not None and not margin.owns_scale:
        low, high = (factor * loss.scale for factor in SCALE_FACTORS)
        dimensions.append(Dimension(SCALE, low, high, loss.scale, log=True))
    else:
        dimensions.append(Dimension(LR, *LR_FACTORS, default=1.0, log=True))
    if margin is not None:
        for name, (low, high) in margin.search.items():
            if name not in loss_spec.margin:
                dimensions.append(Dimension(name, low, high, float(loss.margin[name])))
    for term in loss_spec.terms:
        begun = loss.terms[term.name]
        weight = float(begun[WEIGHT])
        low, high = (factor * weight for factor in WEIGHT_FACTORS)
        dimensions.append(Dimension(f"{term.name}.{WEIGHT}", low, high, weight, log=True))
        for name, (low, high) in losses.term_class(term.name).search.items():
            if name not in term.parameters:
                dimensions.append(Dimension(f"{term.name}.{name}", low, high, float(begun[name])))
    return Space(tuple(dimensions))


def with_parameters(config: Config, parameters: Mapping[str, float]) -> Config:
    """The config with these values in place of the default ones."""
    loss, train = config.loss, config.train
    for name, value in parameters.items():
        if name == SCALE:
            loss = replace(loss, scale=value)
        elif name == LR:
            train = replace(train, lr=float(f"{train.lr * value:.4g}"))
        elif "." in name:
            term, _, key = name.partition(".")
            loss = replace(loss, terms={**loss.terms, term: {**loss.terms[term], key: value}})
        else:
            loss = replace(loss, margin={**loss.margin, name: value})
    return replace(config, loss=loss, train=train)

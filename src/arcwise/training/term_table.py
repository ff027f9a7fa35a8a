"""The terms of a config: a table for each, with its weight and its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from arcwise import losses
from arcwise.errors import ConfigError
from arcwise.losses import Term
from arcwise.training.loss_spec import TermSpec, Value

TermTable = Mapping[str, Mapping[str, Value]]


def table_of(terms: Iterable[TermSpec]) -> dict[str, dict[str, Value]]:
    """What was asked for, with every parameter written out."""
    return {term.name: {"weight": term.weight, **losses.defaults(term.name), **term.parameters} for term in terms}


def check_table(table: TermTable) -> None:
    """Refuse terms that are not known, weights that are not positive and parameters that cannot be used."""
    for name, values in table.items():
        losses.check(name, _parameters(values))
        weight = _weight(name, values)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise ConfigError(
                f"loss.terms.{name}.weight must be a positive number; got {weight!r}. Or leave the term out."
            )


def build_terms(table: TermTable, dim: int, num_classes: int) -> dict[str, tuple[Term, float]]:
    """Each term with its weight."""
    return {
        name: (losses.build(name, dim, num_classes, _parameters(values)), float(_weight(name, values)))
        for name, values in table.items()
    }


def _weight(name: str, values: Mapping[str, Value]) -> Value:
    return values.get("weight", losses.term_class(name).default_weight)


def _parameters(values: Mapping[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in values.items() if key != "weight"}

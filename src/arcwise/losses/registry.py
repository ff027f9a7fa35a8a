"""The terms by the names under which the command line and config files know them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import torch

from arcwise.errors import ConfigError, did_you_mean
from arcwise.losses.term import Term
from arcwise.margins.base import check_name

T = TypeVar("T", bound=type[Term])
_registry: dict[str, type[Term]] = {}
_SIZES = ("self", "dim", "num_classes")


def register(name: str) -> Callable[[T], T]:
    """Class decorator: give a term the name by which the command line and config files know it."""

    def add(cls: T) -> T:
        check_name(name, cls, _registry)
        cls.name = name
        _registry[name] = cls
        return cls

    return add


def names() -> tuple[str, ...]:
    """The names of all registered terms."""
    return tuple(_registry)


def term_class(name: str) -> type[Term]:
    """The term registered under `name`."""
    if name not in _registry:
        raise ConfigError(f"there is no term {name!r}. {did_you_mean(name, _registry)}")
    return _registry[name]


def defaults(name: str) -> dict[str, Any]:
    """The parameters of a term with their usual values; the sizes that follow from the data are not among them."""
    signature = inspect.signature(term_class(name).__init__)
    return {key: p.default for key, p in signature.parameters.items() if key not in _SIZES}


def build(name: str, dim: int, num_classes: int, parameters: Mapping[str, Any] | None = None) -> Term:
    """Make the term registered under `name`, with its defaults where nothing else is given.

    Args:
        dim: the width of the embeddings, and
        num_classes: the number of classes, for the terms that have centres of their own.
        parameters: the term's own.
    """
    cls, known = term_class(name), defaults(name)
    hints = get_type_hints(cls.__init__)
    for key, value in (parameters or {}).items():
        if key not in known:
            allowed = did_you_mean(key, known) if known else "It has none; leave the brackets out."
            raise ConfigError(f"{name} has no parameter {key!r}. {allowed}")
        _check_kind(name, key, value, hints[key], known[key])
    sizes = (dim, num_classes) if cls.owns_centers else ()
    return cls(*sizes, **(parameters or {}))


def check(name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a term that could not be built. Draws no random numbers."""
    with torch.random.fork_rng(devices=[]):
        build(name, 2, 2, parameters)


def _check_kind(name: str, key: str, value: Any, hint: Any, default: Any) -> None:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        if value not in words:
            raise ConfigError(f"{name}'s {key} cannot be {value!r}. {did_you_mean(str(value), words)}")
        return
    assert hint is float, f"no way is known to read {name}'s {key}, a {hint}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name}'s {key} must be a number, such as {default!r}; got {value!r}.")

"""What every margin is: a small frozen object that turns the true class's cosine into the one that training demands."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch
from torch import Tensor

from arcwise.errors import ConfigError, did_you_mean

Gradient = Literal["exact", "detached"]


class Margin(ABC):
    """What a margin does to the cosine between an embedding and the centre of its own class.

    A margin knows ψ and its slope; the heads and the engines know nothing else about it. Subclasses are frozen dataclasses and
    implement `curve` and `at`.

    Notation: θ is the angle to the own centre, c = cos θ, ψ(θ) what takes the place of c in the target's logit.
    """

    name: ClassVar[str] = ""
    gradient: Gradient

    @abstractmethod
    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        """ψ and its slope dψ/dc at each cosine, both finite everywhere; called without gradients."""

    @abstractmethod
    def at(self, fraction: float) -> Self:
        """The same margin at a fraction of its strength: 0 is none at all, 1 is `self`. Used to warm a margin up."""

    def target(self, cos_B: Tensor) -> Tensor:
        """ψ(θ) for each cosine, differentiable in the cosine.

        Works in float32 at least, whatever comes in: 1 − 1e-4 is already 1 in bfloat16. The slope is the closed form of `curve`, not
        what automatic differentiation would make of the square root in it, which is infinite at c = ±1.
        """
        cos_B = cos_B.to(torch.promote_types(cos_B.dtype, torch.float32))
        with torch.no_grad():
            psi_B, slope_B = self.curve(cos_B.clamp(-1.0, 1.0))
        if self.gradient == "detached":
            slope_B = torch.ones_like(slope_B)
        # The bracket is zero: it leaves the value as it is and carries the gradient.
        return psi_B + slope_B * (cos_B - cos_B.detach())

    def target_at_zero(self) -> float:
        """ψ(0): the highest cosine that an embedding can be credited with when it lies on its centre."""
        return float(self.target(torch.ones(1, dtype=torch.float64)))

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, for a config file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _check_gradient(self) -> None:
        if self.gradient not in ("exact", "detached"):
            raise ConfigError(f'gradient must be "exact" or "detached"; got {self.gradient!r}.')


def sine_and_angle(cos_B: Tensor) -> tuple[Tensor, Tensor]:
    """sin θ and θ from cos θ, both precise at the two ends."""
    sin_B = ((1 - cos_B) * (1 + cos_B)).sqrt()
    return sin_B, torch.atan2(sin_B, cos_B)


def off_the_ends(cos_B: Tensor, sin_B: Tensor) -> tuple[Tensor, Tensor]:
    """sin θ and θ for a slope that divides by sin θ: the angle is kept √ε away from 0 and π.

    Nearer than that a cosine's own rounding is larger than what it says about the angle. Both are moved, so that a slope that
    has a limit at the end takes it.
    """
    sin_B = sin_B.clamp_min(math.sqrt(torch.finfo(sin_B.dtype).eps))
    return sin_B, torch.atan2(sin_B, cos_B)


def check_angle(name: str, value: float) -> None:
    """Refuse an angular margin outside [0, π/2), and recognise degrees."""
    if not 0 <= value < math.pi / 2:
        hint = f" If that is in degrees, pass math.radians({value:g})." if 2 <= value <= 90 else ""
        raise ConfigError(f"{name} must be in [0, π/2) radians; got {value:g}.{hint}")


M = TypeVar("M", bound=type[Margin])
_registry: dict[str, type[Margin]] = {}


def register(name: str) -> Callable[[M], M]:
    """Class decorator: give a margin the name by which the command line and config files know it."""

    def add(cls: M) -> M:
        cls.name = name
        _registry[name] = cls
        return cls

    return add


def names() -> tuple[str, ...]:
    """The names of all registered margins."""
    return tuple(_registry)


def margin_class(name: str) -> type[Margin]:
    """The margin registered under `name`."""
    if name not in _registry:
        raise ConfigError(f"there is no margin {name!r}. {did_you_mean(name, _registry)}")
    return _registry[name]


def build(name: str, **parameters: Any) -> Margin:
    """Make the margin registered under `name`, with its defaults where nothing else is given."""
    cls = margin_class(name)
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for given in parameters:
        if given not in known:
            raise ConfigError(f"{name} has no parameter {given!r}. {did_you_mean(given, known)}")
    for field in fields(cls):  # type: ignore[arg-type]
        value = parameters.get(field.name, field.default)
        wanted = (int, float) if isinstance(field.default, float) else type(field.default)
        if isinstance(value, bool) or not isinstance(value, wanted):
            kind = "a number" if isinstance(field.default, float) else "a word in quotes"
            raise ConfigError(f"{name}'s {field.name} must be {kind}, such as {field.default!r}; got {value!r}.")
    return cls(**parameters)

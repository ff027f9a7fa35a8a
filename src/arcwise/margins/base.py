"""What every margin is: a small frozen object that says what training demands of a batch's cosines.

A margin answers five questions, and the heads and engines know nothing else about it:

    psi         what takes the place of the own class's cosine
    negatives   what takes the place of the other classes' cosines; by default they stay
    penalty     what is added to a sample's loss; by default nothing
    state       what is kept from batch to batch, how it begins and how a batch changes it
    reduction   how logits become a loss: "softmax", or "binary" with one yes-or-no question a class
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch
from torch import Tensor

from arcwise.errors import ConfigError, did_you_mean

Gradient = Literal["exact", "detached"]
Reduction = Literal["softmax", "binary"]
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Facts:
    """What a margin may know about the problem when its state begins.

    Attributes:
        num_classes: N.
        dim: the embeddings' width D.
        scale: s; 1 for margins that own it.
        class_counts: (N,) how many samples each class has, where that is known.
    """

    num_classes: int
    dim: int
    scale: float = 1.0
    class_counts: Tensor | None = None


@dataclass(frozen=True)
class Samples:
    """What a margin may ask about the samples of a batch, all in float32 at least.

    Attributes:
        cos_B: the cosine between each embedding and its own centre; carries gradients.
        norm_B: the embeddings' lengths, with gradients; empty unless the margin says `reads_norm`.
        labels_B: the classes; −1 is a sample to ignore.
        state: what the margin keeps.
        training: whether this is a training step. Only then is anything drawn at random.
        log_negatives: s ↦ (B,) log Σ exp(s·cos θ_j) over the other classes j, without gradients. It takes a pass over all classes.
    """

    cos_B: Tensor
    norm_B: Tensor
    labels_B: Tensor
    state: State
    training: bool
    log_negatives: Callable[[Tensor | float], Tensor]

    @property
    def valid_B(self) -> Tensor:
        """Which samples count."""
        return self.labels_B >= 0

    def mean(self, values_B: Tensor) -> Tensor:
        """The mean over the samples that count; 0 where there are none."""
        return torch.where(self.valid_B, values_B, 0.0).sum() / self.valid_B.sum().clamp_min(1)


class Margin(ABC):
    """What a margin does to the cosine between an embedding and the centre of its own class.

    Subclasses are frozen dataclasses and implement `curve` and `at`; those that ask for more override what else there is.

    Notation: θ is the angle to the own centre, c = cos θ, ψ(θ) what takes the place of c in the target's logit.
    """

    name: ClassVar[str] = ""
    # How it is called in prose; the class's own name where nothing else is said.
    title: ClassVar[str] = ""
    gradient: Gradient = "exact"
    # How logits become a loss.
    reduction: ClassVar[Reduction] = "softmax"
    # Whether `negatives` does anything.
    reshapes_negatives: ClassVar[bool] = False
    # Whether ψ or the penalty depends on the embeddings' lengths.
    reads_norm: ClassVar[bool] = False
    # Whether s is the margin's own affair, kept in its state under "scale".
    owns_scale: ClassVar[bool] = False
    # Whether a strength of 0 leaves plain norm-softmax.
    becomes_norm_softmax: ClassVar[bool] = True
    # The parameters worth tuning, each with the range to look in.
    search: ClassVar[Mapping[str, tuple[float, float]]] = {}

    @abstractmethod
    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        """ψ and its slope dψ/dc at each cosine, both finite everywhere, for a sample of the usual kind; called without gradients."""

    @abstractmethod
    def at(self, fraction: float) -> Self:
        """The same margin at a fraction of its strength: 0 is none at all, 1 is `self`. Used to warm a margin up."""

    def target(self, cos_B: Tensor) -> Tensor:
        """ψ(θ) for each cosine, differentiable in the cosine, for a sample of the usual kind.

        Works in float32 at least, whatever comes in: 1 − 1e-4 is already 1 in bfloat16. The slope is the closed form of `curve`, not
        what automatic differentiation would make of the square root in it, which is infinite at c = ±1.
        """
        return self._differentiable(cos_B, self.curve)

    def psi(self, samples: Samples) -> Tensor:
        """(B,) ψ(θ) for each sample of a batch, differentiable in what it depends on."""
        return self.target(samples.cos_B)

    def negatives(self, cos: Tensor, psi: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """What takes the place of other classes' cosines, and its slope. Called without gradients, on any part of the classes.

        Args:
            cos: (B, n) cosines.
            psi: (B, 1) the samples' ψ(θ).
        """
        return cos, torch.ones_like(cos)

    def penalty(self, samples: Samples) -> Tensor | None:
        """(B,) what is added to each sample's loss."""
        return None

    def initial_state(self, facts: Facts) -> dict[str, Tensor]:
        """What the margin keeps from batch to batch, at the beginning of training. The head keeps it as buffers."""
        return {}

    def initial_parameters(self, facts: Facts) -> dict[str, Tensor]:
        """What the margin learns, at the beginning. It stands among the state; the head keeps it as parameters."""
        return {}

    def observe(self, samples: Samples) -> dict[str, Tensor]:
        """The state after a training batch, computed before ψ is asked for; called without gradients."""
        return {}

    def offset(self, state: State) -> Tensor | float:
        """What a binary reduction adds to every logit: where its threshold lies."""
        return 0.0

    def weights(self, scale: Tensor | float) -> tuple[Tensor | float, Tensor | float]:
        """How much a binary reduction makes of the own class, and of each other class."""
        return 1.0, 1.0

    def target_at_zero(self) -> float:
        """ψ(0): the highest value that an embedding can be credited with when it lies on its centre."""
        return float(self.target(torch.ones(1, dtype=torch.float64)))

    def negative_at(self, cos: float, facts: Facts) -> float:
        """What takes the place of a cosine to another class, for an embedding that lies on its own centre."""
        if not self.reshapes_negatives:
            return cos
        cos_11, psi_11 = (torch.full((1, 1), value, dtype=torch.float64) for value in (cos, self.target_at_zero()))
        state = {**self.initial_state(facts), **self.initial_parameters(facts)}
        return float(self.negatives(cos_11, psi_11, state)[0])

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, for a config file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _differentiable(self, cos_B: Tensor, curve: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        """The value of a curve, with its slope as gradient."""
        cos_B = cos_B.to(torch.promote_types(cos_B.dtype, torch.float32))
        with torch.no_grad():
            psi_B, slope_B = curve(cos_B.clamp(-1.0, 1.0))
        if self.gradient == "detached":
            slope_B = torch.ones_like(slope_B)
        return with_slope(psi_B, slope_B, cos_B)

    def _check_gradient(self) -> None:
        if self.gradient not in ("exact", "detached"):
            raise ConfigError(f'gradient must be "exact" or "detached"; got {self.gradient!r}.')


def with_slope(value: Tensor, slope: Tensor, argument: Tensor) -> Tensor:
    """A value that carries `slope` as its gradient in the argument. The bracket is zero."""
    return value + slope * (argument - argument.detach())


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


def check_cosine(name: str, value: float) -> None:
    """Refuse a margin on the cosine outside [0, 2)."""
    if not 0 <= value < 2:
        raise ConfigError(
            f"{name} must be in [0, 2), a difference of cosines; got {value:g}. Usual values are 0.2 to 0.4."
        )


def check_range(name: str, value: float, low: float, high: float, meaning: str) -> None:
    """Refuse a parameter outside [low, high]."""
    if not low <= value <= high:
        raise ConfigError(f"{name} must be in [{low:g}, {high:g}], {meaning}; got {value:g}.")


def check_word(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is not among the known ones."""
    if value not in known:
        raise ConfigError(f"there is no {name} {value!r}. {did_you_mean(value, known)}")


M = TypeVar("M", bound=type[Margin])
_registry: dict[str, type[Margin]] = {}


def register(name: str) -> Callable[[M], M]:
    """Class decorator: give a margin the name by which the command line and config files know it."""

    def add(cls: M) -> M:
        _check_fields(cls)
        check_name(name, cls, {"softmax": None, **_registry})
        cls.name = name
        cls.title = cls.__dict__.get("title", cls.__name__)
        _registry[name] = cls
        return cls

    return add


def check_name(name: str, cls: type, taken: Mapping[str, type | None]) -> None:
    """Refuse a name that cannot be typed, or that another class has."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"a name is made of small letters, digits and single dashes, as in my-margin; got {name!r}.")
    holder = taken.get(name, cls)
    # The same class again is a module that was loaded anew.
    if holder is None or (holder.__module__, holder.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(f"the name {name} is taken; register {cls.__name__} under another.")


def _check_fields(cls: type[Margin]) -> None:
    """Refuse a margin whose parameters could be neither typed nor written into a config."""
    if "__dataclass_fields__" not in cls.__dict__:
        raise ConfigError(f"{cls.__name__} must be a frozen dataclass; put @dataclass(frozen=True) under @register.")
    for field in fields(cls):  # type: ignore[arg-type]
        if not isinstance(field.default, bool | float | str):
            raise ConfigError(
                f"{cls.__name__}'s {field.name} needs a default that is a float, a bool or a word; got"
                f" {'none' if field.default is MISSING else repr(field.default)}. Write a whole number as a float: 2.0."
            )


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
    _check_kinds(cls, parameters)
    return cls(**parameters)


def check_parameters(margin: Margin) -> None:
    """Refuse a margin whose parameters are of another kind than their defaults: "no" would switch a bool on."""
    if type(margin) in _registry.values():
        _check_kinds(type(margin), margin.parameters())


def _check_kinds(cls: type[Margin], parameters: Mapping[str, Any]) -> None:
    for field in fields(cls):  # type: ignore[arg-type]
        value = parameters.get(field.name, field.default)
        if not _is_like(value, field.default):
            raise ConfigError(
                f"{cls.name}'s {field.name} must be {_kind(field.default)}, such as {field.default!r}; got {value!r}."
            )


def _is_like(value: Any, default: Any) -> bool:
    if isinstance(default, bool):
        return isinstance(value, bool)
    wanted = (int, float) if isinstance(default, float) else type(default)
    return isinstance(value, wanted) and not isinstance(value, bool)


def _kind(default: Any) -> str:
    return (
        "true or false"
        if isinstance(default, bool)
        else "a number"
        if isinstance(default, float)
        else "a word in quotes"
    )

"""What tuning found, as a file: `arcwise tune` writes one, and training reads it again.

The package ships such a file for the data sets that were tuned with it: `training/tuned/<dataset>.toml`, a copy of the `tuned.toml`
that `arcwise tune <dataset>` wrote.
"""

from __future__ import annotations

import importlib.resources
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from arcwise.errors import ConfigError, did_you_mean
from arcwise.training.config import toml_value
from arcwise.training.loss_spec import LossSpec, Value

SHIPPED = importlib.resources.files("arcwise.training") / "tuned"
MEASURES = {"map_at_r": "MAP@R on held-out classes", "accuracy": "accuracy on held-out samples"}


@dataclass(frozen=True)
class TunedLoss:
    """The best setting that was found for one loss.

    Attributes:
        score: what it scored on held-out training data.
        default_score: what the default setting scored.
        scale: s; 0 for losses that have none or choose their own.
        lr_factor: what the recipe's learning rate is multiplied by.
        margin: the margin's parameters that were searched.
        terms: for each term beside the head its weight, and its parameters that were searched.
    """

    score: float
    default_score: float
    scale: float = 0.0
    lr_factor: float = 1.0
    margin: Mapping[str, Value] = field(default_factory=dict)
    terms: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


@dataclass(frozen=True)
class TunedSettings:
    """The best setting for each of several losses on one data set, and how it was found.

    Attributes:
        data: the name of the data set.
        trials: for each loss.
        measured: the score, a key of `MEASURES`.
        losses: by their labels.
    """

    data: str
    dim: int
    backbone: str
    epochs: int
    batch_size: int
    trials: int
    seed: int
    measured: str
    command: str
    arcwise: str
    losses: Mapping[str, TunedLoss]
    where: str = ""

    @property
    def reason(self) -> str:
        """Where a setting comes from, for those who are told about choices."""
        return f"tuned on held-out training data ({self.command})"

    def find(self, loss: LossSpec) -> TunedLoss | None:
        """The setting of a loss; with several centres or a filter, that of the same loss without, where it has none of its own."""
        return self.losses.get(loss.label) or self.losses.get(loss.with_one_centre.label)


def to_toml(settings: TunedSettings) -> str:
    """The settings as TOML."""
    facts = {key: value for key, value in asdict(settings).items() if key not in ("losses", "where")}
    lines = [f"{key} = {toml_value(value)}" for key, value in facts.items()]
    for label, loss in settings.losses.items():
        values = asdict(loss)
        terms = {f"terms.{name}": table for name, table in values.pop("terms").items()}
        tables = {"margin": values.pop("margin"), **terms}
        name = f"losses.{toml_value(label)}"
        lines += ["", f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
        for key, table in tables.items():
            if table:
                lines += ["", f"[{name}.{key}]", *(f"{k} = {toml_value(value)}" for k, value in table.items())]
    return "\n".join(lines) + "\n"


def from_toml(text: str, where: str) -> TunedSettings:
    """Read settings; an unknown key, a missing one or a value of the wrong kind is an error that names it."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.") from None
    losses = tree.get("losses")
    if not isinstance(losses, dict) or not losses or not all(isinstance(loss, dict) for loss in losses.values()):
        raise ConfigError(
            f"{where} is no result of tuning: it has no [losses]. Give the tuned.toml that arcwise tune wrote."
        )
    made = {label: _build(TunedLoss, loss, f"{where}: losses.{label}") for label, loss in losses.items()}
    return _build(TunedSettings, {**tree, "losses": made, "where": where}, where)


def read_tuned(path: Any) -> TunedSettings:
    """Read a tuned.toml."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file; what arcwise tune writes is TOML in UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"the tuned settings {path} cannot be read: {error.strerror or error}.") from None
    return from_toml(text, str(path))


def shipped_for(data: str) -> TunedSettings | None:
    """What the package ships for a data set, if it does."""
    file = SHIPPED / f"{data}.toml"
    return from_toml(file.read_text(encoding="utf-8"), f"the shipped {data}.toml") if file.is_file() else None


T = typing.TypeVar("T", TunedLoss, TunedSettings)


def _build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    hints = typing.get_type_hints(cls)
    known = [f.name for f in fields(cls)]
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{where} has an unknown key {key!r}. {did_you_mean(key, known)}")
        wanted = typing.get_origin(hints[key]) or hints[key]
        allowed = (int, float) if wanted is float else wanted
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise ConfigError(
                f"{where}: {key} must be of the kind {getattr(wanted, '__name__', wanted)}; got {value!r}."
            )
    missing = [
        f.name for f in fields(cls) if f.name not in values and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)}.")
    return cls(**values)

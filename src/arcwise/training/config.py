"""What a training run is: a frozen tree of settings that can be written as TOML and run again.

A config in a run folder is *resolved*: nothing in it is left to be chosen, so the same file gives the same run.
"""

from __future__ import annotations

import json
import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from arcwise._version import __version__
from arcwise.data import AUGMENTATIONS
from arcwise.errors import ConfigError, did_you_mean
from arcwise.training.loss_spec import Value
from arcwise.training.term_table import check_table


@dataclass(frozen=True)
class DataConfig:
    """The data. `name` is a known set, a folder of images by class, a CSV of path,label or an .npz of features."""

    name: str
    image_size: int = 0  # 0: as the data comes
    test_share: float = 0.2
    augment: str = "none"
    label_noise: float = 0.0  # the share of the training labels that is replaced by another class on purpose
    leave_out: str = ""  # a mislabelled.csv: training ignores what it lists
    relabel: str = ""  # or takes the labels that it suggests
    doubtful_by: float = 20.0  # only what lies nearer to another class by more than so many degrees counts
    quarter_turns: bool = False  # pictures turned by quarters are classes of their own in training


@dataclass(frozen=True)
class BackboneConfig:
    """The network from picture to embedding, and the embedding's width."""

    name: str
    dim: int


@dataclass(frozen=True)
class LossConfig:
    """The head: "softmax" or the name of a margin, with the margin's own parameters."""

    name: str
    scale: float = 0.0  # 0: none, as in softmax
    warmup_epochs: float = 0.0
    margin: Mapping[str, Value] = field(default_factory=dict)
    centers_per_class: int = 1
    filter_above: float = 1.0  # negatives whose cosine is above it are dropped; 1: none
    terms: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # beside the head, each with its weight


@dataclass(frozen=True)
class TrainConfig:
    """How training goes."""

    epochs: int
    batch_size: int = 256
    optimiser: Literal["sgd", "adamw"] = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    clip_norm: float = 1.0  # longest gradient that a step may take; 0: any
    warmup_share: float = 0.2  # of all steps, over which the learning rate rises to `lr`; it falls to 0 from there
    seed: int = 0
    device: str = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    channels_last: bool = True
    compile: bool = False
    snapshot_images: int = 2000
    checkpoint_seconds: float = 30.0


@dataclass(frozen=True)
class Config:
    """A whole run."""

    data: DataConfig
    backbone: BackboneConfig
    loss: LossConfig
    train: TrainConfig
    command: str = ""
    arcwise: str = __version__

    def __post_init__(self) -> None:
        _check(self)


_TABLES = ("margin", "terms")
SECTIONS: dict[str, type] = {"data": DataConfig, "backbone": BackboneConfig, "loss": LossConfig, "train": TrainConfig}

T = TypeVar("T")


def _check(config: Config) -> None:
    train = config.train
    for name, value, least in (
        ("train.epochs", train.epochs, 1),
        ("train.batch_size", train.batch_size, 2),
        ("backbone.dim", config.backbone.dim, 2),
        ("train.snapshot_images", train.snapshot_images, 0),
        ("train.checkpoint_seconds", train.checkpoint_seconds, 0),
        ("train.weight_decay", train.weight_decay, 0),
        ("train.clip_norm", train.clip_norm, 0),
        ("loss.warmup_epochs", config.loss.warmup_epochs, 0),
        ("loss.centers_per_class", config.loss.centers_per_class, 1),
        ("data.image_size", config.data.image_size, 0),
        ("data.doubtful_by", config.data.doubtful_by, 0),
    ):
        if not value >= least or value == math.inf:
            raise ConfigError(f"{name} must be at least {least}; got {value}.")
    if config.data.augment not in AUGMENTATIONS:
        raise ConfigError(
            f"there is no augmentation {config.data.augment!r}. {did_you_mean(config.data.augment, AUGMENTATIONS)}"
        )
    if not 0 < train.lr < math.inf:
        raise ConfigError(f"train.lr must be a positive number; got {train.lr}.")
    if not 0 <= train.momentum < 1:
        raise ConfigError(f"train.momentum must be in [0, 1); got {train.momentum}.")
    if not 0 <= train.warmup_share <= 1:
        raise ConfigError(f"train.warmup_share must be in [0, 1]; got {train.warmup_share}.")
    if not 0 <= config.data.label_noise < 1:
        raise ConfigError(
            f"data.label_noise must be in [0, 1), a share of the training labels; got {config.data.label_noise}."
            " 0.2 replaces a fifth of them."
        )
    if config.data.leave_out and config.data.relabel:
        raise ConfigError(
            f"doubtful samples are left out or labelled anew; got data.leave_out {config.data.leave_out} and data.relabel"
            f" {config.data.relabel}. Give one of them."
        )
    if not 0 < config.data.test_share < 1:
        raise ConfigError(f"data.test_share must be between 0 and 1; got {config.data.test_share}.")
    if not 0 <= train.seed < 2**31:
        raise ConfigError(f"train.seed must be in 0 … 2³¹ − 1; got {train.seed}.")
    if not (config.loss.name == "softmax" or 0 < config.loss.scale < math.inf):
        raise ConfigError(f"loss.scale must be a positive number; got {config.loss.scale}.")
    if not -1 < config.loss.filter_above <= 1:
        raise ConfigError(
            f"loss.filter_above must be a cosine in (−1, 1]; got {config.loss.filter_above}. 1 drops no negatives."
        )
    if config.loss.name == "softmax" and (config.loss.centers_per_class, config.loss.filter_above) != (1, 1.0):
        raise ConfigError(
            "softmax has one centre for each class and filters nothing; got"
            f" loss.centers_per_class {config.loss.centers_per_class} and loss.filter_above {config.loss.filter_above}."
            " Choose norm-softmax, or leave both at 1."
        )
    check_table(config.loss.terms)


def to_toml(config: Config) -> str:
    """The config as TOML, every key written out."""
    lines = [f"arcwise = {toml_value(config.arcwise)}", f"command = {toml_value(config.command)}"]
    for section in SECTIONS:
        values = asdict(getattr(config, section))
        margin, terms = values.pop("margin", {}), values.pop("terms", {})
        lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
        for name, table in {"margin": margin, **{f"terms.{name}": table for name, table in terms.items()}}.items():
            if table:
                lines += ["", f"[{section}.{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def from_toml(text: str, where: str = "the config") -> Config:
    """Read a config; an unknown key, a missing one or a value of the wrong kind is an error that names it."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.") from None
    return from_tree(tree, where)


def read_config(path: Path) -> Config:
    """Read a config file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file; a config is TOML in UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"the config {path} cannot be read: {error.strerror or error}.") from None
    return from_toml(text, str(path))


def from_tree(tree: Mapping[str, Any], where: str = "the config") -> Config:
    """Make a config from nested mappings."""
    known = [*SECTIONS, "command", "arcwise"]
    for key in tree:
        if key not in known:
            raise ConfigError(f"{where} has an unknown key {key!r}. {did_you_mean(key, known)}")
    sections: dict[str, Any] = {}
    for section, cls in SECTIONS.items():
        if not isinstance(tree.get(section), Mapping):
            raise ConfigError(f"{where} has no section [{section}].")
        sections[section] = _build(cls, tree[section], f"{where}: [{section}]")
    return Config(**sections, command=str(tree.get("command", "")), arcwise=str(tree.get("arcwise", __version__)))


def with_settings(config: Config, settings: Mapping[str, str]) -> Config:
    """Change single values by dotted keys, as `--set train.lr=0.05` gives them."""
    for dotted, text in settings.items():
        section, _, key = dotted.partition(".")
        known = [f"{name}.{f.name}" for name, cls in SECTIONS.items() for f in fields(cls) if f.name not in _TABLES]
        if dotted not in known:
            raise ConfigError(f"there is no setting {dotted!r}. {did_you_mean(dotted, known)}")
        part = getattr(config, section)
        hint = get_type_hints(type(part))[key]
        if dotted in ("data.leave_out", "data.relabel") and text:
            text = str(Path(text).expanduser().resolve())  # so that the config works from anywhere
        config = replace(config, **{section: replace(part, **{key: _parse(text, hint, dotted)})})
    return config


def _build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    hints = get_type_hints(cls)
    for key in values:
        if key not in hints:
            raise ConfigError(f"{where} has an unknown key {key!r}. {did_you_mean(key, hints)}")
    made: dict[str, Any] = {}
    for key, value in values.items():
        made[key] = _convert(value, hints[key], f"{where} {key}")
    assert is_dataclass(cls)
    missing = [f.name for f in fields(cls) if f.name not in made and not _has_default(f)]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)}.")
    return cls(**made)


def _has_default(f: Any) -> bool:
    from dataclasses import MISSING

    return f.default is not MISSING or f.default_factory is not MISSING


def _convert(value: Any, hint: Any, where: str) -> Any:
    """A TOML value as the field's type; whole numbers are welcome where a fraction may stand."""
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise ConfigError(
                f"{where} must be one of {', '.join(choices)}; got {value!r}. {did_you_mean(str(value), choices)}"
            )
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    if typing.get_origin(hint) is not None and isinstance(
        value, Mapping
    ):  # parameters, or a table of them for each term
        inner = typing.get_args(hint)[1]
        if typing.get_origin(inner) is Mapping:
            return {key: _convert(table, inner, f"{where}.{key}") for key, table in value.items()}
        return dict(value)
    raise ConfigError(f"{where} must be {_kind(hint)}; got {value!r}.")


def _parse(text: str, hint: Any, where: str) -> Any:
    if hint is str or typing.get_origin(hint) is Literal:
        return _convert(text, hint, where)
    try:
        if hint is bool:
            return {"true": True, "false": False}[text.lower()]
        return int(text) if hint is int else float(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{where} must be {_kind(hint)}; got {text!r}.") from None


def _kind(hint: Any) -> str:
    return {float: "a number", int: "a whole number", bool: "true or false", str: "text"}.get(hint, "a table")


def toml_value(value: Any) -> str:
    """A single value as TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)

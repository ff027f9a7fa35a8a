"""From what a user typed to a resolved config: a recipe per data set, and the scale that suits the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from arcwise import backbones, margins
from arcwise.data import Dataset, num_turned_classes, resized
from arcwise.errors import ConfigError
from arcwise.training.config import BackboneConfig, Config, DataConfig, LossConfig, TrainConfig, with_settings
from arcwise.training.device import choose_device, gains_from_bf16
from arcwise.training.loss_spec import LossSpec
from arcwise.training.term_table import table_of
from arcwise.training.tuned_choice import find_tuned
from arcwise.training.tuned_settings import TunedSettings

DIM = 128


@dataclass(frozen=True)
class Wishes:
    """What a user asked for; None leaves the choice to the recipe."""

    loss: LossSpec = field(default_factory=lambda: LossSpec("arcface"))
    dim: int | None = None
    backbone: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    warmup_epochs: float | None = None
    scale: float | None = None
    margin: float | None = None
    seed: int = 0
    device: str = "auto"
    settings: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    tuned: TunedSettings | None = None
    use_shipped: bool = True  # the package's own tuning, where there is one for the data set


@dataclass(frozen=True)
class Recipe:
    """What trains a data set well: found by measuring, see docs/results.md."""

    epochs: int
    batch_size: int
    lr: float
    augment: str
    warmup_epochs: float = 0.0  # of the margin
    weight_decay: float = 5e-4
    optimiser: str = "sgd"
    backbone: str = ""  # by the kind and size of the data
    image_size: int = 0  # as the data comes
    quarter_turns: bool = False


@dataclass(frozen=True)
class Resolved:
    """A config with nothing left to choose, and what the user should be told about the choices."""

    config: Config
    reasons: tuple[str, ...]


def recipe_for(data: Dataset, dim: int, device: torch.device) -> Recipe:
    """The recipe for a known data set, or one that follows from the data's kind and size."""
    gpu = device.type == "cuda"
    # Two and three dimensions are there to be looked at, and a few epochs show all there is.
    grey_epochs = 8 if dim <= 3 else 16
    known = {
        "digits": Recipe(epochs=30, batch_size=64, lr=0.1, augment="none"),
        "mnist": Recipe(epochs=grey_epochs, batch_size=256, lr=0.1, augment="affine"),
        "fashion-mnist": Recipe(epochs=grey_epochs, batch_size=256, lr=0.1, augment="crop-flip"),
        "cifar10": Recipe(epochs=64, batch_size=512, lr=0.4, augment="crop-flip-cutout", warmup_epochs=5)
        if gpu
        else Recipe(epochs=10, batch_size=256, lr=0.2, augment="crop-flip", warmup_epochs=1),
        "omniglot": replace(
            Recipe(epochs=12, batch_size=512, lr=0.4, augment="handwriting", warmup_epochs=1)
            if gpu
            else Recipe(epochs=4, batch_size=256, lr=0.2, augment="handwriting", warmup_epochs=0.5),
            backbone="conv4",
            image_size=28,
            quarter_turns=True,
        ),
    }
    if data.name in known:
        return known[data.name]
    rows = len(data.train.labels)
    batch_size = max(2, min(256, rows // 10))
    epochs = max(10, min(200, 600_000 // max(rows, 1)))
    if data.kind == "features":
        return Recipe(epochs=min(epochs, 40), batch_size=batch_size, lr=0.05, augment="none")
    return Recipe(epochs=min(epochs, 60), batch_size=min(batch_size, 64), lr=0.05, augment="crop-flip")


def sized(data: Dataset, device: torch.device) -> Dataset:
    """The data with pictures of the size that its recipe asks for, where it asks for one."""
    recipe = recipe_for(data, DIM, device)
    return resized(data, recipe.image_size) if recipe.image_size else data


def resolve(data: Dataset, wishes: Wishes, *, reference: str, custom_backbone: str | None = None) -> Resolved:
    """Choose everything that was left open.

    Args:
        data: the loaded data set.
        wishes: what the user asked for.
        reference: the name or path by which the data can be loaded again.
        custom_backbone: the name to record for a network that the user brought along.
    """
    device = choose_device(wishes.device)
    dim = wishes.dim if wishes.dim is not None else wishes.tuned.dim if wishes.tuned is not None else DIM
    recipe = recipe_for(data, dim, device)
    backbone = (
        custom_backbone
        or wishes.backbone
        or recipe.backbone
        or backbones.default_for(data.shape, len(data.train.labels), device.type)
    )
    settled = with_settings(
        Config(DataConfig(reference), BackboneConfig("", 2), LossConfig("softmax"), TrainConfig(1)), wishes.settings
    )
    turns = (
        settled.data.quarter_turns
        if "data.quarter_turns" in wishes.settings
        else recipe.quarter_turns and data.disjoint
    )
    loss, reasons = choose_loss(wishes, num_turned_classes(data) if turns else data.num_classes, dim)
    tuned = find_tuned(
        wishes.loss,
        {"--scale": wishes.scale, "--margin": wishes.margin},
        wishes.tuned,
        wishes.use_shipped,
        data.name,
        dim,
    )
    if tuned is not None:
        loss, reasons = tuned.applied_to(loss), (tuned.reason,)
    if loss.name != "softmax":
        # A run much shorter than the recipe's still has to see the full margin for most of its time.
        warmup = min(recipe.warmup_epochs, round((wishes.epochs or recipe.epochs) / 6, 2))
        warmup = wishes.warmup_epochs if wishes.warmup_epochs is not None else warmup
        loss = replace(loss, warmup_epochs=warmup)
    config = Config(
        data=DataConfig(
            name=reference,
            image_size=data.shape[-1] if data.kind == "image" else 0,
            augment=recipe.augment,
            quarter_turns=turns,
        ),
        backbone=BackboneConfig(backbone, dim),
        loss=loss,
        train=TrainConfig(
            epochs=wishes.epochs if wishes.epochs is not None else recipe.epochs,
            batch_size=wishes.batch_size if wishes.batch_size is not None else recipe.batch_size,
            optimiser=recipe.optimiser,  # type: ignore[arg-type]
            lr=wishes.lr if wishes.lr is not None else recipe.lr * (tuned.lr_factor if tuned is not None else 1),
            weight_decay=recipe.weight_decay,
            seed=wishes.seed,
            device=str(device),
            precision="bf16" if gains_from_bf16(device) else "fp32",
            channels_last=data.kind == "image",
        ),
        command=wishes.command,
    )
    config = with_settings(config, wishes.settings)
    if config.train.batch_size > len(data.train.labels):
        config = replace(config, train=replace(config.train, batch_size=max(2, len(data.train.labels))))
    return Resolved(config, reasons)


def choose_loss(wishes: Wishes, num_classes: int, dim: int) -> tuple[LossConfig, tuple[str, ...]]:
    """The loss with its scale and margin as numbers, and the reasoning."""
    spec = wishes.loss
    if spec.name == "softmax":
        if wishes.margin is not None or wishes.scale is not None:
            given = "--margin" if wishes.margin is not None else "--scale"
            raise ConfigError(
                f"softmax has neither a margin nor a scale; leave {given} out, or choose --loss norm-softmax."
            )
        return LossConfig("softmax", terms=table_of(spec.terms)), ()
    parameters: dict[str, Any] = dict(spec.margin)
    if wishes.margin is not None:
        if "m" not in margins.margin_class(spec.name).__dataclass_fields__:  # type: ignore[attr-defined]
            raise ConfigError(f"{spec.name} has no single margin m; write its parameters: {spec.name}(name=value).")
        if "m" in parameters:
            raise ConfigError(
                f"the margin is given twice: {spec.label} and --margin {wishes.margin:g}. Leave one of them out."
            )
        parameters["m"] = wishes.margin
    margin = margins.build(spec.name, **parameters)
    if margin.owns_scale and wishes.scale is not None:
        raise ConfigError(f"{spec.name} chooses the scale itself; got --scale {wishes.scale:g}. Leave it out.")
    loss = LossConfig(
        spec.name,
        margin=margin.parameters(),
        centers_per_class=spec.centers_per_class,
        filter_above=spec.filter_above,
        terms=table_of(spec.terms),
    )
    if wishes.scale is not None:
        return replace(loss, scale=wishes.scale), ()
    choice = margins.choose_scale(num_classes, dim, margin)
    loss = replace(loss, scale=round(choice.scale, 4), margin=choice.margin.parameters())
    return loss, (f"{spec.name}: {choice.reasoning}",)

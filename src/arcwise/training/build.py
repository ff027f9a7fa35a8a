"""From a config to modules, a run's model, and what turns pictures into embeddings with it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from arcwise import backbones, margins
from arcwise.data import Dataset, prepare
from arcwise.errors import ConfigError
from arcwise.heads import Head, MarginHead, SoftmaxHead
from arcwise.training.config import Config
from arcwise.training.objective import Objective
from arcwise.training.term_table import build_terms


@dataclass
class Model:
    """A backbone, what it was trained under, and how its input is prepared.

    Attributes:
        backbone: pictures (B, C, H, W), or features (B, F), prepared -> embeddings (B, D).
        objective: the head and the terms beside it.
        mean: per channel (or column) of the training data.
        std: beside `mean`.
    """

    backbone: nn.Module
    objective: Objective
    mean: Tensor
    std: Tensor
    device: torch.device
    precision: str
    channels_last: bool

    @property
    def head(self) -> Head:
        """The class centres."""
        return self.objective.head

    def prepared(self, images: Tensor) -> Tensor:
        """Raw pictures or features as the backbone wants them."""
        batch = prepare(images, self.mean, self.std)
        return batch.contiguous(memory_format=torch.channels_last) if self.channels_last else batch

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Mixed precision where the config asks for it."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    @torch.no_grad()
    def embed(self, images: Tensor, batch_size: int = 500) -> Tensor:
        """Embeddings of raw pictures (uint8) or features, in evaluation mode: (M, D) float32 on the CPU."""
        was_training = self.backbone.training
        self.backbone.eval()
        try:
            with self.autocast():
                parts = [
                    self.backbone(self.prepared(part.to(self.device))).float().cpu()
                    for part in images.split(batch_size)
                ]
        finally:
            self.backbone.train(was_training)
        return torch.cat(parts) if parts else torch.empty(0, self.head.dim)


def build_head(config: Config, num_classes: int, steps_per_epoch: int, class_counts: Tensor | None = None) -> Head:
    """The head that the config describes."""
    loss = config.loss
    if loss.name == "softmax":
        return SoftmaxHead(config.backbone.dim, num_classes)
    margin = margins.build(loss.name, **loss.margin)
    return MarginHead(
        config.backbone.dim,
        num_classes,
        margin,
        scale="auto" if margin.owns_scale else loss.scale,
        centers_per_class=loss.centers_per_class,
        filter_above=loss.filter_above,
        class_counts=class_counts,
        warmup_steps=round(loss.warmup_epochs * steps_per_epoch),
    )


def build_model(config: Config, data: Dataset, backbone: nn.Module | None = None) -> Model:
    """The model that the config describes, with weights drawn from the config's seed.

    The backbone is drawn first, then the head, and the terms leave the random numbers as they were: the same seed gives the same backbone
    under every loss, and the same head and dropout whatever stands beside it.
    """
    if data.kind == "features" and config.data.augment != "none":
        raise ConfigError(f"features cannot be augmented; got data.augment={config.data.augment!r}. Use none.")
    torch.manual_seed(config.train.seed)
    device = torch.device(config.train.device)
    network = (
        backbone
        if backbone is not None
        else backbones.build(config.backbone.name, shape=data.shape, dim=config.backbone.dim)
    )
    labels = data.train.labels
    counts = torch.bincount(labels[labels >= 0], minlength=data.num_classes)
    head = build_head(config, data.num_classes, steps_per_epoch(config, data), counts)
    with torch.random.fork_rng(devices=[]):
        terms = build_terms(config.loss.terms, config.backbone.dim, data.num_classes)
    channels_last = config.train.channels_last and data.kind == "image"
    network.to(device)
    if channels_last:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model = Model(
        backbone=network,
        objective=Objective(head, terms).to(device),
        mean=data.mean.to(device),
        std=data.std.to(device),
        device=device,
        precision=config.train.precision,
        channels_last=channels_last,
    )
    if backbone is not None:
        _check_backbone(model, data)
    return model


def steps_per_epoch(config: Config, data: Dataset) -> int:
    """Whole batches in an epoch; the images left over come up in other epochs, since each has an order of its own."""
    return max(1, len(data.train.labels) // config.train.batch_size)


def _check_backbone(model: Model, data: Dataset) -> None:
    """A user's own network has to map the data to embeddings of the right width."""
    try:
        shape = tuple(model.embed(data.train.images[:2]).shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"the backbone does not accept input of the shape (2, {', '.join(map(str, data.shape))}): {error}"
        ) from error
    if shape != (2, model.head.dim):
        raise ConfigError(
            f"the backbone must return embeddings of the shape (batch, {model.head.dim}); it returned {shape}. Pass dim=."
        )

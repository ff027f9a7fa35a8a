"""The margin head: class centres on a sphere, and a loss that asks for a gap in angle."""

from __future__ import annotations

import sys
from typing import Literal

import torch
from torch import Tensor

from arcwise.engines import reference
from arcwise.engines.stats import Stats
from arcwise.errors import ConfigError, did_you_mean
from arcwise.heads.head import Head
from arcwise.heads.inputs import check_embeddings, check_labels
from arcwise.margins import ArcFace, Margin, choose_scale

ENGINES = ("auto", "reference")


class MarginHead(Head):
    """Normalise embeddings and centres, lower the own class's cosine by a margin, scale, cross-entropy.

    Swap it for the last layer of a classifier and hand it the labels:

        head = arcwise.MarginHead(dim=512, num_classes=93_431, margin=arcwise.ArcFace(0.5), scale=64.0)
        loss = head(embeddings, labels)

    Args:
        dim: the width D of the embeddings.
        num_classes: the number of classes N.
        margin: what to ask of the own class; angles in radians.
        scale: s, by which cosines become logits. "auto" chooses it from N, D and the margin, and prints why.
        warmup_steps: over so many training steps the margin grows from 0 to its full strength.
        engine: how the loss is computed; "auto" picks.

    Attributes:
        scale: s as a number.
        margin: the full margin ("auto" may have reduced it where N centres in D dimensions leave no room for it).
        margin_fraction: the share of the margin that is in force now, 1 unless it is warming up.
        engine: the engine in use.
    """

    def __init__(
        self,
        dim: int,
        num_classes: int,
        margin: Margin | None = None,
        scale: float | Literal["auto"] = "auto",
        *,
        warmup_steps: int = 0,
        engine: str = "auto",
    ) -> None:
        super().__init__(dim, num_classes)
        self.margin: Margin = margin if margin is not None else ArcFace()
        if not isinstance(self.margin, Margin):
            raise ConfigError(f"margin must be an arcwise margin such as ArcFace(0.5); got {margin!r}.")
        if scale == "auto":
            choice = choose_scale(num_classes, dim, self.margin)
            self.scale, self.margin = choice.scale, choice.margin
            print(f"arcwise: {choice.reasoning}", file=sys.stderr)
        elif not isinstance(scale, int | float) or not 0 < scale < float("inf"):
            raise ConfigError(f'scale must be a positive number or "auto"; got {scale!r}.')
        else:
            self.scale = float(scale)
        if warmup_steps < 0:
            raise ConfigError(f"warmup_steps must be 0 or more; got {warmup_steps}.")
        if engine not in ENGINES:
            raise ConfigError(f"there is no engine {engine!r}. {did_you_mean(engine, ENGINES)}")
        self.reset_parameters()
        self.engine = "reference"
        self.warmup_steps = warmup_steps
        self._steps = 0
        self._warming = warmup_steps > 0

    @property
    def margin_fraction(self) -> float:
        """The share of the margin that is in force at the next training step."""
        return min(1.0, self._steps / self.warmup_steps) if self.warmup_steps else 1.0

    def reset_parameters(self) -> None:
        """Draw the centres anew, in all directions, with a norm around 2√s.

        A step turns a centre by an angle in proportion to s/‖w‖². With short centres the first steps fling them about, classes land on
        the same spot and never part again; this norm makes the turn the same for every s, and small.
        """
        norm = 2 * getattr(self, "scale", 1.0) ** 0.5
        torch.nn.init.normal_(self.weight, std=norm * self.dim**-0.5)

    def loss(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
        if self._warming:
            # Imported here because torch.compiler takes a second to load, which a head without warm-up need not pay for.
            from arcwise.heads.warming import warming_loss

            return warming_loss(self, embeddings, labels)  # type: ignore[no-any-return]
        return reference.margin_softmax(embeddings, self.weight, labels, self.margin, self.scale)

    def warm_up(self) -> None:
        """Count one step of the warm-up; the loss does it for every training forward with gradients."""
        self._steps = min(self._steps + 1, self.warmup_steps)
        self._warming = self._steps < self.warmup_steps

    def logits(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """(B, N) class-wise affinity scores s·cos θ, with the margin on each sample's own class where labels are given."""
        check_embeddings(embeddings, self.dim)
        cos_BN = reference.cosines(embeddings, self.weight)
        if labels is None:
            return self.scale * cos_BN
        labels = check_labels(labels, embeddings, self.num_classes)
        return reference.margin_logits(cos_BN, labels, self._margin_now(), self.scale)

    def _margin_now(self) -> Margin:
        fraction = self.margin_fraction
        return self.margin if fraction == 1.0 else self.margin.at(fraction)

    def get_extra_state(self) -> Tensor:
        """How far the margin has warmed up, kept with the weights."""
        return torch.tensor(self._steps)

    def set_extra_state(self, state: Tensor) -> None:
        self._steps = int(state)
        self._warming = self._steps < self.warmup_steps

    def extra_repr(self) -> str:
        warmup = f", warmup_steps={self.warmup_steps}" if self.warmup_steps else ""
        return (
            f"dim={self.dim}, num_classes={self.num_classes}, margin={self.margin}, scale={self.scale:.4g}{warmup},"
            f" engine={self.engine}"
        )

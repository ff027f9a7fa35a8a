"""The margin head: class centres on a sphere, and a loss that asks for a gap in angle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Literal, Self

import torch
from torch import Tensor, nn

from arcwise.engines import reference
from arcwise.engines.stats import Stats
from arcwise.engines.task import NO_FILTER, Outcome, Task
from arcwise.errors import ConfigError, did_you_mean
from arcwise.heads.head import Head
from arcwise.heads.inputs import check_counts, check_embeddings, check_labels, check_whole
from arcwise.heads.sub_centers import SubCenterCounts
from arcwise.margins import ArcFace, Facts, Margin, choose_scale
from arcwise.margins.base import check_parameters

ENGINES = ("auto", "reference")
# Logits beyond it are too coarse in float32 to say which class is ahead.
LARGEST_SCALE = 1e6


class MarginHead(Head):
    """Normalise embeddings and centres, lower the own class's cosine by a margin, scale, cross-entropy.

    Swap it for the last layer of a classifier and hand it the labels:

        head = arcwise.MarginHead(dim=512, num_classes=93_431, margin=arcwise.ArcFace(0.5), scale=64.0)
        loss = head(embeddings, labels)

    What a margin keeps from batch to batch is a buffer of the head, what it learns a parameter: both are part of `state_dict`.

    Args:
        dim: the width D of the embeddings.
        num_classes: the number of classes N.
        margin: what to ask of the own class; angles in radians.
        scale: s, by which cosines become logits. "auto" chooses it from N, D and the margin, and prints why.
        centers_per_class: K. With several centres a class may fall into groups, and outliers and wrong labels gather at centres of
            their own instead of pulling at the main one (Deng et al. 2020).
        filter_above: other classes nearer than this cosine are left out of the loss: on noisy labels they are often the truth.
            1 leaves out none; sensible values are 0.3 to 0.7.
        class_counts: (N,) how many samples each class has, for margins that ask.
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
        centers_per_class: int = 1,
        filter_above: float = NO_FILTER,
        class_counts: Tensor | None = None,
        warmup_steps: int = 0,
        engine: str = "auto",
    ) -> None:
        check_whole("centers_per_class", centers_per_class)
        if not 1 <= centers_per_class <= 100:
            raise ConfigError(f"centers_per_class must be a whole number from 1 to 100; got {centers_per_class!r}.")
        super().__init__(dim, num_classes, centers_per_class)
        self.margin: Margin = margin if margin is not None else ArcFace()
        if not isinstance(self.margin, Margin):
            raise ConfigError(f"margin must be an arcwise margin such as ArcFace(0.5); got {margin!r}.")
        check_parameters(self.margin)
        self._scale = self._chosen_scale(scale)
        if (
            not isinstance(filter_above, int | float)
            or isinstance(filter_above, bool)
            or not -1 < filter_above <= NO_FILTER
        ):
            raise ConfigError(f"filter_above must be a cosine in (−1, 1], where 1 filters nothing; got {filter_above}.")
        check_whole("warmup_steps", warmup_steps)
        if warmup_steps < 0:
            raise ConfigError(f"warmup_steps must be 0 or more; got {warmup_steps}.")
        if engine not in ENGINES:
            raise ConfigError(f"there is no engine {engine!r}. {did_you_mean(str(engine), ENGINES)}")
        self.filter_above = float(filter_above)
        self.engine = "reference"
        self.warmup_steps = warmup_steps
        self._steps = 0
        self._warming = warmup_steps > 0
        if class_counts is not None:
            check_counts(class_counts, num_classes)
        self._facts = Facts(num_classes, dim, self._scale, class_counts)
        kept, learnt = self.margin.initial_state(self._facts), self.margin.initial_parameters(self._facts)
        self._state_names = (*kept, *learnt)
        for name, value in kept.items():
            self.register_buffer(f"margin_{name}", value)
        for name, value in learnt.items():
            self.register_parameter(f"margin_{name}", nn.Parameter(value))
        self.sub_centers = SubCenterCounts(num_classes, centers_per_class) if centers_per_class > 1 else None
        self.reset_parameters()

    @property
    def scale(self) -> float:
        """s as a number. Waits for the device where the margin chooses it."""
        return float(self.margin_state["scale"]) if self.margin.owns_scale else self._scale

    @property
    def margin_state(self) -> Mapping[str, Tensor]:
        """What the margin keeps and has learnt, by name."""
        return {name: getattr(self, f"margin_{name}") for name in self._state_names}

    @property
    def margin_fraction(self) -> float:
        """The share of the margin that is in force at the next training step."""
        return min(1.0, self._steps / self.warmup_steps) if self.warmup_steps else 1.0

    def reset_parameters(self) -> None:
        """Draw the centres anew, in all directions, with a norm that makes them turn at the right speed; forget what the margin kept.

        A step turns a centre by an angle in proportion to s/‖w‖² and to its class's share of the batch, 1/N. With short centres the
        first steps fling them about, classes land on the same spot and never part again; with long ones the centres of many classes
        hardly leave the place where they were drawn. A norm of 2√(10·s/N) makes the turn the same for every s and N. For ten classes
        and fewer it is 2√s; and from 10,000 on it stays where it is, for then a class comes up so rarely that it would turn too far
        when it does.
        """
        share = min(1.0, max(10 / self.num_classes, 1e-3))
        norm = 2 * (share * self._scale) ** 0.5 if hasattr(self, "_scale") else 1.0
        nn.init.normal_(self.weight, std=norm * self.dim**-0.5)
        if not hasattr(self, "_facts"):  # called by the base class's constructor
            return
        fresh = {**self.margin.initial_state(self._facts), **self.margin.initial_parameters(self._facts)}
        with torch.no_grad():
            for name, value in self.margin_state.items():
                value.copy_(fresh[name])
            if self.sub_centers is not None:
                self.sub_centers.counts.zero_()

    def loss(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
        if self._warming:
            # Imported here because torch.compiler takes a second to load, which a head without warm-up need not pay for.
            from arcwise.heads.warming import warming_loss

            return warming_loss(self, embeddings, labels)  # type: ignore[no-any-return]
        return self.loss_under(self.margin, embeddings, labels)

    def loss_under(self, margin: Margin, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
        """The loss and the statistics of a batch under a margin of the head's own kind; keeps what a training batch tells."""
        training = self.training and torch.is_grad_enabled()
        outcome = reference.margin_loss(embeddings, self.weight, labels, self._task(margin, training))
        if training:
            self._keep(outcome, labels)
        return outcome.loss, outcome.stats

    def warm_up(self) -> None:
        """Count one step of the warm-up; the loss does it for every training forward with gradients."""
        self._steps = min(self._steps + 1, self.warmup_steps)
        self._warming = self._steps < self.warmup_steps

    def logits(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """(B, N) class-wise affinity scores s·cos θ; where labels are given, the logits that training works on, margin and all."""
        check_embeddings(embeddings, self.dim)
        if labels is None:
            return self.scale * self.cosines(embeddings)
        labels = check_labels(labels, embeddings, self.num_classes)
        fraction = self.margin_fraction
        task = self._task(self.margin if fraction == 1.0 else self.margin.at(fraction), training=False)
        cos_BN, _ = reference.class_cosines(embeddings, self.weight, labels, self.centers_per_class)
        samples = reference.look_at(embeddings, cos_BN, labels, task)
        return reference.margin_logits(cos_BN, task.margin.psi(samples), labels, task)

    def dominant_centers(self) -> Tensor:
        """(N, D) the centre of each class, with gradients; of several, the one that most samples lay nearest to in recent training."""
        if self.sub_centers is None:
            return self.weight
        classes = torch.arange(self.num_classes, device=self.weight.device)
        return self.weight[classes * self.centers_per_class + self.sub_centers.dominant()]

    def _task(self, margin: Margin, training: bool) -> Task:
        state = self.margin_state
        scale = state["scale"] if margin.owns_scale else self._scale
        return Task(margin, scale, state, training, self.centers_per_class, self.filter_above)

    @torch.no_grad()
    def _keep(self, outcome: Outcome, labels: Tensor) -> None:
        """What the margin keeps from this batch; a batch with NaN in it leaves everything as it was."""
        sound = outcome.loss.isfinite()
        for value in outcome.state.values():
            sound = sound & value.isfinite().all()
        for name, value in outcome.state.items():
            kept = getattr(self, f"margin_{name}")
            kept.copy_(torch.where(sound, value, kept))
        if self.sub_centers is not None:
            self.sub_centers.add(labels.masked_fill(~sound, -1), outcome.own_center)

    def _chosen_scale(self, scale: float | Literal["auto"]) -> float:
        if scale == "auto":
            choice = choose_scale(self.num_classes, self.dim, self.margin)
            self.margin = choice.margin
            if not self.margin.owns_scale:
                print(f"arcwise: {choice.reasoning}", file=sys.stderr)
            return choice.scale
        if self.margin.owns_scale:
            raise ConfigError(f"{self.margin.name} chooses the scale itself; got scale={scale!r}. Leave it out.")
        if not isinstance(scale, int | float) or isinstance(scale, bool) or not 0 < scale < LARGEST_SCALE:
            raise ConfigError(f'scale must be a positive number or "auto"; got {scale!r}.')
        return float(scale)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Leave running values in float32 where the weights become narrower: they move by less than bfloat16 can tell."""
        before = dict(self.named_buffers())
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, moved in list(self.named_buffers()):
            if moved.is_floating_point() and moved.dtype.itemsize < before[name].dtype.itemsize <= 4:
                owner, _, key = name.rpartition(".")
                self.get_submodule(owner).register_buffer(key, before[name].to(moved.device))
        return self

    def get_extra_state(self) -> Tensor:
        """How far the margin has warmed up, kept with the weights."""
        return torch.tensor(self._steps)

    def set_extra_state(self, state: Tensor) -> None:
        self._steps = int(state)
        self._warming = self._steps < self.warmup_steps

    def extra_repr(self) -> str:
        options = {
            "centers_per_class": (self.centers_per_class, 1),
            "filter_above": (self.filter_above, NO_FILTER),
            "warmup_steps": (self.warmup_steps, 0),
        }
        given = "".join(f", {name}={value}" for name, (value, usual) in options.items() if value != usual)
        return (
            f"dim={self.dim}, num_classes={self.num_classes}, margin={self.margin}, scale={self.scale:.4g}{given},"
            f" engine={self.engine}"
        )

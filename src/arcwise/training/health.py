"""Names trouble in plain words as it happens: what was seen, the likely cause, and what to change.

    monitor = HealthMonitor(num_classes=10, dim=3, scale=16.0, margin=0.5, steps_per_epoch=469)
    for trouble in monitor.before():
        reporter.warn(trouble.message)
    ...
    for trouble in monitor.observe(step, loss=..., accuracy=..., embeddings=..., labels=...):   # before optimizer.step()
        ...

The troubles, by name:

    margin-too-large     before: the margin is wider than the room between N centres in D dimensions
    scale-too-small      before, or when it holds the loss up: a perfect embedding would get less than half the probability
    scale-too-large      before, or when it holds the loss up: the softmax is so peaked that few samples teach anything
    non-finite           fatal: the loss, the embeddings or the gradients are NaN or infinite
    diverged             the loss or the embeddings' length has risen far above where it began (fatal when it ended in NaN)
    zero-embeddings      embeddings without a length, and so without a direction
    collapsed            embeddings of different classes all point the same way
    centres-collapsed    the class centres all point the same way
    never-right          not one right answer, where guessing would have had some
    stuck                the loss no longer falls while the accuracy is that of guessing
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from arcwise.training.attainable import loss_without_knowledge, troubles_of_settings
from arcwise.training.batch_geometry import Geometry, geometry_of
from arcwise.training.learning_curve import LearningCurve
from arcwise.training.non_finite import first_non_finite
from arcwise.training.trouble import Trouble

__all__ = ["HealthMonitor", "Trouble", "first_non_finite"]

SAME_DIRECTION = 0.99
# Fresh networks without normalisation layers can start out pointing one way; collapse is what stays for so many steps.
PATIENCE_STEPS = 50
# A trouble has gone away once so many looks in a row, over a whole window, did not find it.
LOOKS_UNTIL_GONE = 8
# Losses on angles are bounded, so there a too high learning rate shows in lengths: healthy ones grow a hundredfold at most.
LENGTH_BLOWN_UP = 1e3  # with an accuracy of guessing, or collapse, or NaN
LENGTH_LOST = 1e6  # whatever else is seen
LEAST_LENGTH = 0.01  # what a network may be initialised to below it says nothing


# Where the embeddings have collapsed the centres follow, and the other way round; a run that diverged may end in either.
_SAME_THING = {
    "collapsed": {"collapsed", "centres-collapsed", "diverged"},
    "centres-collapsed": {"collapsed", "centres-collapsed", "diverged"},
    "zero-embeddings": {"zero-embeddings", "diverged"},
}


class HealthMonitor:
    """Watches the numbers of a training run; each kind of trouble is said once, and again only after it went away and came back.

    Args:
        num_classes: N.
        dim: the embeddings' width D.
        scale: s, or None for a plain softmax.
        margin: in radians, 0 for none. For margins that are not angles, acos ψ(0): how far they lower a perfect embedding.
        steps_per_epoch: how many steps are observed in an epoch.
        learning_rate: where known, advice on it names a number.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        dim: int,
        scale: float | None,
        margin: float,
        steps_per_epoch: int,
        learning_rate: float | None = None,
    ) -> None:
        self._num_classes = num_classes
        self._margin = margin
        self._learning_rate = learning_rate
        self._window = min(max(steps_per_epoch, 100), 2000)
        self._curve = LearningCurve(self._window)
        self._expected_start = loss_without_knowledge(num_classes, scale, margin)
        self._of_settings = troubles_of_settings(num_classes, dim, scale, margin)
        self._active: dict[
            str, list[int]
        ] = {}  # name of what was said -> [step of last finding, looks without it since]
        self._same_direction_since: dict[str, list[float]] = {}  # name -> [step, 1 − cosine] where the streak began
        self._gradients_norm: float | None = None
        self._target_angle: float | None = None
        self._first_length: float | None = None
        self._length: float | None = None

    def before(self) -> list[Trouble]:
        """What can be said from the settings alone."""
        for trouble in self._of_settings:
            self._active[trouble.name] = [0, 0]
        return list(self._of_settings)

    @torch.no_grad()
    def observe(
        self,
        step: int,
        *,
        loss: float,
        accuracy: float,
        embeddings: Tensor | None = None,
        labels: Tensor | None = None,
        target_cosine: Tensor | None = None,
        centres: Tensor | None = None,
        gradients_norm: float | None = None,
        margin_fraction: float = 1.0,
        find_origin: Callable[[], str] | None = None,
    ) -> list[Trouble]:
        """Take note of a step, after its backward pass and before the optimiser's step.

        Args:
            step: the step's number.
            loss: the mean loss of the batch.
            accuracy: 0 … 1, measured without the margin; NaN where the batch has no labelled sample.
            embeddings: (B, D), as the backbone gave them. With `labels`, collapse is measured between different classes.
            labels: (B,), −1 for ignored.
            target_cosine: (B,) cosines to the own centres, NaN where ignored.
            centres: (N, D) class centres; give them now and then where N is large.
            gradients_norm: the norm of all gradients together.
            margin_fraction: how much of the margin is in force; while it warms up the loss may rise and nothing is made of it.
            find_origin: asked where non-finite values began, when there are some: a call of `first_non_finite`.

        Returns:
            What is new.
        """
        geometry = geometry_of(embeddings, labels) if embeddings is not None and embeddings.numel() else None
        not_finite = _what_is_not_finite(loss, gradients_norm, geometry)
        if not_finite:
            return self._news(step, [self._not_finite(step, not_finite, find_origin)], looked_for=())
        if math.isnan(accuracy):
            return []
        if target_cosine is not None:
            cosine = float(target_cosine.float().clamp(-1, 1).nanmean())
            self._target_angle = None if math.isnan(cosine) else math.degrees(math.acos(cosine))
        self._gradients_norm = gradients_norm if gradients_norm is not None else self._gradients_norm
        batch = len(embeddings) if embeddings is not None else len(target_cosine) if target_cosine is not None else 1
        window_moved = self._curve.add(loss, accuracy, batch, settled=margin_fraction >= 1)

        found: list[Trouble] = []
        looked_for: set[str] = set() if self._has_grown() else {"diverged"}
        if geometry is not None:
            self._first_length = geometry.length if self._first_length is None else self._first_length
            self._length = geometry.length
        if self._curve.exploded(self._start()) or self._length_grown() > LENGTH_LOST:
            found.append(self._diverged(step))
        if geometry is not None:
            looked_for |= {"zero-embeddings", "collapsed"}
            found += self._of_embeddings(step, geometry)
        if centres is not None and self._num_classes > 1:
            looked_for.add("centres-collapsed")
            found += self._of_centres(step, centres)
        if window_moved:
            looked_for |= {"stuck", "never-right"}
            if not found and not self._explained():
                found += self._of_window(step)
        return self._news(step, found, looked_for)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs in order to say the same; JSON values."""
        return {
            "curve": self._curve.state_dict(),
            "active": {name: list(seen) for name, seen in self._active.items()},
            "same_direction_since": {name: list(start) for name, start in self._same_direction_since.items()},
            "gradients_norm": self._gradients_norm,
            "target_angle": self._target_angle,
            "lengths": [self._first_length, self._length],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._curve.load_state_dict(state["curve"])
        self._active = {name: list(seen) for name, seen in state["active"].items()}
        self._same_direction_since = {name: list(start) for name, start in state["same_direction_since"].items()}
        self._gradients_norm = state["gradients_norm"]
        self._target_angle = state["target_angle"]
        self._first_length, self._length = state["lengths"]

    def _news(self, step: int, found: list[Trouble], looked_for: Iterable[str]) -> list[Trouble]:
        """Those that have not been said yet. A fatal one is always said."""
        present: set[str] = set()
        news = []
        for trouble in found:
            if trouble.fatal or not self._said(trouble.name):
                news.append(trouble)
            present |= _SAME_THING.get(trouble.name, {trouble.name})
            self._active.setdefault(trouble.name, [step, 0])
        for name in list(self._active):
            if name in present:
                self._active[name] = [step, 0]
            elif name in looked_for:
                self._active[name][1] += 1
                last_step, looks = self._active[name]
                if looks >= LOOKS_UNTIL_GONE and step - last_step >= self._window:
                    del self._active[name]
        return news

    def _said(self, name: str) -> bool:
        return not self._active.keys().isdisjoint(_SAME_THING.get(name, {name}))

    def _explained(self) -> bool:
        """Whether something already said accounts for a curve that does not move."""
        return not self._active.keys().isdisjoint({"collapsed", "centres-collapsed", "zero-embeddings", "diverged"})

    def _start(self) -> float:
        first = self._curve.first_loss
        return self._expected_start if first is None else max(self._expected_start, first)

    # ---- from the embeddings and centres

    def _of_embeddings(self, step: int, geometry: Geometry) -> list[Trouble]:
        if geometry.num_zero:
            share = "all" if geometry.num_zero == geometry.num else f"{geometry.num_zero} of {geometry.num}"
            return [
                Trouble(
                    "zero-embeddings",
                    f"{share} embeddings of step {step} have length 0, so they point nowhere and have no angle to any centre. "
                    "Either the inputs are blank, or the last activations have died. Look at the inputs; if they are fine, "
                    f"start again with a smaller learning rate{self._smaller_rate()}, and end the network in a linear layer, "
                    "not in a ReLU.",
                )
            ]
        if not self._same_direction("collapsed", step, geometry.cosine):
            return []
        if self._has_grown():
            return [self._diverged(step)]
        return [
            Trouble(
                "collapsed",
                f"the embeddings have collapsed to one point: at step {step} the mean cosine between samples of different classes "
                f"is {geometry.cosine:.4f}, so the network gives nearly the same answer to every input. {self._against_collapse()}",
            )
        ]

    def _of_centres(self, step: int, centres: Tensor) -> list[Trouble]:
        cosine = geometry_of(centres, None).cosine
        if not self._same_direction("centres-collapsed", step, cosine):
            return []
        return [
            Trouble(
                "centres-collapsed",
                f"the class centres have collapsed to one point: at step {step} the mean cosine between them is {cosine:.4f}, so no "
                f"angle can tell the classes apart. {self._against_collapse()}",
            )
        ]

    def _against_collapse(self) -> str:
        if self._margin > 0:
            return (
                "A margin that is there from the first step, or too high a learning rate, can do this. Start again with a margin "
                f"that grows from 0 (--warmup-epochs 1) or a smaller learning rate{self._smaller_rate()}."
            )
        return (
            f"Start again with a smaller learning rate{self._smaller_rate()}; if it happens again, look for a layer whose output "
            "is constant, and at whether the inputs differ at all."
        )

    def _same_direction(self, name: str, step: int, cosine: float) -> bool:
        """Whether everything has pointed one way for a while and is not moving apart."""
        spread = 1 - cosine
        if math.isnan(cosine) or cosine <= SAME_DIRECTION:
            self._same_direction_since.pop(name, None)
            return False
        start, first_spread = self._same_direction_since.setdefault(name, [step, spread])
        return step - start >= PATIENCE_STEPS and spread <= 1.5 * first_spread + 1e-6

    # ---- from the curve

    def _of_window(self, step: int) -> list[Trouble]:
        window = self._curve.summary()
        if window is None or self._num_classes < 2:
            return []
        chance = 1 / self._num_classes
        if window.num_right == 0 and window.num_samples * chance >= 20:
            return [
                Trouble(
                    "never-right",
                    f"not one of the last {window.num_samples} answers was right up to step {step}, where guessing would have "
                    f"had about {window.num_samples * chance:.0f}: the labels do not mean what the network is shown. Check that "
                    "the labels' numbers and the classes are in the same order.",
                )
            ]
        if window.accuracy > max(1.5 * chance, chance + 0.005) or window.is_falling:
            return []
        if self._has_grown():
            return [self._diverged(step)]
        return [self._stuck(step, window.length, window.loss, window.accuracy)]

    def _stuck(self, step: int, length: int, loss: float, accuracy: float) -> Trouble:
        angle = (
            f" and a mean angle of {self._target_angle:.0f}° to the own centre"
            if self._target_angle is not None
            else ""
        )
        seen = (
            f"the loss is stuck: it has stayed at {loss:.3f} over the last {length} steps, up to step {step}, with an accuracy of "
            f"{100 * accuracy:.2g} % (guessing: {100 / self._num_classes:.2g} %){angle}"
        )
        for cause in self._of_settings:
            return Trouble(cause.name, f"{seen}. The likely cause: {cause.message}")
        if self._gradients_norm is not None and self._gradients_norm < 1e-6:
            return Trouble(
                "stuck",
                f"{seen}. Almost no gradient arrives (its norm is {self._gradients_norm:.1g}): a layer is dead, frozen or "
                f"saturated. Start again with a smaller learning rate{self._smaller_rate()} and check that the backbone's "
                "parameters require gradients.",
            )
        if self._learning_rate is not None and self._learning_rate < 1e-5:
            return Trouble(
                "stuck",
                f"{seen}. The learning rate of {self._learning_rate:g} is very small. Use --lr 0.01.",
            )
        return Trouble(
            "stuck",
            f"{seen}. Check first that each label belongs to its sample; if so, try another learning rate"
            f"{self._smaller_rate()} and a smaller margin (--margin 0.2).",
        )

    def _has_grown(self) -> bool:
        """Whether the loss or the embeddings' length are well above where they began: without that, a fit of bad luck."""
        return self._curve.recent_loss() > 1.25 * self._start() or self._length_grown() > LENGTH_BLOWN_UP

    def _length_grown(self) -> float:
        if self._length is None or self._first_length is None:
            return 1.0
        return self._length / max(self._first_length, LEAST_LENGTH)

    def _rise(self, loss: float) -> str:
        """What has risen, in words."""
        if self._length_grown() > LENGTH_BLOWN_UP:
            return f"the mean length of the embeddings has risen from {self._first_length:.3g} to {self._length:.3g}"
        return f"the loss has risen from {self._curve.first_loss:.4g} to {loss:.4g}"

    def _diverged(self, step: int) -> Trouble:
        return Trouble(
            "diverged",
            f"training has diverged: up to step {step} {self._rise(self._curve.recent_loss())}. The learning rate is too high. "
            f"Start again with a smaller one{self._smaller_rate()}.",
        )

    def _not_finite(self, step: int, what: str, find_origin: Callable[[], str] | None) -> Trouble:
        origin = f"; it began in {find_origin()}" if find_origin is not None else ""
        kept = "Training stops; the parameters are left as they were before this step."
        if self._curve.has_risen(self._start()) or self._length_grown() > LENGTH_BLOWN_UP:
            return Trouble(
                "diverged",
                f"training has diverged: {self._rise(self._curve.last_loss)}, and at step {step} {what}{origin}. {kept} "
                f"The learning rate is too high. Start again with a smaller one{self._smaller_rate()}.",
                fatal=True,
            )
        return Trouble("non-finite", f"at step {step} {what}{origin}. {kept}", fatal=True)

    def _smaller_rate(self) -> str:
        return f" (--lr {float(f'{self._learning_rate / 10:.2g}'):g})" if self._learning_rate is not None else " (--lr)"


def _what_is_not_finite(loss: float, gradients_norm: float | None, geometry: Geometry | None) -> str | None:
    if not math.isfinite(loss):
        return f"the loss became {loss}"
    if geometry is not None and not geometry.finite:
        return "some embeddings became NaN or infinite"
    if gradients_norm is not None and not math.isfinite(gradients_norm):
        return f"the norm of the gradients became {gradients_norm}"
    return None

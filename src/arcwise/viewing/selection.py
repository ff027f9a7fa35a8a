"""Which of many losses get a panel of their own, where all of them would be too small to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from arcwise.loss_titles import is_alone, title_of
from arcwise.viewing.run_folder import Run

MOST_PANELS = 9
"""As many pictures side by side as can be read on one page."""

MOST_MOVING = 6
"""As many pictures as can be watched at once, and as many lines as colours can tell apart among many."""

ALWAYS = ("softmax", "norm-softmax", "arcface")


@dataclass(frozen=True)
class Selection:
    """Some of the losses, all in the order in which they were compared.

    Attributes:
        shown: those that are shown.
        left_out: the others; empty where there is room for all.
        which: what was chosen, in words: `softmax, ArcFace and the 4 others with the highest test accuracy`.
    """

    shown: tuple[str, ...]
    left_out: tuple[str, ...]
    which: str

    @property
    def sentence(self) -> str:
        """`9 of the 23 losses are shown: softmax and …`; empty where all are."""
        if not self.left_out:
            return ""
        return f"{len(self.shown)} of the {len(self.shown) + len(self.left_out)} losses are shown: {self.which}."


def select(accuracies: Mapping[str, float | None], most: int) -> Selection:
    """At most so many losses: the baselines and ArcFace, and of the others the most accurate.

    Args:
        accuracies: the test accuracy of each loss by its label, in the order of the comparison; None where it was not measured.
    """
    losses = tuple(accuracies)
    if len(losses) <= most:
        return Selection(losses, (), "all")
    first = [loss for loss in losses if any(is_alone(loss, name) for name in ALWAYS)][: most - 1]
    # As printed, in hundredths of a percent: nobody is chosen for an invisible digit.
    scores = {loss: -inf if (value := accuracies[loss]) is None else round(value, 4) for loss in losses}
    others = sorted((loss for loss in losses if loss not in first), key=lambda loss: -scores[loss])
    chosen, rest = others[: most - len(first)], others[most - len(first) :]
    kept = {*first, *chosen}
    best = f"the {len(chosen)} others with the highest test accuracy"
    if scores[chosen[-1]] == scores[rest[0]]:
        best += " (of equal ones, those named first)"
    first.sort(key=lambda loss: next(i for i, name in enumerate(ALWAYS) if is_alone(loss, name)))
    return Selection(
        tuple(loss for loss in losses if loss in kept),
        tuple(loss for loss in losses if loss not in kept),
        _joined([*map(title_of, first), best]),
    )


def selected(runs: Sequence[Run], most: int) -> tuple[list[Run], Selection]:
    """The runs of the losses that are shown."""
    selection = select({run.label: run.accuracy for run in runs}, most)
    return [run for run in runs if run.label in selection.shown], selection


def _joined(items: list[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]

"""How the scale of each run was chosen, and what its margin does to the logits: computed by the package's own functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcwise.errors import ConfigError
from arcwise.loss_titles import base_of, title_of
from arcwise.reporting.reading import Run
from arcwise.reporting.sentences import FEW, capitalised, listing

if TYPE_CHECKING:
    from arcwise.margins import Margin

ANGLES = (0, 15, 30, 45, 60, 90, 120, 150, 180)
"""Degrees at which the table of logits is printed."""

_ANGULAR = {("arcface", "m"), ("combined", "m2")}
"""Parameters that are angles in radians: (margin, parameter)."""


_BY_RULE = "This is what the rule gives:"


@dataclass(frozen=True)
class LogitRow:
    """The own class's logit with and without the margin, at the angles of `ANGLES`."""

    loss: str
    scale: float
    margin: str
    plain: tuple[float, ...]
    lowered: tuple[float, ...]


def margin_of(run: Run) -> Margin | None:
    """The margin that the run's configuration describes; None for softmax and for what this version does not know."""
    from arcwise.margins import build

    table = run.setting("loss", "margin", default={})
    parameters = dict(table) if isinstance(table, Mapping) else {}
    try:
        return build(run.loss, **{key: value for key, value in parameters.items() if key != "name"})
    except (ConfigError, TypeError):
        return None


def scale_of(run: Run) -> float | None:
    """The scale as a number, where the configuration has one."""
    scale = run.setting("loss", "scale")
    return float(scale) if isinstance(scale, int | float) and not isinstance(scale, bool) and scale > 0 else None


def logit_row(loss: str, run: Run) -> LogitRow | None:
    """One row of the table of logits."""
    import torch

    margin, scale = margin_of(run), scale_of(run)
    if margin is None or scale is None:
        return None
    cosines = torch.tensor([math.cos(math.radians(angle)) for angle in ANGLES], dtype=torch.float64)
    lowered = margin.target(cosines)
    return LogitRow(
        loss,
        scale,
        margin_words(margin),
        tuple(scale * float(value) for value in cosines),
        tuple(scale * float(value) for value in lowered),
    )


def margin_words(margin: Margin) -> str:
    """`m = 0.5 rad (28.6°)`; only the numbers that make the margin."""
    parts = []
    for name, value in margin.parameters().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            degrees = f" rad ({math.degrees(value):.1f}°)" if (margin.name, name) in _ANGULAR else ""
            parts.append(f"{name} = {value:.4g}{degrees}")
    return ", ".join(parts)


@dataclass(frozen=True)
class ScaleChoice:
    """At which scale losses were trained, and how it relates to the rule. A formula in the words is never broken over two lines.

    Attributes:
        losses: all that were trained in this way.
        used: what stands behind the names: ` was trained at s = 6.87 with m = 0.5 rad (28.6°).`
        verdict: what the rule says of it; empty where it has nothing to go by.
    """

    losses: tuple[str, ...]
    used: str
    verdict: str

    def sentence(self, *, with_verdict: bool = True) -> str:
        """`ArcFace was trained at s = 6.87 with m = 0.5 rad (28.6°). This is what the rule gives: …`"""
        who = capitalised(listing([title_of(loss) for loss in self.losses]))
        used = self.used if len(self.losses) == 1 else self.used.replace(" was trained", " were trained", 1)
        return " ".join(part for part in (who + used, self.verdict if with_verdict else "") if part)


def scale_paragraphs(runs: Mapping[str, Run], num_classes: int | None, dim: int | None) -> tuple[str, list[str]]:
    """What holds for many scales, where there are many; and a sentence for each way in which losses were trained."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for loss, run in runs.items():
        choice = scale_choice(loss, run, num_classes, dim)
        if choice is not None:
            alike.setdefault((base_of(loss), choice.used, choice.verdict), []).append(loss)
    choices = [ScaleChoice(tuple(losses), used, verdict) for (_, used, verdict), losses in alike.items()]
    by_rule = [choice.verdict for choice in choices if choice.verdict.startswith(_BY_RULE)]
    if len(choices) <= FEW or not by_rule:
        return "", [choice.sentence() for choice in choices]
    preface = f"Where nothing else is said, the scale is what the rule gives:{by_rule[0].removeprefix(_BY_RULE)}"
    return preface, [choice.sentence(with_verdict=choice.verdict != by_rule[0]) for choice in choices]


def scale_sentence(loss: str, run: Run, num_classes: int | None, dim: int | None) -> str:
    """What scale a run used, and how it relates to the rule; empty for a loss without a margin."""
    choice = scale_choice(loss, run, num_classes, dim)
    return choice.sentence() if choice is not None else ""


def scale_choice(loss: str, run: Run, num_classes: int | None, dim: int | None) -> ScaleChoice | None:
    """How the scale of one run was chosen; None for a loss without a margin."""
    from arcwise.margins import choose_scale

    def made(used: str, verdict: str = "") -> ScaleChoice:
        unbroken = (words.replace(" = ", "\u00a0=\u00a0") for words in (used, verdict))
        return ScaleChoice((loss,), *unbroken)

    margin, scale = margin_of(run), scale_of(run)
    if margin is None:
        return None
    words = margin_words(margin)
    with_margin = f" with {words}" if words else ""
    if scale is None:
        return made(f"{with_margin}: the configuration does not give the scale as a number.")
    used = f" was trained at s = {scale:.3g}{with_margin}."
    if num_classes is None or dim is None or num_classes < 2 or dim < 2:
        return made(used)
    choice = choose_scale(num_classes, dim, margin)
    if abs(choice.scale - scale) <= 0.01 * scale and choice.margin == margin:
        return made(used, f"{_BY_RULE} {_explained(num_classes, dim)}")
    if choice.margin != margin:
        return made(
            used,
            f"The rule finds no room for this margin: {_explained(num_classes, dim)} "
            f"It would take {margin_words(choice.margin)} and s = {choice.scale:.3g}.",
        )
    return made(used, f"The rule alone would give s = {choice.scale:.3g}: {_explained(num_classes, dim)}")


def _explained(num_classes: int, dim: int) -> str:
    from arcwise.margins.auto_scale import POSTERIOR, nearest_centre_angle

    phi, neighbours = nearest_centre_angle(num_classes, dim)
    return (
        f"with N = {num_classes} and D = {dim} the nearest centres can stand φ = {math.degrees(phi):.1f}° apart, "
        f"k = {neighbours}, and P = {POSTERIOR:g} is asked for."
    )

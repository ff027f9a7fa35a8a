"""The tables of the report as rows of text: what was measured, under noise, and how large the logits are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arcwise.loss_titles import base_of, heading_of, title_of
from arcwise.reporting.conclusion import NoisePoint
from arcwise.reporting.grouping import Group
from arcwise.reporting.measured import Standing
from arcwise.reporting.reading import Run
from arcwise.reporting.scale_choice import ANGLES, LogitRow
from arcwise.reporting.sentences import capitalised, listing
from arcwise.reporting.settings import ABSENT, shared_and_different

Table = dict[str, Any]
"""`head`: texts; `rows`: rows of cells, each with `text`, `bold`; `caption`: text."""

_ARROWS = {"higher": "↑", "lower": "↓"}
WIDEST = 6
"""With more losses than this, they become the rows of the table instead of its columns."""


def cell(text: str, *, bold: bool = False) -> dict[str, Any]:
    return {"text": text, "bold": bold}


def comparison_table(group: Group, standings: Sequence[Standing], caption: str) -> Table:
    """Every measured quantity for every loss, the best of each in bold."""
    losses = group.losses
    heads = [
        f"{capitalised(standing.column.title)}{', ' + standing.units.unit if standing.units.unit else ''}"
        f" {_ARROWS.get(standing.column.better, '')}".rstrip()
        for standing in standings
    ]
    body = [[_value_cell(standing, loss) for loss in losses] for standing in standings]
    if len(losses) <= WIDEST:
        head = ["", *(heading_of(loss) for loss in losses)]
        rows = [[cell(text), *cells] for text, cells in zip(heads, body, strict=True)]
    else:
        head = ["Loss", *heads]
        rows = [[cell(heading_of(loss)), *(cells[index] for cells in body)] for index, loss in enumerate(losses)]
    return {"head": head, "rows": rows, "caption": caption}


def _value_cell(standing: Standing, loss: str) -> dict[str, Any]:
    place = standing.place_of(loss)
    if place is None:
        return cell("—")
    is_best = len(standing.places) > 1 and any(best.loss == loss for best in standing.best)
    return cell(standing.units.in_table(place.values), bold=is_best)


def noise_table(points: Sequence[NoisePoint], caption: str) -> Table | None:
    """Accuracy by angle against accuracy by distance; the better of each pair in bold."""
    if not points:
        return None
    losses = list(dict.fromkeys(point.loss for point in points))
    noises = list(dict.fromkeys(point.noise for point in points))
    by_key = {(point.noise, point.loss): point for point in points}
    if len(losses) > WIDEST:
        rows = [
            [cell(heading_of(loss)), *(_together(by_key.get((noise, loss))) for noise in noises)] for loss in losses
        ]
        return {"head": ["Loss: angle / distance", *noises], "rows": rows, "caption": caption}
    if len(losses) > 3:  # two columns for each would be too wide
        rows = [[cell(noise), *(_together(by_key.get((noise, loss))) for loss in losses)] for noise in noises]
        head = ["Noise: angle / distance", *(heading_of(loss) for loss in losses)]
        return {"head": head, "rows": rows, "caption": caption}
    head = ["Noise", *(f"{heading_of(loss)}, {kind}" for loss in losses for kind in ("angle", "distance"))]
    rows = [
        [cell(noise), *(entry for loss in losses for entry in _pair(by_key.get((noise, loss))))] for noise in noises
    ]
    return {"head": head, "rows": rows, "caption": caption}


def _pair(point: NoisePoint | None) -> list[dict[str, Any]]:
    if point is None:
        return [cell("—"), cell("—")]
    angle, distance = f"{100 * point.angle:.2f}", f"{100 * point.distance:.2f}"
    return [
        cell(angle, bold=float(angle) > float(distance)),
        cell(distance, bold=float(distance) > float(angle)),
    ]


def _together(point: NoisePoint | None) -> dict[str, Any]:
    angle, distance = _pair(point)
    return cell(f"{angle['text']} / {distance['text']}", bold=angle["bold"])


def logit_table(rows: Sequence[LogitRow], caption: str) -> Table | None:
    """The own class's logit at a few angles, without and with the margin."""
    if not rows:
        return None
    shown = rows
    if len(rows) > WIDEST:
        shown, alike = _without_repetition(rows)
        caption = " ".join([caption, *alike])
    lines = []
    for row in shown:
        name = heading_of(row.loss)
        lines.append([cell(f"{name}: s cos θ"), *(cell(_logit(value)) for value in row.plain)])
        if row.plain != row.lowered:
            lines.append([cell(f"{name}: s ψ(θ)"), *(cell(_logit(value)) for value in row.lowered)])
    return {"head": ["θ", *(f"{angle}°" for angle in ANGLES)], "rows": lines, "caption": caption}


def _without_repetition(rows: Sequence[LogitRow]) -> tuple[list[LogitRow], list[str]]:
    """One row for all losses with the same margin and scale, and a sentence for each that stands for others."""
    groups: dict[tuple[object, ...], list[LogitRow]] = {}
    for row in rows:
        groups.setdefault((base_of(row.loss), row.margin, row.plain, row.lowered), []).append(row)
    sentences = [
        f"The lines of {title_of(first.loss)} are also those of {listing([title_of(row.loss) for row in others])}."
        for first, *others in groups.values()
        if others
    ]
    return [group[0] for group in groups.values()], sentences


def _logit(value: float) -> str:
    text = f"{value:.1f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def settings_tables(runs: Mapping[str, Sequence[Run]]) -> tuple[list[list[str]], Table | None]:
    """Settings that all runs share, as pairs, and a table of those in which the losses differ."""
    shared, different = shared_and_different(runs)
    losses = [loss for loss, listed in runs.items() if listed]
    if not different:
        return [list(pair) for pair in shared], None
    if len(losses) > WIDEST:
        return [list(pair) for pair in shared], _settings_by_loss(losses, different)
    head = ["Setting", *(heading_of(loss) for loss in losses)]
    rows = [[cell(name), *(cell(value) for value in values)] for name, values in different]
    return [list(pair) for pair in shared], {
        "head": head,
        "rows": rows,
        "caption": "Settings in which the losses differ.",
    }


def _settings_by_loss(losses: Sequence[str], different: Sequence[tuple[str, Sequence[str]]]) -> Table:
    """A row a loss: with many losses there is no room for a column each."""
    rows = []
    for index, loss in enumerate(losses):
        own = [(name.removeprefix("loss."), values[index]) for name, values in different]
        said = ", ".join(f"{name} = {value}" for name, value in own if value != ABSENT)
        rows.append([cell(heading_of(loss)), cell(said.replace(" = ", "\u00a0=\u00a0"))])
    return {
        "head": ["Loss", "Settings of its own"],
        "rows": rows,
        "caption": "Settings in which the losses differ. Those of the section [loss] are written without its name, and what is "
        "not written for a loss it does not have.",
    }

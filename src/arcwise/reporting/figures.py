"""Which figures stand where in the report, and under which caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arcwise.loss_titles import base_of, heading_of, title_of
from arcwise.progress import Reporter
from arcwise.reporting.captions import caption
from arcwise.reporting.grouping import Group
from arcwise.reporting.measured import mean
from arcwise.reporting.pictures import (
    COMPARISON_STEMS,
    RUN_STEMS,
    Picture,
    draw_missing_comparison,
    draw_missing_run,
    find,
)
from arcwise.reporting.reading import Run
from arcwise.reporting.sentences import FEW, listing
from arcwise.viewing.animation import NAME as ANIMATION
from arcwise.viewing.selection import MOST_MOVING, MOST_PANELS, Selection, select

IN_TECHNIQUE = ("target_logit", "margins")
"""These explain the loss and stand with the explanation, not with the results."""

SOME = ("embeddings", "embeddings_raw", "angles", "decision")
"""Figures of a comparison with a panel for each loss: where there are many losses, only some are on them."""

HIGHEST, HIGHEST_OF_MANY = 9.5, 16.0
"""Centimetres: a figure of many losses may fill most of a page."""


@dataclass
class Album:
    """The picture files that a document shows, each under a name of its own."""

    files: dict[str, Path] = field(default_factory=dict)

    def add(self, picture: Picture) -> dict[str, Any]:
        name = f"figure-{len(self.files) + 1}{picture.path.suffix}"
        self.files[name] = picture.path
        return {"file": name, "aspect": picture.aspect}


def figures_of(group: Group, album: Album, reporter: Reporter) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The figures of a group: those for the explanation of the technique, and those for the results."""
    several_seeds = any(len(listed) > 1 for listed in group.runs.values())
    first = {loss: listed[0] for loss, listed in group.runs.items() if listed}
    together: dict[str, Picture] = {}
    if group.folder is not None:
        draw_missing_comparison(group.folder, reporter)
        together = find(group.folder, COMPARISON_STEMS, reporter)
    single = {loss: _figures_of_run(run, reporter) for loss, run in first.items()}
    selection = selection_of(group, MOST_PANELS)
    stems = [*RUN_STEMS, *(stem for stem in COMPARISON_STEMS if stem not in RUN_STEMS)]
    technique: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for stem in stems:
        if stem in together:
            panels = [{**album.add(together[stem]), "label": ""}]
            shown: Mapping[str, Sequence[Run]] = (
                {loss: group.runs[loss] for loss in selection.shown} if stem in SOME else group.runs
            )
        else:
            having = [loss for loss in single if stem in single[loss]]
            teaching = sorted(having, key=_teaching)[:1]
            having = teaching if stem in IN_TECHNIQUE else [loss for loss in having if loss in selection.shown]
            panels = [
                {**album.add(single[loss][stem]), "label": heading_of(loss) if len(having) > 1 else ""}
                for loss in having
            ]
            shown = {loss: group.runs[loss] for loss in having}
        if panels:
            some = ""
            if stem not in IN_TECHNIQUE and len(shown) < len(first):
                some = f"{len(shown)} of the {len(first)} losses are shown."
            text = caption(stem, shown, dim=group.dim, several_seeds=several_seeds, selection=some)
            highest = HIGHEST_OF_MANY if stem in together and len(shown) > FEW else HIGHEST
            entry = {"stem": stem, "panels": panels, "caption": text, "highest": highest}
            (technique if stem in IN_TECHNIQUE else results).append(entry)
    return technique, results


def selection_of(group: Group, most: int) -> Selection:
    """Which of the losses that still have a run are shown where there is room for so many."""
    measured = {loss: group.values[loss].get("accuracy") for loss, listed in group.runs.items() if listed}
    return select({loss: mean(values) if values else None for loss, values in measured.items()}, most)


def selection_note(group: Group) -> str:
    """Which losses the figures show and which they leave out, and why; empty where they show all."""
    panels, moving = selection_of(group, MOST_PANELS), selection_of(group, MOST_MOVING)
    parts = []
    if panels.left_out:
        num = len(panels.shown) + len(panels.left_out)
        parts.append(
            f"Figures with a panel for each loss show {len(panels.shown)} of the {num}, since more could not be read side by "
            f"side: {panels.which}. Left out of them are {listing([title_of(loss) for loss in panels.left_out])}; the folder of "
            "each run has the figures of its own loss."
        )
    if moving.left_out and group.folder is not None and (group.folder / "figures" / ANIMATION).is_file():
        parts.append(f"The animation figures/{ANIMATION} shows {len(moving.shown)}: {moving.which}.")
    return " ".join(parts)


def _figures_of_run(run: Run, reporter: Reporter) -> dict[str, Picture]:
    draw_missing_run(run.folder, reporter)
    return find(run.folder, RUN_STEMS, reporter)


def _teaching(loss: str) -> int:
    """ArcFace shows best what a margin does, then any other margin; softmax and norm-softmax have none."""
    name = base_of(loss)
    return 0 if name == "arcface" else 2 if name in {"softmax", "norm-softmax"} else 1

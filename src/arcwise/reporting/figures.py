"""Which figures stand where in the report, and under which caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arcwise.loss_titles import base_of, heading_of
from arcwise.progress import Reporter
from arcwise.reporting.captions import caption
from arcwise.reporting.grouping import Group
from arcwise.reporting.pictures import (
    COMPARISON_STEMS,
    RUN_STEMS,
    Picture,
    draw_missing_comparison,
    draw_missing_run,
    find,
)
from arcwise.reporting.reading import Run

IN_TECHNIQUE = ("target_logit", "margins")
"""These explain the loss and stand with the explanation, not with the results."""

MOST_PANELS = 9
"""As many pictures as one page holds."""


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
    stems = [*RUN_STEMS, *(stem for stem in COMPARISON_STEMS if stem not in RUN_STEMS)]
    technique: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for stem in stems:
        if stem in together:
            panels = [{**album.add(together[stem]), "label": ""}]
            shown: Mapping[str, Sequence[Run]] = group.runs
        else:
            having = [loss for loss in single if stem in single[loss]]
            if stem in IN_TECHNIQUE:
                having = sorted(having, key=_teaching)[:1]
            panels = [
                {**album.add(single[loss][stem]), "label": heading_of(loss) if len(having) > 1 else ""}
                for loss in having
            ]
            shown = {loss: group.runs[loss] for loss in having}
        if panels:
            text = caption(stem, shown, dim=group.dim, several_seeds=several_seeds)
            for start in range(0, len(panels), MOST_PANELS):
                entry = {"stem": stem, "panels": panels[start : start + MOST_PANELS], "caption": text, "first": start}
                (technique if stem in IN_TECHNIQUE else results).append(entry)
    return technique, results


def _figures_of_run(run: Run, reporter: Reporter) -> dict[str, Picture]:
    draw_missing_run(run.folder, reporter)
    return find(run.folder, RUN_STEMS, reporter)


def _teaching(loss: str) -> int:
    """ArcFace shows best what a margin does, then any other margin; softmax and norm-softmax have none."""
    name = base_of(loss)
    return 0 if name == "arcface" else 2 if name in {"softmax", "norm-softmax"} else 1

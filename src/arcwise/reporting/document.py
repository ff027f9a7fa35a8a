"""The whole report as plain data, ready for the template: every sentence, table, figure and listing in its place."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from arcwise._version import __version__
from arcwise.loss_titles import title_of
from arcwise.progress import Reporter
from arcwise.reporting.conclusion import conclusion, noise_sentence, summary
from arcwise.reporting.experiment import experiment
from arcwise.reporting.figures import Album, figures_of, selection_note
from arcwise.reporting.grouping import Group
from arcwise.reporting.listings import Excerpt, listings
from arcwise.reporting.measured import Standing, standing
from arcwise.reporting.noise import noise_points
from arcwise.reporting.reading import Run
from arcwise.reporting.scale_choice import logit_row, scale_paragraphs
from arcwise.reporting.sentences import FEW, capitalised, column_sentence, counted, listing, seeds_sentence
from arcwise.reporting.settings import flat
from arcwise.reporting.tables import comparison_table, logit_table, noise_table
from arcwise.reporting.wrapping import breakable

_CODE = (
    Excerpt("arcwise.engines.reference", ("margin_loss", "cosines", "margin_logits", "mean_cross_entropy")),
    Excerpt("arcwise.heads.margin", ("MarginHead.loss", "MarginHead.logits")),
    Excerpt("arcwise.heads.softmax", ("SoftmaxHead.loss", "SoftmaxHead._plain_logits")),
    Excerpt("arcwise.margins.arcface", ("ArcFace",)),
    Excerpt("arcwise.margins.continuation", ("combined_curve",)),
)
_MARGIN_CODE = {
    "cosface": Excerpt("arcwise.margins.cosface", ("CosFace",)),
    "sphereface": Excerpt("arcwise.margins.sphereface", ("SphereFace",)),
    "combined": Excerpt("arcwise.margins.combined", ("CombinedMargin",)),
    "norm-softmax": Excerpt("arcwise.margins.norm_softmax", ("NormSoftmax",)),
}


def document(groups: Sequence[Group], reporter: Reporter) -> tuple[dict[str, Any], Album]:
    """Everything that the template shows, and the picture files that it mentions."""
    album = Album()
    technique_figures: list[dict[str, Any]] = []
    results = []
    for group in groups:
        for_technique, for_results = figures_of(group, album, reporter)
        technique_figures = technique_figures or for_technique
        results.append(_results(group, for_results, heading=_heading(group) if len(groups) > 1 else ""))
    first = groups[0]
    used = list(dict.fromkeys(run.loss for group in groups for run in group.all_runs))
    excerpts = (*_CODE, *(_MARGIN_CODE[loss] for loss in used if loss in _MARGIN_CODE))
    title = _title(groups)
    content = {
        "title": title,
        "running": title if len(title) <= 90 else f"{title[:89]}…",
        "facts": _facts(groups),
        "summary": [_summary(group) for group in groups],
        "grouping": _grouping_note(groups),
        "technique": _technique(first, technique_figures),
        "experiments": [experiment(group, _heading(group) if len(groups) > 1 else "") for group in groups],
        "listings": [
            {"path": entry.path, "line": entry.first_line, "code": entry.code} for entry in listings(excerpts)
        ],
        "results": results,
        "appendix": [_appendix(group, _heading(group) if len(groups) > 1 else "") for group in groups],
    }
    return _wrapped(content), album


def _title(groups: Sequence[Group]) -> str:
    data = list(dict.fromkeys(group.data for group in groups))
    # A run's name in brackets tells rows apart, not losses.
    losses = list(dict.fromkeys(title_of(loss.partition(" (")[0]) for group in groups for loss in group.losses))
    where = listing([_known_data(name) for name in data]) if len(data) <= 3 else f"{len(data)} data sets"
    if len(losses) > 3:
        return f"{capitalised(counted(len(losses), 'loss', 'losses'))} compared on {where}"
    return f"{capitalised(listing(losses))} on {where}"


def _known_data(name: str) -> str:
    """How a data set is written in prose: a known one by its proper name, a folder or a file by the last part of its path."""
    return {
        "mnist": "MNIST",
        "fashion-mnist": "Fashion-MNIST",
        "cifar10": "CIFAR-10",
        "digits": "the digits set",
        "omniglot": "Omniglot",
    }.get(name, re.split(r"[/\\]", name.rstrip("/\\"))[-1] or name)


def _heading(group: Group) -> str:
    width = f", {group.dim} dimensions" if group.dim else ""
    epochs = f", {counted(group.epochs, 'epoch')}" if group.epochs else ""
    where = f" ({group.folder.name})" if group.folder is not None else ""
    return f"{_known_data(group.data)}, {group.backbone}{width}{epochs}{where}"


def _facts(groups: Sequence[Group]) -> list[list[str]]:
    runs = [run for group in groups for run in group.all_runs]
    versions = list(dict.fromkeys(str(run.config.get("arcwise", __version__)) for run in runs)) or [__version__]
    facts = [
        ["Data", listing(list(dict.fromkeys(_known_data(group.data) for group in groups)))],
        [
            "Model",
            "; ".join(
                dict.fromkeys(group.backbone + (f", {group.dim} dimensions" if group.dim else "") for group in groups)
            ),
        ],
    ]
    if runs:
        dates = sorted({run.finished.date() for run in runs})
        shown = dates[0].isoformat() if len(dates) == 1 else f"{dates[0].isoformat()} to {dates[-1].isoformat()}"
        facts.append(["Measured on", shown])
    facts.append(["Made with", f"arcwise {listing(versions)}"])
    return facts


def _standings(group: Group) -> list[Standing]:
    return [standing(column, group.values) for column in group.columns]


def _summary(group: Group) -> str:
    return summary(
        data=_known_data(group.data),
        num_classes=_num_classes(group),
        backbone=group.backbone,
        dim=group.dim,
        epochs=group.epochs,
        num_seeds=group.num_seeds,
        standings=_standings(group),
        losses=group.losses,
    )


def _num_classes(group: Group) -> int | None:
    return next((run.num_classes for run in group.all_runs if run.num_classes), None)


def _grouping_note(groups: Sequence[Group]) -> str:
    if len(groups) == 1:
        return ""
    return (
        f"The given folders do not all share their data, backbone, width and number of epochs, and numbers are compared only "
        f"where these are the same. They make {counted(len(groups), 'group')}, with a table each: "
        + "; ".join(_heading(group) for group in groups)
        + "."
    )


def _technique(group: Group, figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    num_classes = _num_classes(group)
    first = {loss: listed[0] for loss, listed in group.runs.items() if listed}
    about_scales, choices = scale_paragraphs(first, num_classes, group.dim)
    rows = [row for loss, run in first.items() if (row := logit_row(loss, run)) is not None]
    return {
        "num_classes": num_classes,
        "dim": group.dim,
        "about_scales": about_scales,
        "choices": choices,
        "logits": logit_table(
            rows,
            "The own class’s logit in these runs, over the angle to the own centre, computed by the code that trained them. "
            "With a margin the embedding must come closer to its centre for the same logit.",
        ),
        "figures": list(figures),
    }


def _results(group: Group, figures: Sequence[Mapping[str, Any]], heading: str) -> dict[str, Any]:
    standings = _standings(group)
    points = noise_points(group.runs)
    together = len(group.losses) > 3
    bold = "Where the angle is the better one, the pair is bold." if together else "The better of each pair is bold."
    events = [(run, event) for run in group.all_runs for event in run.health]
    best = " The best value of each line is bold." if len(group.losses) > 1 else ""
    table = comparison_table(
        group,
        standings,
        f"What was measured on the test samples of {_known_data(group.data)}; arrows point to the better end.{best}",
    )
    return {
        "heading": heading,
        "notes": list(group.notes),
        "selection": selection_note(group),
        "seeds": seeds_sentence(group.num_seeds, len(group.losses)),
        "table": table,
        "columns": [
            {
                "title": capitalised(entry.column.title),
                "meaning": entry.column.meaning.strip().rstrip("."),
                "text": column_sentence(entry),
            }
            for entry in standings
            if entry.places
        ],
        "figures": list(figures),
        "noise": noise_table(
            points,
            "Test accuracy in per cent under noise, decided by the nearest class mean in angle and in distance, as means "
            f"over the seeds. {bold}",
        ),
        "noise_text": noise_sentence(points),
        "health": [f"{run.name}, step {event.step} ({event.name}): {event.message}" for run, event in events],
        "conclusion": list(
            conclusion(
                standings=standings,
                losses=group.losses,
                noise=points,
                data=_known_data(group.data),
                dim=group.dim,
                num_seeds=group.num_seeds,
                num_health_events=len(events),
                data_argument=shlex.quote(group.data),
            )
        ),
    }


def _appendix(group: Group, heading: str) -> dict[str, Any]:
    commands = list(
        dict.fromkeys(
            str(command)
            for command in (group.facts.get("command"), *(run.config.get("command") for run in group.all_runs))
            if command
        )
    )
    return {
        "heading": heading,
        "commands": commands,
        "environment": _environment(group),
        "configs": _configs(group.runs),
        "many": len(group.runs) > FEW,
        "times": [
            [run.name, f"{seconds:.1f} s"]
            for run in group.all_runs
            if (seconds := run.number("train_seconds")) is not None
        ],
    }


def _environment(group: Group) -> list[list[str]]:
    lines = []
    for title, key in (("Device", "device"), ("arcwise", "arcwise"), ("torch", "torch")):
        stated = [run.evaluation.get(key) or run.config.get(key) or run.setting("train", key) for run in group.all_runs]
        found = list(dict.fromkeys(str(value) for value in (group.facts.get(key), *stated) if value))
        if found:
            lines.append([title, found[0] if group.facts.get(key) else listing(found)])
    lines.append(["Report written by", f"arcwise {__version__}, Python {platform.python_version()}"])
    return lines


def _configs(runs: Mapping[str, Sequence[Run]]) -> list[dict[str, str]]:
    """The configuration file of the first seed of each loss in full, of many losses only the first; of the others what differs."""
    shown: list[dict[str, str]] = []
    whole: Run | None = None
    for loss, listed in runs.items():
        if len(runs) <= FEW:
            whole = None
        for run in listed:
            name = f"{run.name}/config.toml"
            if whole is None:
                whole = run
                text = (run.folder / "config.toml").read_text(encoding="utf-8").strip()
                shown.append({"name": name, "text": text, "note": f"{capitalised(title_of(loss))}."})
            else:
                shown.append({"name": name, "text": "", "note": _differences(run, whole)})
    return shown


def _differences(run: Run, reference: Run) -> str:
    """`as arcface-seed0, except train.seed = 1`."""
    own, other = dict(flat(run.config)), dict(flat(reference.config))
    differing = [f"{key} = {value}" for key, value in own.items() if other.get(key) != value]
    differing += [f"{key} is not set" for key in other if key not in own]
    return f"as {reference.name}" + (f", except {', '.join(differing)}" if differing else "")


def _wrapped(part: Any, key: str = "", longest: int = 24) -> Any:
    """Long words of prose and tables may be broken; code keeps its own rule, since it is copied by hand and by mouse."""
    if isinstance(part, str):
        if key == "file":
            return part
        return breakable(part, {"code": 400, "text": longest}.get(key, longest))
    if isinstance(part, Mapping):
        return {name: _wrapped(value, str(name), _LONGEST.get(str(name), longest)) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_wrapped(value, key, longest) for value in part]
    return part


_LONGEST = {
    "commands": 80,
    "configs": 40,
    "listings": 100,
    "table": 16,
    "noise": 14,
    "logits": 40,
    "different": 16,
    "classes": 14,
}

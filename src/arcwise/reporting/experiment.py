"""What was trained on what: data, model and settings of a group, as far as its run folders say."""

from __future__ import annotations

from typing import Any

from arcwise.reporting.grouping import Group
from arcwise.reporting.reading import Run
from arcwise.reporting.sentences import listing
from arcwise.reporting.settings import shared_and_different
from arcwise.reporting.tables import settings_tables

MOST_CLASSES = 24
"""With more classes than this, their counts are given as a range instead of one by one."""


def experiment(group: Group, heading: str) -> dict[str, Any]:
    """The description of a group's data, model and settings."""
    run = next(iter(group.all_runs), None)
    shared, different = settings_tables(group.runs)
    return {
        "heading": heading,
        "data": _data(group, run),
        "classes": _classes(run),
        "model": _model(group, run),
        "shared": shared,
        "different": different,
        "num_runs": len(group.all_runs),
    }


def _data(group: Group, run: Run | None) -> list[list[str]]:
    lines = [["Name", group.data]]
    if run is None:
        return lines
    if run.num_classes:
        lines.append(["Classes", str(run.num_classes)])
    train = _stated(run, "num_train", "train_images")
    if train is not None:
        lines.append(["Training samples", _thousands(int(train))])
    test = _stated(run, "num_test", "test_images") or sum(run.test_counts) or None
    if test is not None:
        lines.append(["Test samples", _thousands(int(test))])
    for title, key in (("Shape", "shape"), ("Source", "source"), ("Licence", "licence")):
        value = _stated(run, key)
        if value:
            lines.append([title, " × ".join(map(str, value)) if isinstance(value, list) else str(value)])
    notes = _stated(run, "notes")
    if isinstance(notes, list):
        lines += [["Note", str(note)] for note in notes]
    return lines


def _stated(run: Run, *keys: str) -> Any:
    """A fact about the data, from evaluation.json or from the [data] section of the configuration."""
    for key in keys:
        for value in (run.evaluation.get(key), run.setting("data", key)):
            if value not in (None, "", [], 0):
                return value
    return None


def _classes(run: Run | None) -> dict[str, Any]:
    """The classes with their test samples; as a range where there are many."""
    if run is None or not run.classes:
        return {"rows": [], "text": ""}
    counts = run.test_counts or (0,) * len(run.classes)
    if len(run.classes) <= MOST_CLASSES:
        return {"rows": [[name, str(count)] for name, count in zip(run.classes, counts, strict=False)], "text": ""}
    return {
        "rows": [],
        "text": f"Each of the {len(run.classes)} classes has between {min(counts)} and {max(counts)} test samples.",
    }


def _model(group: Group, run: Run | None) -> str:
    width = f" It ends in an embedding of D = {group.dim} dimensions." if group.dim else ""
    size = run.number("num_parameters") if run is not None else None
    count = f" has {_thousands(int(size))} parameters" if size is not None else " is used for every loss"
    classes = run.num_classes if run is not None else None
    head = f" The head above it holds {classes} class centres of the same width." if classes else ""
    alone = ""
    if len(group.losses) > 1 and run is not None:
        _, different = shared_and_different(group.runs)
        others = [name for name, _ in different if not name.startswith("loss.")]
        alone = (
            f" Besides the loss, these settings differ between the runs: {listing(others)}."
            if others
            else " Nothing but the loss, with the scale that suits it, changes from one to the next."
        )
    return f"The backbone {group.backbone}{count}.{width}{head}{alone}"


def _thousands(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f") if number >= 10_000 else str(number)

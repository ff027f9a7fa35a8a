"""From the folders that a user names to groups that may be compared: same data, same width, same epochs, same backbone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.reporting.reading import (
    Column,
    Comparison,
    Run,
    is_comparison,
    is_run,
    read_comparison,
    read_run,
)

COLUMNS = (
    Column("accuracy", "accuracy", "%", "higher", "test samples whose nearest class mean, by angle, is their own"),
    Column("classifier_accuracy", "own classifier", "%", "higher", "test samples that the trained head itself classifies rightly"),
    Column("eer", "EER", "%", "lower", "equal error rate of deciding same or different over all pairs of test samples"),
    Column("own_angle", "angle to own centre", "°", "lower", "mean angle between a test sample and the mean of its class in training"),
    Column("smallest_centre_angle", "nearest centres", "°", "higher", "smallest angle between the means of two classes"),
    Column("fisher", "between/within", "", "higher", "spread between the classes over the spread within them, on the unit sphere"),
    Column("noise_accuracy", "noise, by angle", "%", "higher", "accuracy under added noise, nearest class mean by angle"),
    Column("noise_accuracy_distance", "noise, by distance", "%", "higher", "the same, nearest class mean by Euclidean distance"),
    Column("train_seconds", "training time", "s", "lower", "seconds spent in training steps"),
)  # fmt: skip
"""The columns of a table made from single runs; a comparison folder brings its own."""


@dataclass(frozen=True)
class Group:
    """Losses that differ in nothing but the loss (and the seed), with what was measured for each."""

    data: str
    backbone: str
    dim: int | None
    epochs: int | None
    columns: tuple[Column, ...]
    runs: Mapping[str, tuple[Run, ...]]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    facts: Mapping[str, Any]
    folder: Path | None
    notes: tuple[str, ...]

    @property
    def losses(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def all_runs(self) -> tuple[Run, ...]:
        return tuple(run for runs in self.runs.values() for run in runs)

    @property
    def num_seeds(self) -> int:
        """The most values that any cell has."""
        return max((len(listed) for row in self.values.values() for listed in row.values()), default=0)


def gather(paths: Sequence[Path], reporter: Reporter) -> tuple[Group, ...]:
    """Read the folders and group them. What is not a run is named and left out; nothing left at all is an error."""
    comparisons: list[Comparison] = []
    runs: list[Run] = []
    inside: set[Path] = set()
    left_out: list[str] = []
    given = [Path(path) for path in paths]
    for path in dict.fromkeys(given):
        if is_comparison(path):
            comparison = read_comparison(path)
            comparisons.append(comparison)
            inside.update(run.folder.resolve() for listed in comparison.runs.values() for run in listed)
    for path in dict.fromkeys(given):
        if is_comparison(path) or path.resolve() in inside:
            continue
        try:
            if not is_run(path):
                raise RunError(_why_not_a_run(path))
            runs.append(read_run(path))
        except RunError as error:
            if len(given) == 1:
                raise
            left_out.append(str(error))
            reporter.warn(f"left out: {error}")
    if not comparisons and not runs:
        listed = ", ".join(str(path) for path in given) or "nothing"
        raise RunError(
            f"There is no finished run among what was given: {listed}. "
            "Give folders that arcwise train or arcwise compare wrote, such as runs/mnist-compare."
        )
    groups = [_from_comparison(comparison) for comparison in comparisons]
    groups += _from_runs(runs)
    if left_out:
        groups[0] = _with_notes(groups[0], (f"{len(left_out)} of the given paths are left out: " + " ".join(left_out),))
    return tuple(groups)


def _why_not_a_run(path: Path) -> str:
    what_to_do = "Give a folder that arcwise train or arcwise compare wrote."
    if not path.exists():
        return f"There is no folder {path}. {what_to_do}"
    if not path.is_dir():
        return f"{path} is a file, not a run folder. {what_to_do}"
    return f"{path} is not a run: it has neither config.toml nor comparison.json. {what_to_do}"


def _from_comparison(comparison: Comparison) -> Group:
    facts = comparison.facts
    runs = [run for listed in comparison.runs.values() for run in listed]
    backbones = list(dict.fromkeys(_backbone(run) for run in runs))
    return Group(
        data=str(facts.get("data", "unnamed data")),
        backbone=" / ".join(backbones) or "unknown",
        dim=_whole(facts.get("dim")),
        epochs=_whole(facts.get("epochs")),
        columns=comparison.columns,
        runs=comparison.runs,
        values=comparison.values,
        facts=facts,
        folder=comparison.folder,
        notes=tuple(f"A run of this comparison cannot be shown: {reason}" for reason in comparison.missing),
    )


def _from_runs(runs: Sequence[Run]) -> list[Group]:
    by_key: dict[tuple[str, int | None, int | None, str], list[Run]] = {}
    for run in runs:
        by_key.setdefault((_data(run), _whole(run.setting("backbone", "dim")), run.epochs, _backbone(run)), []).append(
            run
        )
    groups = []
    for (data, dim, epochs, backbone), members in by_key.items():
        labelled = _label(members)
        values = {
            label: {
                column.key: tuple(value for run in listed if (value := run.number(column.key)) is not None)
                for column in COLUMNS
            }
            for label, listed in labelled.items()
        }
        columns = tuple(column for column in COLUMNS if any(row[column.key] for row in values.values()))
        if not columns:
            names = ", ".join(str(run.folder) for run in members)
            raise RunError(
                f"evaluation.json holds no measured number in {names}. Evaluate it with: arcwise evaluate RUN"
            )
        groups.append(Group(data, backbone, dim, epochs, columns, labelled, values, facts={}, folder=None, notes=()))
    return groups


def _label(runs: Sequence[Run]) -> dict[str, tuple[Run, ...]]:
    """Runs by row: seeds of the same loss with the same settings share one, anything else gets a row of its own."""
    by_loss: dict[str, dict[str, list[Run]]] = {}
    for run in sorted(runs, key=lambda run: _FIRST.get(run.loss, len(_FIRST))):
        by_loss.setdefault(run.loss, {}).setdefault(_settings_without_seed(run), []).append(run)
    labelled: dict[str, tuple[Run, ...]] = {}
    for loss, variants in by_loss.items():
        for listed in variants.values():
            seeds = [run.seed for run in listed]
            if len(variants) == 1 and len(set(seeds)) == len(seeds):
                labelled[loss] = tuple(listed)
            elif len(set(seeds)) == len(seeds):
                labelled[f"{loss} ({listed[0].name})"] = tuple(listed)
            else:  # the same seed twice is the same measurement, not a spread between seeds
                labelled.update({f"{loss} ({run.name})": (run,) for run in listed})
    return labelled


def _settings_without_seed(run: Run) -> str:
    tables = {
        section: {key: value for key, value in sorted(table.items()) if (section, key) not in _NOT_A_DIFFERENCE}
        for section, table in sorted(run.config.items())
        if isinstance(table, Mapping)
    }
    return repr(tables)


_FIRST = {"softmax": 0, "norm-softmax": 1}  # what the margins are held against comes first
_NOT_A_DIFFERENCE = {("train", "seed"), ("train", "device"), ("train", "out"), ("train", "threads")}


def _with_notes(group: Group, notes: tuple[str, ...]) -> Group:
    return replace(group, notes=group.notes + notes)


def _data(run: Run) -> str:
    return str(run.setting("data", "name", default="unnamed data"))


def _backbone(run: Run) -> str:
    return str(run.setting("backbone", "name", default="unknown"))


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

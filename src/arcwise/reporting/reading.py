"""Run folders and comparison folders, read into plain frozen objects. Everything that a report says comes from here."""

from __future__ import annotations

import datetime
import json
import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from arcwise.errors import RunError


@dataclass(frozen=True)
class Column:
    """One measured quantity: how it is called, in which unit it is stored, and which end of it is the good one."""

    key: str
    title: str
    unit: str
    better: str
    meaning: str = ""


@dataclass(frozen=True)
class HealthEvent:
    """Trouble that the health monitor named while the run was training."""

    step: int
    name: str
    message: str


@dataclass(frozen=True)
class Run:
    """A finished training run: its resolved configuration, what was measured, and what went wrong on the way."""

    folder: Path
    config: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    health: tuple[HealthEvent, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def loss(self) -> str:
        return str(self.setting("loss", "name", default=self.folder.name))

    @property
    def seed(self) -> int | None:
        seed = self.setting("train", "seed")
        return seed if isinstance(seed, int) else None

    @property
    def epochs(self) -> int | None:
        epochs = self.evaluation.get("epochs", self.setting("train", "epochs"))
        return int(epochs) if isinstance(epochs, int | float) else None

    @property
    def num_classes(self) -> int | None:
        confusion = self.evaluation.get("confusion")
        return len(self.classes) or (len(confusion) if isinstance(confusion, list) else None)

    def setting(self, section: str, key: str, default: Any = None) -> Any:
        """A value from config.toml, or `default` where the section or the key is not there."""
        table = self.config.get(section)
        return table.get(key, default) if isinstance(table, Mapping) else default

    def number(self, key: str) -> float | None:
        """A finite number from evaluation.json, or None."""
        value = self.evaluation.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        return None

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class names, from the evaluation or from beside the final embeddings; empty where there are none."""
        names = self.evaluation.get("classes")
        if not isinstance(names, list):
            try:
                names = json.loads(_final_metadata(self.folder).get("classes", "[]"))
            except json.JSONDecodeError:
                return ()
        return tuple(str(name) for name in names) if isinstance(names, list) else ()

    @cached_property
    def test_counts(self) -> tuple[int, ...]:
        """How many test samples each class has, counted in the final embeddings."""
        counts = Counter(_final_labels(self.folder))
        size = max(len(self.classes), *(label + 1 for label in counts)) if counts else 0
        return tuple(counts[label] for label in range(size))

    @property
    def finished(self) -> datetime.datetime:
        """When the run was finished (UTC): what its configuration says, else the age of its measurements."""
        stated = self.config.get("date")
        if isinstance(stated, datetime.datetime):
            return stated.astimezone(datetime.UTC)
        seconds = int((self.folder / "evaluation.json").stat().st_mtime)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


@dataclass(frozen=True)
class Comparison:
    """What `arcwise compare` left behind: runs of several losses and one value a seed for each column."""

    folder: Path
    facts: Mapping[str, Any]
    columns: tuple[Column, ...]
    runs: Mapping[str, tuple[Run, ...]]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    missing: tuple[str, ...]

    @property
    def losses(self) -> tuple[str, ...]:
        return tuple(self.values)


def is_run(folder: Path) -> bool:
    return (folder / "config.toml").is_file()


def is_comparison(folder: Path) -> bool:
    return (folder / "comparison.json").is_file()


def read_run(folder: Path) -> Run:
    """Read one run folder; a run that was not finished, or a file that cannot be read, is one plain sentence."""
    if not is_run(folder):
        raise RunError(
            f"{folder} is not a run: it has no config.toml. Give a folder that arcwise train or arcwise compare wrote."
        )
    config = _read_toml(folder / "config.toml")
    evaluation_path = folder / "evaluation.json"
    if not evaluation_path.is_file():
        raise RunError(
            f"{folder} has no evaluation.json, so its training was not finished. "
            f"Finish it with: arcwise train {folder} --resume"
        )
    evaluation = _read_json_object(evaluation_path)
    return Run(folder, config, evaluation, _read_health(folder / "metrics.jsonl"))


def read_comparison(folder: Path) -> Comparison:
    """Read a comparison folder and every run inside it that is still there."""
    path = folder / "comparison.json"
    facts = _read_json_object(path)
    columns = tuple(_column(entry, path) for entry in _part(facts, "columns", list, path))
    rows = _part(facts, "rows", dict, path)
    order = facts.get("losses")
    names = [name for name in order if name in rows] if isinstance(order, list) else []
    names += [name for name in rows if name not in names]
    if not names or not columns:
        raise RunError(f"{path} holds no measurement. Run the comparison again, or give single run folders.")
    runs: dict[str, tuple[Run, ...]] = {}
    values: dict[str, dict[str, tuple[float, ...]]] = {}
    missing: list[str] = []
    for name in names:
        row = rows[name]
        if not isinstance(row, dict) or not isinstance(row.get("values"), dict):
            raise RunError(f'{path} has no "values" for {name}, so it is damaged. Run the comparison again.')
        values[name] = {
            str(key): tuple(float(value) for value in listed if _is_number(value))
            for key, listed in row["values"].items()
            if isinstance(listed, list)
        }
        present = []
        for run_name in row.get("runs", []):
            try:
                present.append(read_run(folder / str(run_name)))
            except RunError as error:
                missing.append(str(error))
        runs[name] = tuple(present)
    return Comparison(folder, facts, columns, runs, values, tuple(missing))


def _column(entry: object, path: Path) -> Column:
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        raise RunError(f'{path} has a column without a "key", so it is damaged. Run the comparison again.')
    text = {name: str(entry.get(name) or "") for name in ("title", "unit", "better", "meaning")}
    text["title"] = text["title"] or entry["key"]
    return Column(key=entry["key"], **text)


def _part(facts: Mapping[str, Any], key: str, kind: type, path: Path) -> Any:
    part = facts.get(key)
    if not isinstance(part, kind):
        raise RunError(f'{path} has no usable "{key}", so it is damaged. Run the comparison again.')
    return part


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is not valid TOML ({error}). Restore it or train the run again.") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error


def _read_json_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are both ValueErrors
        raise RunError(
            f"{path} is not valid JSON ({error}). Restore it or run the command that wrote it again."
        ) from error
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} holds a {type(content).__name__} where an object belongs. Run its command again.")
    return content


def _read_health(path: Path) -> tuple[HealthEvent, ...]:
    if not path.is_file():
        return ()
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"health"' not in line:
            continue
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # a run that was killed may end in half a line
            continue
        if isinstance(entry, dict) and entry.get("kind") == "health":
            events.append(
                HealthEvent(int(entry.get("step", 0)), str(entry.get("name", "")), str(entry.get("message", "")))
            )
    return tuple(events)


def _final_metadata(folder: Path) -> Mapping[str, str]:
    from safetensors import SafetensorError, safe_open

    path = folder / "embeddings" / "final.safetensors"
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}
    except (OSError, SafetensorError):
        return {}


def _final_labels(folder: Path) -> list[int]:
    from safetensors import SafetensorError, safe_open

    path = folder / "embeddings" / "final.safetensors"
    try:
        with safe_open(path, framework="numpy") as file:
            labels = file.get_tensor("labels") if "labels" in file.keys() else ()  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError):
        return []
    return [int(label) for label in labels if int(label) >= 0]

"""What a run folder holds, read for drawing: anything may be missing, nothing is unpickled.

A run that was interrupted, or that an older version wrote, still draws what it has. Each thing that cannot be read becomes one
plain sentence for the reporter, and only a folder with nothing at all to draw is an error.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arcwise.errors import RunError
from arcwise.loss_titles import heading_of, title_of_settings
from arcwise.progress import Reporter

Array = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Snapshot:
    """Embeddings of the same test samples at one moment of training.

    `embeddings` (M, D) are raw, not normalised; `centres` (N, D) are the head's weights; rows whose label is −1 are gone.
    """

    epoch: float
    embeddings: Array
    labels: Labels
    centres: Array
    accuracy: float | None = None
    bias: Array | None = None
    predicted: Labels | None = None

    @property
    def dim(self) -> int:
        return int(self.embeddings.shape[1])


@dataclass(frozen=True)
class Run:
    """One run folder. The heavy parts are read when they are first asked for.

    Attributes:
        label: the loss's name in the comparison that the run belongs to.
        mean_accuracy: the mean over the seeds of that loss, where the comparison says it.
    """

    path: Path
    reporter: Reporter = field(default_factory=Reporter)
    label: str = ""
    mean_accuracy: float | None = None

    @cached_property
    def config(self) -> dict[str, Any]:
        try:
            return tomllib.loads((self.path / "config.toml").read_text(encoding="utf-8"))
        except FileNotFoundError:
            self.reporter.say(f"{self.path.name} has no config.toml, so figures name the folder instead of the loss.")
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            self.reporter.warn(
                f"{self.path.name}/config.toml cannot be read ({error}); figures name the folder instead."
            )
        return {}

    def setting(self, section: str, key: str) -> Any:
        """One value of config.toml, or None."""
        table = self.config.get(section)
        return table.get(key) if isinstance(table, dict) else None

    @property
    def data(self) -> str:
        return Path(str(self.setting("data", "name") or "data")).stem

    @property
    def loss(self) -> str:
        return str(self.setting("loss", "name") or "")

    @property
    def title(self) -> str:
        """The loss by its proper name; the folder's name where the config does not say."""
        return heading_of(self.label) or self._titled or self.path.name

    @cached_property
    def _titled(self) -> str:
        table = self.config.get("loss")
        return title_of_settings(table) if isinstance(table, dict) else ""

    @property
    def accuracy(self) -> float | None:
        """The test accuracy of the loss: of the comparison, else of this run."""
        if self.mean_accuracy is not None:
            return self.mean_accuracy
        accuracy = self.evaluation.get("accuracy")
        return float(accuracy) if isinstance(accuracy, (int, float)) else None

    @property
    def margin(self) -> dict[str, Any]:
        table = self.setting("loss", "margin")
        return dict(table) if isinstance(table, dict) else {}

    @cached_property
    def scale(self) -> float | None:
        """The scale s in use at the end, else the configured one where that is a number."""
        for row in reversed(self.steps):
            if isinstance(row.get("scale"), (int, float)) and row["scale"]:
                return float(row["scale"])
        configured = self.setting("loss", "scale")
        is_number = isinstance(configured, (int, float)) and not isinstance(configured, bool)
        return float(configured) if is_number else None

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; a line cut short by a kill is left out."""
        try:
            lines = (self.path / "metrics.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        rows = []
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                rows.append(row)
        return rows

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self._ordered("step", "step")

    @property
    def epochs(self) -> list[dict[str, Any]]:
        return self._ordered("epoch", "epoch")

    def _ordered(self, kind: str, key: str) -> list[dict[str, Any]]:
        """Rows of one kind in order. A resumed run repeats the steps after its checkpoint: the later line counts."""
        rows = {
            row[key]: row for row in self.metrics if row.get("kind") == kind and isinstance(row.get(key), (int, float))
        }
        return [rows[position] for position in sorted(rows)]

    @cached_property
    def evaluation(self) -> dict[str, Any]:
        try:
            content = json.loads((self.path / "evaluation.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self.reporter.warn(
                f"{self.path.name}/evaluation.json cannot be read ({error}), so its figures are left out."
            )
            return {}
        return content if isinstance(content, dict) else {}

    @cached_property
    def snapshot_paths(self) -> list[tuple[float, Path]]:
        """(epoch, file) of every snapshot, in the order of training."""
        found = []
        for path in (self.path / "embeddings").glob("epoch-*.safetensors"):
            try:
                found.append((float(path.name.removeprefix("epoch-").removesuffix(".safetensors")), path))
            except ValueError:
                continue
        return sorted(found)

    def snapshots(self, paths: list[tuple[float, Path]] | None = None) -> Iterator[Snapshot]:
        """Every readable snapshot, in the order of training."""
        for epoch, path in self.snapshot_paths if paths is None else paths:
            snapshot = self._read(path, epoch)
            if snapshot is not None:
                yield snapshot

    @cached_property
    def final(self) -> Snapshot | None:
        """The embeddings after training: final.safetensors, else the last snapshot that can be read."""
        path = self.path / "embeddings" / "final.safetensors"
        if path.exists():
            snapshot = self._read(path, float("inf"))
            if snapshot is not None:
                return snapshot
        for epoch, path in reversed(self.snapshot_paths):
            snapshot = self._read(path, epoch)
            if snapshot is not None:
                self.reporter.say(
                    f"{self.path.name} has no final embeddings: the snapshot of epoch {epoch:g} is drawn."
                )
                return snapshot
        return None

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Class names by index; the index itself where no name is known."""
        final = self.final
        labels_top = int(final.labels.max()) + 1 if final is not None and final.labels.size else 0
        num_classes = max(labels_top, len(final.centres) if final is not None else 0)
        names = self._class_names()
        return tuple(names[j] if j < len(names) else str(j) for j in range(num_classes))

    def _class_names(self) -> list[str]:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path / "embeddings" / "final.safetensors", framework="np") as file:
                names = json.loads((file.metadata() or {}).get("classes", "[]"))
        except (OSError, ValueError, SafetensorError):
            return []
        return [str(name) for name in names] if isinstance(names, list) else []

    def _read(self, path: Path, epoch: float) -> Snapshot | None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="np") as file:
                metadata = file.metadata() or {}
                tensors = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            return _snapshot(tensors, metadata, epoch)
        except (OSError, KeyError, ValueError, TypeError, SafetensorError) as error:
            self.reporter.warn(f"{self.path.name}/embeddings/{path.name} cannot be read ({error}), so it is left out.")
            return None


def open_run(path: Path, reporter: Reporter) -> Run:
    """The run at `path`, or an error that says what a run folder is."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(
            f"There is no run folder at {path}: give the folder that `arcwise train` wrote, such as runs/mnist-arcface."
        )
    return Run(path, reporter)


def open_comparison(folder: Path, reporter: Reporter) -> list[Run]:
    """The first seed's run of every loss, in the order of the comparison."""
    folder = Path(folder)
    path = folder / "comparison.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["rows"]
        names = {loss: str(rows[loss]["runs"][0]) for loss in content["losses"] if loss in rows}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunError(
            f"{folder} is not a comparison: {path.name} cannot be used ({type(error).__name__}: {error}). "
            "Give the folder that `arcwise compare` wrote."
        ) from None
    runs = []
    for loss, name in names.items():
        if (folder / name).is_dir():
            runs.append(Run(folder / name, reporter, loss, _mean_accuracy(rows[loss])))
        else:
            reporter.warn(f"The run {name} of {loss} is not in {folder}, so it is left out of the figures.")
    if not runs:
        raise RunError(
            f"None of the runs that {path} names is there: {', '.join(names.values())}. Run `arcwise compare` again."
        )
    return runs


def _mean_accuracy(row: Any) -> float | None:
    """The mean over the seeds in a row of comparison.json."""
    values = row.get("values")
    measured = values.get("accuracy") if isinstance(values, dict) else None
    numbers = [value for value in measured if isinstance(value, (int, float))] if isinstance(measured, list) else []
    return sum(numbers) / len(numbers) if numbers else None


def _snapshot(tensors: dict[str, Any], metadata: dict[str, str], epoch: float) -> Snapshot:
    embeddings = np.ascontiguousarray(tensors["embeddings"], dtype=np.float32)
    labels = np.ascontiguousarray(tensors["labels"], dtype=np.int64)
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1] or embeddings.shape[1] < 2:
        raise ValueError(f"embeddings {embeddings.shape} do not fit labels {labels.shape}")
    # Broken rows become zeros, which point nowhere, so that rows keep their place from snapshot to snapshot.
    embeddings = np.where(np.isfinite(embeddings).all(axis=1, keepdims=True), embeddings, np.float32(0))
    known = labels >= 0
    embeddings, labels = embeddings[known], labels[known]
    if not labels.size:
        raise ValueError("no sample has a label")
    centres = np.asarray(tensors.get("centres", np.zeros((0, 0))), dtype=np.float32)
    if centres.ndim != 2 or centres.shape[1] != embeddings.shape[1] or len(centres) <= labels.max():
        centres = class_means(unit(embeddings), labels)
    predicted = tensors.get("predicted")
    return Snapshot(
        epoch=epoch,
        embeddings=embeddings,
        labels=labels,
        centres=np.where(np.isfinite(centres), centres, np.float32(0)),
        accuracy=_number(metadata.get("test_accuracy")),
        bias=np.asarray(tensors["bias"], dtype=np.float32) if "bias" in tensors else None,
        predicted=None if predicted is None else np.asarray(predicted, dtype=np.int64)[known],
    )


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else float("nan")
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def unit(vectors_MD: Array) -> Array:
    """Each row divided by its length; a zero row stays zero."""
    length_M = np.linalg.norm(vectors_MD, axis=-1, keepdims=True)
    return np.asarray(vectors_MD / np.maximum(length_M, 1e-12), dtype=np.float32)


def class_means(vectors_MD: Array, labels_M: Labels) -> Array:
    """(N, D) plain means by class; a class without samples gives a zero row."""
    num_classes = int(labels_M.max()) + 1
    sums = np.zeros((num_classes, vectors_MD.shape[1]), dtype=np.float64)
    np.add.at(sums, labels_M, vectors_MD)
    counts = np.bincount(labels_M, minlength=num_classes)
    return np.asarray(sums / np.maximum(counts, 1)[:, None], dtype=np.float32)


def spread_sample(labels_M: Labels, limit: int) -> NDArray[np.int64]:
    """At most about `limit` row numbers, every class in its share, the same ones every time."""
    if len(labels_M) <= limit:
        return np.arange(len(labels_M))
    by_class = np.argsort(labels_M, kind="stable")
    chosen = by_class[np.linspace(0, len(by_class) - 1, limit).round().astype(np.int64)]
    return np.sort(np.unique(chosen))

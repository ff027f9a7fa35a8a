"""The same data, network, seeds and epochs under several losses, and one table of what came out.

runs/mnist-compare/comparison.json   and a run folder for each loss and seed
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from arcwise._version import __version__
from arcwise.atomic_write import write_file
from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.progress import Reporter
from arcwise.training.build import steps_per_epoch
from arcwise.training.columns import COLUMNS, Column, columns_of
from arcwise.training.config import Config
from arcwise.training.device import choose_device, describe
from arcwise.training.jobs import Job, check_jobs
from arcwise.training.loss_spec import LossSpec, as_specs
from arcwise.training.recipes import Wishes, resolve
from arcwise.training.run_all import run_all
from arcwise.training.run_folder import prepare_folder
from arcwise.training.session import RUNS, announce_run, load_any
from arcwise.training.training_data import training_data
from arcwise.training.tuned_settings import TunedSettings, read_tuned


@dataclass(frozen=True)
class Comparison:
    """What several losses reached on the same data.

    Attributes:
        path: the folder with comparison.json and the run folders.
        losses: their labels, in the order asked for.
        runs: for each loss the folders of its finished runs, one a seed.
        values: for each loss and column what these measured.
        stopped_by: the signal that stopped it early, or None.
        columns: what they are measured by.
        failed: the runs whose training came to nothing, by name, and why.
    """

    path: Path
    losses: tuple[str, ...]
    runs: Mapping[str, tuple[Path, ...]]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    stopped_by: str | None = None
    columns: tuple[Column, ...] = COLUMNS
    failed: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> list[list[str]]:
        """A header and a row for each loss: mean ± standard deviation over the seeds, the best of each column marked with *."""
        best = {column.key: self._best(column) for column in self.columns}
        rows = [["loss", *(column.title for column in self.columns)]]
        for loss in self.losses:
            cells = [
                format_value(self.values[loss][c.key], c.unit) + ("*" if loss in best[c.key] else "")
                for c in self.columns
            ]
            rows.append([loss, *cells])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The table's numbers."""
        return {
            "path": str(self.path),
            "losses": {
                loss: {
                    column.key: {
                        "mean": statistics.fmean(values),
                        "deviation": deviation(values),
                        "values": list(values),
                    }
                    for column in self.columns
                    if (values := self.values[loss][column.key])
                }
                for loss in self.losses
            },
            "failed": dict(self.failed),
        }

    def _best(self, column: Column) -> list[str]:
        shown = {loss: format_value(self.values[loss][column.key], column.unit).split(" ±")[0] for loss in self.losses}
        means = {loss: statistics.fmean(values) for loss in self.losses if (values := self.values[loss][column.key])}
        if not means:
            return []
        top = (max if column.better == "higher" else min)(means, key=lambda loss: means[loss])
        winners = [loss for loss in self.losses if shown[loss] == shown[top]]
        return winners if len(winners) < len(self.losses) else []


def compare(
    data: str | Path | Dataset,
    *,
    losses: str | Sequence[str | LossSpec] = "softmax,arcface",
    seeds: int = 1,
    first_seed: int = 0,
    dim: int | None = None,
    backbone: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    warmup_epochs: float | None = None,
    device: str = "auto",
    settings: Mapping[str, str] | None = None,
    tuned: Path | str | TunedSettings | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    jobs: int = 1,
    data_dir: Path | None = None,
    fallback: str | None = None,
    command: str = "",
    reporter: Reporter | None = None,
) -> Comparison:
    """Train every loss on the same data, network, seeds and epochs, each with a scale and margin that suit it.

    Args:
        data: as for `train`.
        losses: "softmax,arcface(m=0.3)", or "all".
        seeds: how many seeds, counted from `first_seed`.
        tuned: what `arcwise.tune` found for these losses: its tuned.toml.
        resume: go on with a comparison that was stopped, or begin it.
        jobs: how many runs at a time, each in a process of its own; they share the device.

    Returns:
        The table, and where the runs are.
    """
    reporter = reporter if reporter is not None else Reporter()
    specs = as_specs(losses)
    if seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {seeds}.")
    check_jobs(jobs)
    own = read_tuned(Path(tuned)) if isinstance(tuned, str | Path) else tuned
    dataset, reference = load_any(data, data_dir, fallback, reporter, settings, device=device)
    path = Path(out) if out is not None else RUNS / f"{dataset.name}-compare"
    prepare_folder(path, resume)
    configs = {
        (spec.label, seed): _resolved(
            dataset,
            Wishes(
                loss=spec,
                dim=dim,
                backbone=backbone,
                epochs=epochs,
                batch_size=batch_size,
                lr=lr,
                warmup_epochs=warmup_epochs,
                seed=seed,
                device=device,
                settings=settings or {},
                command=command,
                tuned=own,
            ),
            reference,
            reporter if seed == first_seed else Reporter(),
        )
        for seed in range(first_seed, first_seed + seeds)
        for spec in specs
    }
    first = next(iter(configs.values()))
    trained_on = training_data(first, dataset)
    for note in trained_on.notes:
        reporter.say(f"note: {note}")
    announce_run(first, dataset, reporter, runs=len(configs))
    names = {key: f"{key[0]}-seed{key[1]}" for key in configs}
    runs = [
        Job(names[key], path / names[key], config, config.train.epochs * steps_per_epoch(config, trained_on))
        for key, config in configs.items()
    ]
    ended = run_all(runs, dataset, jobs=jobs, reporter=reporter)
    measured, labels = ended.measured, tuple(spec.label for spec in specs)
    if ended.stopped_by is not None:
        return Comparison(path, labels, {}, {}, ended.stopped_by)
    if not measured:
        raise next(iter(ended.failed.values()))
    columns = columns_of(next(iter(measured.values())))
    by_loss = {
        loss: [name for (label, _), name in names.items() if label == loss and name in measured] for loss in labels
    }
    comparison = Comparison(
        path,
        labels,
        {loss: tuple(path / name for name in done) for loss, done in by_loss.items()},
        {loss: _values([measured[name] for name in done], columns) for loss, done in by_loss.items()},
        columns=columns,
        failed={name: str(error).removeprefix(f"{name}: ") for name, error in ended.failed.items()},
    )
    _write(comparison, dataset, first, [first_seed + k for k in range(seeds)], command)
    return comparison


def format_value(values: Sequence[float], unit: str) -> str:
    """`98.76 %`, or `98.76 ± 0.05 %` over several seeds; a dash where nothing could be measured."""
    if not values:
        return "–"
    factor = 100 if unit == "%" else 1
    digits = 1 if unit in ("°", "s") else 2
    mean = f"{factor * statistics.fmean(values):.{digits}f}"
    spread = f" ± {factor * deviation(values):.{digits}f}" if len(values) > 1 else ""
    gap = "" if unit in ("°", "") else " "
    return f"{mean}{spread}{gap}{unit}"


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _values(evaluations: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> dict[str, tuple[float, ...]]:
    return {
        column.key: tuple(float(e[column.key]) for e in evaluations if e.get(column.key) is not None)
        for column in columns
    }


def _resolved(data: Dataset, wishes: Wishes, reference: str, reporter: Reporter) -> Config:
    resolved = resolve(data, wishes, reference=reference)
    for reason in resolved.reasons:
        reporter.say(reason)
    return resolved.config


def _write(comparison: Comparison, data: Dataset, config: Config, seeds: Sequence[int], command: str) -> None:
    record = {
        "data": data.name,
        "dim": config.backbone.dim,
        "epochs": config.train.epochs,
        "seeds": list(seeds),
        "device": describe(choose_device(config.train.device)),
        "command": command,
        "arcwise": __version__,
        "torch": torch.__version__,
        "losses": [loss for loss in comparison.losses if comparison.runs[loss]],
        "failed": dict(comparison.failed),
        "columns": [asdict(column) for column in comparison.columns],
        "rows": {
            loss: {
                "runs": [run.name for run in comparison.runs[loss]],
                "values": {key: list(values) for key, values in comparison.values[loss].items()},
            }
            for loss in comparison.losses
            if comparison.runs[loss]
        },
    }
    write_file(comparison.path / "comparison.json", json.dumps(record, indent=1) + "\n")

"""What wrong labels cost, which losses stand them, and how many of them are found afterwards.

The same comparison is trained under several shares of shuffled labels; under one seed a smaller share is part of a larger one. The first
loss is trained twice more, without the samples that its own list of likely wrong labels names, and with the labels that it suggests.

runs/digits-label-noise/label_noise.json   and a comparison for each share, with a run folder for each loss and seed
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arcwise.atomic_write import write_file
from arcwise.errors import ConfigError, RunError, TrainingError
from arcwise.progress import Reporter
from arcwise.training import RunFolder, compare
from arcwise.training.comparison import Comparison, format_value
from arcwise.training.loss_spec import LossSpec, parse_losses

DATA = "digits"
LOSSES = "arcface,arcface(centers=3),arcface(filter=0.5),arcface(centers=3,filter=0.5),norm-softmax"
SHARES = (0.0, 0.1, 0.2, 0.4)
SEEDS = 3
RESULT = "label_noise.json"
# How the first loss is trained again with the list that its first training wrote: the setting, and what that is called.
AGAIN = {"leave_out": "again without those listed", "relabel": "again with the labels suggested"}
# By what a run is judged: each of these that its evaluation has.
SCORES = {
    "recall_at_1": "Recall@1 on unseen classes",
    "map_at_r": "MAP@R on unseen classes",
    "accuracy": "Accuracy, nearest class mean by angle",
}


@dataclass(frozen=True)
class Cell:
    """One loss under one share of wrong labels, a value for each seed.

    Attributes:
        scores: for each of `LabelNoise.scores` a share of one for each seed.
        found: how many of the shuffled labels are among as many first of the ranked list; empty without noise.
        average_precision: of the ranked list; empty without noise.
    """

    scores: Mapping[str, tuple[float, ...]]
    found: tuple[float, ...]
    average_precision: tuple[float, ...]


@dataclass(frozen=True)
class LabelNoise:
    """The whole measurement.

    Attributes:
        path: the folder with everything that was trained.
        data: the name of the data set.
        scores: by which keys of evaluation.json the runs are judged.
        shares: of the training labels that were shuffled, rising from 0.
        seeds: how many.
        cells: for each loss one for each share. What the others recover is counted against the first loss.
        stopped_by: the signal that stopped it early, or None.
    """

    path: Path
    data: str
    scores: tuple[str, ...]
    shares: tuple[float, ...]
    seeds: int
    cells: Mapping[str, tuple[Cell, ...]]
    stopped_by: str | None = None

    @property
    def reference(self) -> str:
        """The loss against which the others are counted."""
        return next(iter(self.cells))

    def recovered(self, loss: str, score: str, place: int) -> float | None:
        """The share of what the reference loses that this loss keeps; None where the reference loses nothing.

        1 is the reference's own score without noise, 0 its score under the noise at this place among the shares.
        """
        clean, noisy = (statistics.fmean(self.cells[self.reference][at].scores[score]) for at in (0, place))
        if clean <= noisy:
            return None
        return (statistics.fmean(self.cells[loss][place].scores[score]) - noisy) / (clean - noisy)

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "data": self.data,
            "scores": {score: SCORES[score] for score in self.scores},
            "shares": list(self.shares),
            "seeds": self.seeds,
            "reference": self.reference,
            "losses": {
                loss: [
                    {
                        "share": share,
                        "scores": {score: list(values) for score, values in cell.scores.items()},
                        "found": list(cell.found),
                        "average_precision": list(cell.average_precision),
                        "recovered": {
                            score: self.recovered(loss, score, place) if share and loss != self.reference else None
                            for score in self.scores
                        },
                    }
                    for place, (share, cell) in enumerate(zip(self.shares, cells, strict=True))
                ]
                for loss, cells in self.cells.items()
            },
        }

    def table(self) -> list[list[str]]:
        """Rows for a terminal: a share of wrong labels a column, and a block for each question."""
        noisy = range(1, len(self.shares))
        blank = [""] * len(self.shares)
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        rows = [[f"{self.data}, {seeds} · labels shuffled", *(f"{share:.0%}" for share in self.shares)]]
        for score in self.scores:
            rows.append([SCORES[score], *blank])
            for loss, cells in self.cells.items():
                rows.append([f"  {loss}", *(format_value(cell.scores[score], "%") for cell in cells)])
            others = list(self.cells)[1:]
            if others:
                rows.append([f"Recovered of what {self.reference} loses there", *blank])
            for loss in others:
                rows.append([f"  {loss}", "", *(_percent(self.recovered(loss, score, place)) for place in noisy)])
        rows.append(["Shuffled labels among as many first of the list", *blank])
        for loss, cells in self.cells.items():
            if any(cell.found for cell in cells):
                rows.append([f"  {loss}", *(format_value(cell.found, "%") if cell.found else "" for cell in cells)])
        return rows


def run(
    data: str = DATA,
    *,
    losses: str = LOSSES,
    shares: Sequence[float] = SHARES,
    seeds: int = SEEDS,
    first_seed: int = 0,
    jobs: int = 1,
    out: Path | None = None,
    resume: bool = False,
    again: bool = True,
    settings: Mapping[str, str] | None = None,
    reporter: Reporter | None = None,
    command: str = "",
    **training: Any,
) -> LabelNoise:
    """Train every loss under every share of wrong labels.

    Args:
        data: as for `arcwise.compare`.
        losses: the first is the one that the others are counted against.
        shares: of the labels to shuffle; 0 is always among them.
        out: by default runs/DATA-label-noise.
        again: train the first loss again without the samples that its first run listed as likely mislabelled, and with the labels
            that it suggested for them.
        training: further options of `arcwise.compare`.
    """
    reporter = reporter if reporter is not None else Reporter()
    rising = _rising(shares)
    if "data.label_noise" in (settings or {}):
        raise ConfigError("--set data.label_noise is what this benchmark varies itself. Use --shares 0,0.2 instead.")
    path = out if out is not None else Path("runs") / f"{Path(data).stem}-label-noise"
    if path.exists() and not resume and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} already exists and is never overwritten. Continue it with --resume, or write elsewhere with --out DIR."
        )
    specs = parse_losses(losses)
    seeds_of = range(first_seed, first_seed + seeds)

    def trained(share: float, folder: str, which: list[LossSpec], at: Sequence[int], **extra: str) -> Comparison:
        return compare(
            data,
            losses=which,
            seeds=len(at),
            first_seed=at[0],
            jobs=jobs,
            out=path / folder,
            resume=resume,
            settings={**(settings or {}), "data.label_noise": f"{share:g}", **extra},
            reporter=reporter,
            command=command,
            **training,
        )

    compared: list[dict[str, tuple[Path, ...]]] = []
    for share in rising:
        reporter.say(f"{share:.0%} of the labels shuffled")
        folder = f"shuffled-{share:g}"
        done = [trained(share, folder, specs, seeds_of)]
        runs = dict(done[0].runs)
        first = specs[0].label
        lists = [RunFolder.open(run_folder).mislabelled_file for run_folder in runs.get(first, ())] if again else []
        for (setting, words), (seed, file) in itertools.product(AGAIN.items(), zip(seeds_of, lists, strict=False)):
            if done[-1].stopped_by is None:
                place = f"{folder}-{setting.replace('_', '-')}-seed{seed}"
                done.append(trained(share, place, specs[:1], [seed], **{f"data.{setting}": str(file)}))
                name = f"{first}, {words}"
                runs[name] = (*runs.get(name, ()), *done[-1].runs.get(first, ()))
        if done[-1].stopped_by is not None:
            return LabelNoise(path, data, (), rising, seeds, {}, done[-1].stopped_by)
        for name, why in (item for comparison in done for item in comparison.failed.items()):
            raise TrainingError(f"{name} with {share:.0%} of the labels shuffled: {why}")
        compared.append(runs)
    result = _gathered(path, rising, seeds, compared)
    write_file(path / RESULT, json.dumps(result.to_dict(), indent=1) + "\n")
    return result


def _gathered(
    path: Path, shares: tuple[float, ...], seeds: int, compared: Sequence[Mapping[str, tuple[Path, ...]]]
) -> LabelNoise:
    evaluations = {loss: [[_evaluation(folder) for folder in runs[loss]] for runs in compared] for loss in compared[0]}
    first = next(iter(evaluations.values()))[0][0]
    scores = tuple(key for key in SCORES if first.get(key) is not None)
    cells = {
        loss: tuple(
            Cell(
                {score: _values(runs, score) for score in scores},
                () if _is_again(loss) else _values(runs, "shuffled_found"),
                () if _is_again(loss) else _values(runs, "shuffled_average_precision"),
            )
            for runs in by_share
        )
        for loss, by_share in evaluations.items()
    }
    return LabelNoise(path, str(first["data"]), scores, shares, seeds, cells)


def _is_again(loss: str) -> bool:
    """Whether there is nothing left to find: a list was heeded."""
    return loss.endswith(tuple(AGAIN.values()))


def _evaluation(folder: Path) -> dict[str, Any]:
    evaluation = RunFolder.open(folder).evaluation()
    assert evaluation is not None
    return evaluation


def _values(evaluations: Sequence[Mapping[str, Any]], key: str) -> tuple[float, ...]:
    return tuple(float(e[key]) for e in evaluations if e.get(key) is not None)


def _rising(shares: Sequence[float]) -> tuple[float, ...]:
    for share in shares:
        if not 0 <= share < 1:
            raise ConfigError(f"shares of shuffled labels must be in [0, 1); got {share:g}. 0.2 is a fifth.")
    if not any(shares):
        raise ConfigError("there is no share of labels to shuffle. Give at least one above 0, as in --shares 0.2.")
    return tuple(sorted({0.0, *(float(share) for share in shares)}))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"

"""Tune several losses on held-out training data, each with the same number of trials.

runs/omniglot-tune/tuning.json   tuned.toml   and, while they are going on, trials/
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arcwise._version import __version__
from arcwise.atomic_write import remove_partial_files, write_file
from arcwise.data import Dataset
from arcwise.errors import ConfigError, RunError, TrainingError
from arcwise.progress import Reporter
from arcwise.training.build import steps_per_epoch
from arcwise.training.config import Config
from arcwise.training.interrupt import StopRequest, stop_on_signals
from arcwise.training.jobs import Job, Outcome, begun_run, check_jobs, run_in_turn
from arcwise.training.jobs_progress import Board
from arcwise.training.loss_spec import LossSpec, as_specs
from arcwise.training.recipes import Wishes, resolve
from arcwise.training.run_folder import prepare_folder
from arcwise.training.session import RUNS, announce_run, load_any
from arcwise.training.side_by_side import run_side_by_side
from arcwise.training.training_data import training_data
from arcwise.training.tuned_settings import MEASURES, TunedSettings, to_toml
from arcwise.training.tuning.held_out import HeldOut, hold_out
from arcwise.training.tuning.loss_search import LossSearch, Trial
from arcwise.training.tuning.record import Record
from arcwise.training.tuning.result import Tuning, in_words
from arcwise.training.tuning.scoring import score_trial
from arcwise.training.tuning.space import space_of


def tune(
    data: str | Path | Dataset,
    *,
    losses: str | Sequence[str | LossSpec] = "all",
    trials: int = 8,
    jobs: int = 1,
    dim: int | None = None,
    backbone: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    warmup_epochs: float | None = None,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    data_dir: Path | None = None,
    fallback: str | None = None,
    command: str = "",
    reporter: Reporter | None = None,
) -> Tuning:
    """Find for each loss the scale and margin that score best on held-out training data. The test part is never looked at.

    Args:
        data: as for `train`.
        losses: "softmax,arcface", or "all"; what is given in brackets, as in "arcface(m=0.3)", stays as it is.
        trials: how many settings of each loss are tried, the default one among them.
        jobs: how many at a time, each in a process of its own; they share the device.
        seed: decides what is held out, what is tried, and everything random in training.
        out: the folder; by default runs/DATA-tune.
        resume: go on with a tuning that was stopped, or begin it. Losses may be added.

    Returns:
        The best settings, and all trials. `tuning.file` is what `train` and `compare` take as `tuned`.
    """
    reporter = reporter if reporter is not None else Reporter()
    specs = as_specs(losses)
    if trials < 1:
        raise ConfigError(f"trials must be at least 1, the default setting; got {trials}.")
    check_jobs(jobs)
    held_out, reference = _held_out(data, data_dir, fallback, reporter, settings, device, seed)
    path = Path(out) if out is not None else RUNS / f"{held_out.data.name}-tune"
    wishes = Wishes(
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
    )
    searches = [_search(spec, wishes, held_out.data, reference, trials) for spec in specs]
    prepare_folder(path, resume)
    first = searches[0].base
    record = Record(path, _facts(held_out, first, trials), command)
    if resume:
        remove_partial_files(path)
        record.read_into(searches)
    reporter.say(f"held out: {held_out.told}")
    left = sum(trials - len(search.finished) for search in searches)
    if left:
        announce_run(first, training_data(first, held_out.data), reporter, runs=left)
    record.write(searches)
    tuning = _Tuner(path, searches, held_out, record, jobs, reporter)
    stopped_by = tuning.run() if left else None
    done = {search.label: tuple(trial for _, trial in sorted(search.finished.items())) for search in searches}
    if stopped_by is not None:
        return Tuning(path, None, done, stopped_by)
    result = TunedSettings(
        data=held_out.data.name,
        dim=first.backbone.dim,
        backbone=first.backbone.name,
        epochs=first.train.epochs,
        batch_size=first.train.batch_size,
        trials=trials,
        seed=seed,
        measured=held_out.measured,
        command=command,
        arcwise=__version__,
        losses={search.label: search.result() for search in searches},
    )
    write_file(path / "tuned.toml", to_toml(result))
    shutil.rmtree(path / "trials", ignore_errors=True)
    return Tuning(path, result, done)


def _held_out(
    data: str | Path | Dataset,
    data_dir: Path | None,
    fallback: str | None,
    reporter: Reporter,
    settings: Mapping[str, str] | None,
    device: str,
    seed: int,
) -> tuple[HeldOut, str]:
    """All that tuning gets to see of the data. Nothing beyond this function holds a test sample."""
    dataset, reference = load_any(data, data_dir, fallback, reporter, settings, device=device)
    for note in dataset.notes:
        reporter.say(f"note: {note}")
    return hold_out(dataset, seed), reference


def _search(spec: LossSpec, wishes: Wishes, data: Dataset, reference: str, trials: int) -> LossSearch:
    config = resolve(data, replace(wishes, loss=spec, use_shipped=False), reference=reference).config
    # Nobody looks at the pictures of a trial.
    base = replace(config, train=replace(config.train, snapshot_images=0))
    return LossSearch(spec.label, base, space_of(base, spec), trials, wishes.seed)


def _facts(held_out: HeldOut, config: Config, trials: int) -> dict[str, Any]:
    data = held_out.data
    return {
        "data": data.name,
        "dim": config.backbone.dim,
        "backbone": config.backbone.name,
        "epochs": config.train.epochs,
        "seed": config.train.seed,
        "trials": trials,
        "measured": held_out.measured,
        "held_out": held_out.told,
        "num_train": len(data.train),
        "num_held_out": len(data.test),
    }


class _Tuner:
    """Hands out trials, and writes down what they scored."""

    def __init__(
        self,
        path: Path,
        searches: Sequence[LossSearch],
        held_out: HeldOut,
        record: Record,
        jobs: int,
        reporter: Reporter,
    ) -> None:
        self._folder, self._searches, self._data, self._record = path / "trials", searches, held_out.data, record
        self._measured, self._reporter = held_out.measured, reporter
        self._left = sum(search.trials - len(search.finished) for search in searches)
        self._jobs = min(jobs, self._left)
        first = searches[0].base
        self._steps = first.train.epochs * steps_per_epoch(first, training_data(first, held_out.data))
        self._running: dict[str, tuple[LossSearch, int]] = {}

    def run(self) -> str | None:
        """All trials that are left; returns the signal that stopped it early."""
        title = "tuning" if self._jobs == 1 else f"tuning, {self._jobs} trials at a time"
        total = sum(search.trials for search in self._searches)
        with stop_on_signals() as stop, self._reporter.stage(title, total=self._left * self._steps) as stage:
            self._board = Board(stage, "trials", total, total - self._left)
            self._remark()
            if self._jobs == 1:
                self._in_turn(stop)
            else:
                run_side_by_side(
                    self._take,
                    self._finish,
                    self._data,
                    jobs=self._jobs,
                    board=self._board,
                    # A trial at the end of a range may well have troubles; they are told by its score.
                    reporter=Reporter(),
                    stop=stop,
                )
        return stop.signal_name

    def _in_turn(self, stop: StopRequest) -> None:
        def take() -> Job | None:
            job = self._take()
            if job is not None:
                self._board.began(job.name)
            return job

        def finish(job: Job, outcome: Outcome) -> None:
            self._board.ended(job.name, job.steps)
            self._finish(job, outcome)

        run_in_turn(take, finish, self._data, self._board.reporter_of, stop)

    def _take(self) -> Job | None:
        """The next trial that can begin, of the earliest round, so that all losses end at about the same time."""
        ready: list[tuple[int, int, int]] = []
        for place, search in enumerate(self._searches):
            running = {number for of, number in self._running.values() if of is search}
            number = search.next_trial(running)
            if number is not None:
                ready.append((search.round_of(number), place, number))
        if not ready:
            return None
        _, place, number = min(ready)
        search = self._searches[place]
        name = f"{search.label}-trial{number}"
        job = Job(name, self._folder / name, search.config(number), self._steps, score_trial)
        self._clear_foreign(job)
        self._running[name] = (search, number)
        return job

    def _clear_foreign(self, job: Job) -> None:
        """Make way where an earlier version left a trial of another setting under this name."""
        try:
            begun_run(job.path, job.config)
        except RunError:
            shutil.rmtree(job.path)

    def _finish(self, job: Job, outcome: Outcome) -> None:
        search, number = self._running.pop(job.name)
        if outcome.error is not None and not isinstance(outcome.error, TrainingError):
            raise outcome.error
        score = outcome.evaluation["score"] if outcome.evaluation is not None else 0.0
        trouble = str(outcome.error) if outcome.error is not None else ""
        setting = search.setting(number)
        search.finished[number] = Trial(number, setting, score, round(outcome.seconds, 3), trouble)
        self._record.write(self._searches)
        shutil.rmtree(job.path, ignore_errors=True)
        self._remark()
        if trouble:
            self._reporter.say(f"{job.name} ({in_words(setting)}) came to nothing: {trouble}")

    def _remark(self) -> None:
        best = [(search.best.score, search.label) for search in self._searches if search.best is not None]
        if best:
            score, label = max(best)
            self._board.remark = f"best {MEASURES[self._measured].split(' on ')[0]} {100 * score:.2f} % {label}"

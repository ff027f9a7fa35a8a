from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import arcwise
from arcwise.data import Dataset, Split
from arcwise.errors import ConfigError, RunError
from arcwise.progress import Reporter, Stage
from arcwise.training import Tuning
from arcwise.training.tuned_settings import read_tuned

OPTIONS: dict[str, Any] = {"losses": "softmax,arcface", "trials": 4, "dim": 3, "epochs": 2, "batch_size": 16}


def found(tuning: Tuning) -> Any:
    """Everything but how long it took and where it lies."""
    trials = {
        label: [(t.number, dict(t.parameters), t.score, t.trouble) for t in done]
        for label, done in tuning.trials.items()
    }
    return trials, tuning.settings.losses if tuning.settings is not None else None


class InterruptAfter(Reporter):
    """Ctrl-C once so many steps were taken."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        yield _Counting(title, total, self._steps)


class _Counting(Stage):
    def __init__(self, title: str, total: int | None, steps: int) -> None:
        super().__init__(title, total)
        self._limit = steps

    def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
        super().update(text, done=done, total=total)
        if self.title.startswith("tuning") and self.done >= self._limit >= 0:
            self._limit = -1
            signal.raise_signal(signal.SIGINT)


def test_every_loss_gets_the_same_number_of_trials_and_the_best_is_kept(features: Dataset, tmp_path: Path) -> None:
    tuning = arcwise.tune(features, out=tmp_path / "tune", **OPTIONS)
    assert tuning.settings is not None
    for label in ("softmax", "arcface"):
        trials, best = tuning.trials[label], tuning.settings.losses[label]
        assert [trial.number for trial in trials] == [0, 1, 2, 3]
        assert best.score == max(trial.score for trial in trials)
        assert best.default_score == trials[0].score
    assert read_tuned(tuning.file).losses == tuning.settings.losses
    header, *rows = tuning.table()
    assert header == ["loss", "best", "default", "failed", "setting"]
    assert [row[0] for row in rows] == ["softmax", "arcface"]
    assert sorted(path.name for path in (tmp_path / "tune").iterdir()) == ["tuned.toml", "tuning.json"]
    record = json.loads((tmp_path / "tune" / "tuning.json").read_text())
    assert len(record["losses"]["arcface"]["trials"]) == 4
    assert (
        json.loads(json.dumps(tuning.to_dict()))["losses"]["arcface"]["score"]
        == tuning.settings.losses["arcface"].score
    )


@pytest.mark.parametrize("which", ["features", "unseen"])
def test_no_test_sample_has_any_say(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data: Dataset = request.getfixturevalue(which)
    test = data.test
    poisoned = replace(data, test=Split(torch.full_like(test.images, torch.nan), torch.zeros_like(test.labels)))
    clean = arcwise.tune(data, out=tmp_path / "clean", **OPTIONS)
    assert found(arcwise.tune(poisoned, out=tmp_path / "poisoned", **OPTIONS)) == found(clean)


def test_unseen_classes_are_scored_by_map_at_r(unseen: Dataset, tmp_path: Path) -> None:
    tuning = arcwise.tune(unseen, out=tmp_path / "tune", **OPTIONS)
    assert tuning.settings is not None
    assert tuning.settings.measured == "map_at_r"
    assert tuning.measured == "MAP@R on held-out classes"
    assert all(0 < trial.score <= 1 for trials in tuning.trials.values() for trial in trials)


def test_several_at_a_time_find_the_same(features: Dataset, tmp_path: Path) -> None:
    one = arcwise.tune(features, out=tmp_path / "one", **OPTIONS)
    assert found(arcwise.tune(features, out=tmp_path / "two", jobs=2, **OPTIONS)) == found(one)


@pytest.mark.parametrize("steps", [0, 3, 20, 45])
def test_a_stopped_tuning_goes_on_to_the_same_result_and_repeats_nothing(
    steps: int, features: Dataset, tmp_path: Path
) -> None:
    whole = arcwise.tune(features, out=tmp_path / "whole", **OPTIONS)
    stopped = arcwise.tune(features, out=tmp_path / "tune", reporter=InterruptAfter(steps), **OPTIONS)
    assert (stopped.stopped_by, stopped.settings) == ("SIGINT", None)
    assert not stopped.file.exists()
    assert sum(len(trials) for trials in stopped.trials.values()) < 8
    done = arcwise.tune(features, out=tmp_path / "tune", resume=True, **OPTIONS)
    assert found(done) == found(whole)
    for label, trials in stopped.trials.items():
        assert done.trials[label][: len(trials)] == trials


def test_a_finished_tuning_is_read_and_nothing_is_trained(features: Dataset, tmp_path: Path) -> None:
    first = arcwise.tune(features, out=tmp_path / "tune", **OPTIONS)
    again = arcwise.tune(features, out=tmp_path / "tune", resume=True, **OPTIONS)
    assert again.trials == first.trials


def test_losses_can_be_added_and_those_that_were_tuned_before_are_kept(features: Dataset, tmp_path: Path) -> None:
    first = arcwise.tune(features, out=tmp_path / "tune", **{**OPTIONS, "losses": "arcface"})
    more = arcwise.tune(features, out=tmp_path / "tune", resume=True, **{**OPTIONS, "losses": "cosface"})
    both = arcwise.tune(features, out=tmp_path / "tune", resume=True, **{**OPTIONS, "losses": "arcface,cosface"})
    assert both.trials == {**first.trials, **more.trials}


def test_training_that_comes_to_nothing_is_a_trial_with_the_score_0(features: Dataset, tmp_path: Path) -> None:
    settings = {"train.lr": "1e30", "train.clip_norm": "0"}
    tuning = arcwise.tune(features, out=tmp_path / "tune", settings=settings, **OPTIONS)
    for trials in tuning.trials.values():
        assert len(trials) == 4
        assert all(trial.score == 0 and trial.trouble for trial in trials)
    assert [row[3] for row in tuning.table()[1:]] == ["4 of 4", "4 of 4"]


def test_the_default_setting_is_not_what_the_package_ships(
    features: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = arcwise.tune(features, out=tmp_path / "first", **OPTIONS)
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "blobs.toml").write_text(first.file.read_text())
    monkeypatch.setattr("arcwise.training.tuned_settings.SHIPPED", tmp_path / "shipped")
    assert found(arcwise.tune(features, out=tmp_path / "again", **OPTIONS)) == found(first)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trials": 5}, r"was begun with trials 4 and goes on so; got 5"),
        ({"epochs": 3}, r"was begun with epochs 2 and goes on so; got 3"),
        ({"seed": 1}, r"was begun with seed 0 and goes on so; got 1"),
        ({"lr": 0.01}, r"was begun with other settings for softmax than this command's; see tuning\.json"),
    ],
)
def test_a_tuning_is_never_gone_on_with_under_other_settings(
    changed: dict[str, Any], message: str, features: Dataset, tmp_path: Path
) -> None:
    arcwise.tune(features, out=tmp_path / "tune", reporter=InterruptAfter(3), **OPTIONS)
    before = (tmp_path / "tune" / "tuning.json").read_bytes()
    with pytest.raises(RunError, match=message):
        arcwise.tune(features, out=tmp_path / "tune", resume=True, **{**OPTIONS, **changed})
    assert (tmp_path / "tune" / "tuning.json").read_bytes() == before


def test_a_folder_that_is_in_the_way_is_left_alone(features: Dataset, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"photo")
    with pytest.raises(RunError, match=r"already exists and is never overwritten"):
        arcwise.tune(features, out=tmp_path, **OPTIONS)
    with pytest.raises(RunError, match=r"holds no tuning\.json to go on with"):
        arcwise.tune(features, out=tmp_path, resume=True, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.png"]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"losses": {"arcface": {"trials": [{}]}}}'])
def test_a_damaged_record_is_named(damage: str, features: Dataset, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(damage)
    with pytest.raises(RunError, match=r"tuning\.json is damaged"):
        arcwise.tune(features, out=tmp_path, resume=True, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be at least 1, the default setting; got 0"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"losses": "arcfase"}, "Did you mean arcface"),
        ({"backbone": "mpl"}, "Did you mean mlp"),
    ],
)
def test_bad_wishes_are_named_and_nothing_is_left(
    options: dict[str, Any], message: str, features: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        arcwise.tune(features, out=tmp_path / "tune", **{**OPTIONS, **options})
    assert not (tmp_path / "tune").exists() or not any((tmp_path / "tune").iterdir())

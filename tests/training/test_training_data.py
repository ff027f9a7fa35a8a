from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.progress import Reporter, Stage
from arcwise.training import compare, load_run, train
from arcwise.training.config import Config, from_toml, to_toml
from arcwise.training.training_data import training_data

MakeConfig = Callable[..., Config]
NOISE = {"data.label_noise": "0.25", "train.snapshot_images": "0"}


class Listener(Reporter):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str = "") -> None:
        self.said.append(text)


def noisy(config: Config, share: float = 0.25, seed: int = 0) -> Config:
    return replace(config, data=replace(config.data, label_noise=share), train=replace(config.train, seed=seed))


def test_the_noise_follows_from_the_config_alone(small_digits: Dataset, make_config: MakeConfig) -> None:
    config = noisy(make_config())
    first, again = training_data(config, small_digits), training_data(config, small_digits)
    assert torch.equal(first.train.labels, again.train.labels)
    assert int((first.train.labels != small_digits.train.labels).sum()) == 60
    other = training_data(noisy(make_config(), seed=1), small_digits)
    assert not torch.equal(first.train.labels, other.train.labels)


def test_a_config_without_noise_leaves_the_data_as_it_is(small_digits: Dataset, make_config: MakeConfig) -> None:
    assert training_data(make_config(), small_digits) is small_digits


def test_the_share_is_kept_in_the_config(make_config: MakeConfig) -> None:
    config = noisy(make_config(), 0.2)
    assert from_toml(to_toml(config)) == config


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan")])
def test_a_config_with_a_share_that_is_none_is_refused(share: float, make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match=r"data.label_noise must be in \[0, 1\), a share of the training labels; got"):
        noisy(make_config(), share)


def short(data: Dataset, path: Path, **keywords: Any) -> Any:
    return train(
        data, loss="arcface", dim=3, epochs=1, batch_size=32, device="cpu", settings=NOISE, out=path, **keywords
    )


def test_the_announcement_says_what_was_done_to_the_labels(small_digits: Dataset, tmp_path: Path) -> None:
    note = "60 of 240 training labels were replaced by another class on purpose (data.label_noise = 0.25)."
    alone, together = Listener(), Listener()
    run = short(small_digits, tmp_path / "run", reporter=alone)
    assert f"note: {note}" in alone.said
    assert note in run.evaluation["notes"]
    compare(
        small_digits,
        losses="arcface",
        dim=3,
        epochs=1,
        batch_size=32,
        device="cpu",
        settings=NOISE,
        out=tmp_path / "compared",
        reporter=together,
    )
    assert together.said.count(f"note: {note}") == 1


def test_a_run_under_noise_trains_on_the_wrong_labels_and_can_be_opened(small_digits: Dataset, tmp_path: Path) -> None:
    run = short(small_digits, tmp_path / "noisy")
    clean = train(
        small_digits,
        loss="arcface",
        dim=3,
        epochs=1,
        batch_size=32,
        device="cpu",
        settings={"train.snapshot_images": "0"},
        out=tmp_path / "clean",
    )
    assert not torch.equal(run.model.head.weight, clean.model.head.weight)
    opened = load_run(run.path, data=small_digits)
    assert torch.equal(opened.model.head.weight, run.model.head.weight)


class InterruptAt(Reporter):
    """Asks for a stop as Ctrl-C would, once so many steps of training are done."""

    def __init__(self, step: int) -> None:
        self.step = step

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        yield Watched(title, total, self.step)


class Watched(Stage):
    def __init__(self, title: str, total: int | None, step: int) -> None:
        super().__init__(title, total)
        self.step: int | None = step

    def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
        if self.title.startswith("training") and done == self.step:
            self.step = None  # a second Ctrl-C would stop at once
            signal.raise_signal(signal.SIGINT)


def test_a_run_under_noise_that_was_stopped_ends_like_one_that_was_not(small_digits: Dataset, tmp_path: Path) -> None:
    whole = short(small_digits, tmp_path / "whole")
    stopped = short(small_digits, tmp_path / "stopped", reporter=InterruptAt(3))
    assert stopped.stopped_by == "SIGINT"
    resumed = train(small_digits, out=tmp_path / "stopped", resume=True)
    assert resumed.stopped_by is None
    for name, value in whole.model.head.state_dict().items():
        assert torch.equal(value, resumed.model.head.state_dict()[name])
    for name, value in whole.model.backbone.state_dict().items():
        assert torch.equal(value, resumed.model.backbone.state_dict()[name])

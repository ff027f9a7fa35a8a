"""Small data and short runs, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from arcwise import data
from arcwise.data import Dataset, Split
from arcwise.training import RunFolder
from arcwise.training.config import BackboneConfig, Config, DataConfig, LossConfig, TrainConfig

MakeConfig = Callable[..., Config]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests run side by side; more threads would only get into each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_digits() -> Dataset:
    """240 + 60 real pictures of digits."""
    pytest.importorskip("sklearn")
    whole = data.load("digits")
    train, test = whole.train, whole.test
    return replace(
        whole, train=Split(train.images[:240], train.labels[:240]), test=Split(test.images[:60], test.labels[:60])
    )


@pytest.fixture
def make_config() -> MakeConfig:
    """A config for the small digits: 7 steps an epoch, 2 epochs; keyword arguments go to [train]."""

    def make(*, augment: str = "none", dim: int = 3, loss: LossConfig | None = None, **train: Any) -> Config:
        return Config(
            DataConfig("digits", image_size=8, augment=augment),
            BackboneConfig("vgg8", dim),
            loss if loss is not None else LossConfig("arcface", scale=10.0, margin={"m": 0.3}),
            TrainConfig(**{"epochs": 2, "batch_size": 32, "checkpoint_seconds": 1000.0, **train}),
        )

    return make


@pytest.fixture
def folder(tmp_path: Path, make_config: MakeConfig) -> RunFolder:
    """A new run folder."""
    return RunFolder.create(tmp_path / "run", make_config())

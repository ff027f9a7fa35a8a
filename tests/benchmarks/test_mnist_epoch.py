from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from arcwise.benchmarks import mnist_epoch
from arcwise.benchmarks.mnist_epoch import MnistEpoch
from arcwise.data import Dataset, Split
from arcwise.errors import DataError
from arcwise.progress import Reporter
from arcwise.training.config import BackboneConfig, Config, DataConfig, LossConfig, TrainConfig

RESULT = MnistEpoch(2.0, (1.9, 2.2), 2.5, 10.0, (9.0, 12.0), 5.0, 256, "bf16", "a CPU, 2 threads", "2.11", 60_000)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def pictures() -> Dataset:
    """As many random pictures of MNIST's size as make three steps."""
    split = Split(torch.randint(0, 256, (110, 1, 28, 28), dtype=torch.uint8), torch.arange(110) % 10)
    return Dataset("mnist", "image", split, split, tuple("0123456789"), "a test", "none")


def config(augment: str) -> Config:
    return Config(
        DataConfig("mnist", 28, augment=augment),
        BackboneConfig("vgg8", 3),
        LossConfig("arcface", 12.0, margin={"m": 0.5}),
        TrainConfig(1, batch_size=32, snapshot_images=0),
    )


@pytest.mark.parametrize("augment", ["none", "affine"])
def test_both_sides_train_an_epoch_on_the_same_pictures(augment: str, pictures: Dataset) -> None:
    images = pictures.train.images.clone()
    assert mnist_epoch._our_epoch(pictures, config(augment)) > 0
    assert mnist_epoch._plain_epoch(pictures, config(augment)) > 0
    assert torch.equal(pictures.train.images, images)


def test_the_table_names_both_sides_and_their_ratio() -> None:
    header, plain, ours, augmented = RESULT.table()
    assert "60,000 images" in header[0]
    assert plain[1:] == ["10.00 s", "9.00 – 12.00 s", "1.00"]
    assert ours[1:] == ["2.00 s", "1.90 – 2.20 s", "5.00"]
    assert augmented[1::2] == ["2.50 s", "4.00"]
    assert json.loads(json.dumps(RESULT.to_dict()))["ratio"] == 5.0


@pytest.mark.slow
@pytest.mark.network
def test_the_whole_benchmark_finds_arcwise_faster(tmp_path: Path) -> None:
    try:
        result = mnist_epoch.run(repeat=1, reporter=Reporter())
    except DataError as error:
        pytest.skip(f"MNIST cannot be had here: {error}")
    assert result.ratio == pytest.approx(result.plain_seconds / result.arcwise_seconds)
    assert result.ratio > 1

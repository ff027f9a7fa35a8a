"""One training epoch of VGG8 with 3-D ArcFace on MNIST: arcwise against a plain loop over the same network.

The plain loop is what a tutorial would write: a DataLoader, batches of 32, float32, contiguous, the same network layer by layer and the
same loss. Both train on the same 60,000 pictures; they take turns, each epoch in a process of its own, and the median of each counts.
Ours is the time of the training steps as they are in a run, with metrics and health monitor; neither side's time has a test in it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from arcwise import backbones, data
from arcwise.data import Dataset
from arcwise.progress import Reporter
from arcwise.training.build import build_model
from arcwise.training.config import Config
from arcwise.training.device import describe
from arcwise.training.freed_memory import keep_freed_memory
from arcwise.training.interrupt import StopRequest
from arcwise.training.loop import Trainer
from arcwise.training.loss_spec import LossSpec
from arcwise.training.recipes import Wishes, resolve
from arcwise.training.run_folder import RunFolder

PLAIN_BATCH = 32
SIDES = {"plain": "the plain loop", "bare": "arcwise without augmentation", "augmented": "arcwise as it trains"}


@dataclass(frozen=True)
class MnistEpoch:
    """Median seconds of an epoch, the spread, and how many times faster arcwise is."""

    arcwise_seconds: float
    arcwise_spread: tuple[float, float]
    augmented_seconds: float
    plain_seconds: float
    plain_spread: tuple[float, float]
    ratio: float
    batch_size: int
    precision: str
    device: str
    torch: str
    images: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> list[list[str]]:
        """Rows for a terminal."""
        low, high = self.arcwise_spread
        plain_low, plain_high = self.plain_spread
        return [
            [f"one epoch of {self.images:,} images · {self.device} · torch {self.torch}", "median", "spread", "ratio"],
            [
                f"plain loop, batch {PLAIN_BATCH}, fp32, contiguous",
                f"{self.plain_seconds:.2f} s",
                f"{plain_low:.2f} – {plain_high:.2f} s",
                "1.00",
            ],
            [
                f"arcwise, batch {self.batch_size}, {self.precision}, channels last",
                f"{self.arcwise_seconds:.2f} s",
                f"{low:.2f} – {high:.2f} s",
                f"{self.ratio:.2f}",
            ],
            [
                "the same with augmentation",
                f"{self.augmented_seconds:.2f} s",
                "",
                f"{self.plain_seconds / self.augmented_seconds:.2f}",
            ],
        ]


def _setting(reporter: Reporter) -> tuple[Dataset, Config]:
    dataset = data.load("mnist", reporter=reporter)
    wishes = Wishes(
        loss=LossSpec("arcface"),
        dim=3,
        backbone="vgg8",
        epochs=1,
        device="cpu",
        settings={"train.snapshot_images": "0"},
    )
    return dataset, resolve(dataset, wishes, reference="mnist").config


def run(*, repeat: int, reporter: Reporter) -> MnistEpoch:
    """Time both, in turns."""
    dataset, config = _setting(reporter)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    with reporter.stage("timing epochs", total=len(SIDES) * repeat) as stage:
        for _ in range(repeat):
            for side, words in SIDES.items():
                stage.update(words)
                command = [sys.executable, "-m", "arcwise.benchmarks.mnist_epoch", side]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                seconds[side].append(float(done.stdout))
                stage.advance()
    plain, ours, augmented = seconds.values()
    median, plain_median = statistics.median(ours), statistics.median(plain)
    return MnistEpoch(
        arcwise_seconds=median,
        arcwise_spread=(min(ours), max(ours)),
        augmented_seconds=statistics.median(augmented),
        plain_seconds=plain_median,
        plain_spread=(min(plain), max(plain)),
        ratio=plain_median / median,
        batch_size=config.train.batch_size,
        precision=config.train.precision,
        device=describe(torch.device("cpu")),
        torch=torch.__version__,
        images=len(dataset.train.labels),
    )


def _our_epoch(dataset: Dataset, config: Config) -> float:
    """Seconds of the real training loop: data, augmentation, step, metrics and health monitor."""
    # The images that do not fill a batch are left for another epoch; count them as if they had been trained on at the same speed.
    whole = len(dataset.train.labels) // config.train.batch_size * config.train.batch_size
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        model = build_model(config, dataset)
        trainer = Trainer(RunFolder.create(Path(folder) / "run", config), config, dataset, model, Reporter())
        trainer.take_step()  # the first step sets up kernels and memory
        before = trainer.seconds
        trainer.run(StopRequest())
        seconds = trainer.seconds - before
    return seconds * len(dataset.train.labels) / (whole - config.train.batch_size)


def _plain_epoch(dataset: Dataset, config: Config) -> float:
    """Wall-clock seconds of the plain loop."""
    torch.manual_seed(config.train.seed)
    network = backbones.build_plain_vgg8(shape=dataset.shape, dim=config.backbone.dim)
    centres = nn.Parameter(torch.randn(dataset.num_classes, config.backbone.dim))
    optimiser = torch.optim.SGD([*network.parameters(), centres], lr=0.01, momentum=0.9, weight_decay=5e-4)
    images = (dataset.train.images.float() / 255 - dataset.mean.view(1, -1, 1, 1)) / dataset.std.view(1, -1, 1, 1)
    loader = DataLoader(TensorDataset(images, dataset.train.labels), batch_size=PLAIN_BATCH, shuffle=True)
    network.train()
    margin = float(config.loss.margin["m"])
    started = time.perf_counter()
    for batch, labels in loader:
        cosines = F.linear(F.normalize(network(batch)), F.normalize(centres)).clamp(-1 + 1e-7, 1 - 1e-7)
        target = torch.cos(torch.acos(cosines) + margin)
        one_hot = F.one_hot(labels, dataset.num_classes)
        loss = F.cross_entropy(config.loss.scale * (one_hot * target + (1 - one_hot) * cosines), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return time.perf_counter() - started


def main(side: str) -> None:
    """Print the seconds of one epoch of one side."""
    dataset, config = _setting(Reporter())
    if side == "bare":
        config = replace(config, data=replace(config.data, augment="none"))
    print(_plain_epoch(dataset, config) if side == "plain" else _our_epoch(dataset, config))


if __name__ == "__main__":
    main(sys.argv[1])

"""How long a training is going to take, from timing a few steps of it on copies."""

from __future__ import annotations

import copy
import time

import torch

from arcwise.data import Dataset
from arcwise.training.build import build_model, steps_per_epoch
from arcwise.training.config import Config
from arcwise.training.optimiser import make_optimiser

TIMED_STEPS = 6


def estimate_seconds(config: Config, data: Dataset, backbone: torch.nn.Module | None = None) -> float:
    """The expected training time of a whole run in seconds. Changes neither the backbone nor any random state."""
    devices = [torch.device(config.train.device)] if config.train.device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        model = build_model(config, data, copy.deepcopy(backbone))
        optimiser = make_optimiser((model.backbone, model.objective), config.train)
        rows = torch.arange(config.train.batch_size) % len(data.train.labels)
        images, labels = data.train.images[rows].to(model.device), data.train.labels[rows].to(model.device)

        def step() -> None:
            with model.autocast():
                embeddings = model.backbone(model.prepared(images))
            loss, _ = model.objective(embeddings, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            float(loss.detach())

        step()
        times = []
        for _ in range(TIMED_STEPS):
            started = time.perf_counter()
            step()
            times.append(time.perf_counter() - started)
    # Other work on the machine only ever makes a step slower; the fastest is what the machine can do. A tenth goes to all the rest.
    return 1.1 * min(times) * config.train.epochs * steps_per_epoch(config, data)


def in_words(seconds: float) -> str:
    """A duration as a person would say it."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return f"{whole} second{'s' if whole > 1 else ''}"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"

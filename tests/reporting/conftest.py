"""Sample run folders and comparison folders in the formats that training writes, small and plausible."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from safetensors.numpy import save_file

DIGITS = tuple(str(digit) for digit in range(10))
MARGINS = {
    "arcface": {"m": 0.5},
    "cosface": {"m": 0.35},
    "sphereface": {"m": 1.35},
    "norm-softmax": {},
    "combined": {"m1": 1.0, "m2": 0.3, "m3": 0.2},
}
SCALES = {"arcface": 12.6, "cosface": 24.3, "sphereface": 10.0, "norm-softmax": 9.9, "combined": 15.0}
COLUMNS = [
    {"key": key, "title": title, "unit": unit, "better": better, "meaning": meaning}
    for key, title, unit, better, meaning in (
        ("accuracy", "accuracy", "%", "higher", "test samples whose nearest class mean, by angle, is their own"),
        ("classifier_accuracy", "own classifier", "%", "higher", "test samples that the trained head itself classifies rightly"),
        ("eer", "EER", "%", "lower", "equal error rate of deciding same or different over all pairs of test samples"),
        ("own_angle", "angle to own centre", "°", "lower", "mean angle between a test sample and the mean of its class in training"),
        ("smallest_centre_angle", "nearest centres", "°", "higher", "smallest angle between the means of two classes"),
        ("fisher", "between/within", "", "higher", "spread between the classes over the spread within them, on the unit sphere"),
        ("noise_accuracy", "noise, by angle", "%", "higher", "accuracy under added noise, nearest class mean by angle"),
        ("noise_accuracy_distance", "noise, by distance", "%", "higher", "the same, nearest class mean by Euclidean distance"),
        ("train_seconds", "training time", "s", "lower", "seconds spent in training steps"),
    )
]  # fmt: skip
KEYS = tuple(column["key"] for column in COLUMNS)
VALUES: dict[str, dict[str, float]] = {
    loss: dict(zip(KEYS, numbers, strict=True))
    for loss, numbers in {
        "softmax": (0.9876, 0.9889, 0.0231, 12.31, 41.2, 14.2, 0.8812, 0.8777, 61.2),
        "arcface": (0.9911, 0.9912, 0.0112, 4.87, 58.9, 61.5, 0.8654, 0.8654, 63.9),
        "cosface": (0.9904, 0.9907, 0.0125, 5.61, 57.3, 52.0, 0.8701, 0.8699, 63.1),
        "sphereface": (0.9893, 0.9893, 0.0164, 7.90, 55.0, 33.1, 0.8733, 0.8702, 64.4),
        "norm-softmax": (0.9885, 0.9886, 0.0190, 9.40, 56.1, 25.9, 0.8790, 0.8755, 62.0),
    }.items()
}
NOISES = ("gaussian 0.1", "gaussian 0.3", "salt and pepper 0.1", "blur 1.5", "occlusion 8 px")


def quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


def picture(path: Path, text: str, size: tuple[int, int] = (900, 450)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for index in range(60):
        angle = index * 2.4
        x = size[0] / 2 + 0.4 * size[1] * math.cos(angle) * (index / 60)
        y = size[1] / 2 + 0.4 * size[1] * math.sin(angle) * (index / 60)
        draw.ellipse((x - 6, y - 6, x + 6, y + 6), fill=("#0072B2", "#D55E00", "#009E73")[index % 3])
    draw.rectangle((0, 0, size[0] - 1, size[1] - 1), outline="#888888")
    draw.text((20, 20), text, fill="black")
    image.save(path)


def write_run(
    folder: Path,
    loss: str = "arcface",
    *,
    seed: int = 0,
    data: str = "mnist",
    dim: int = 3,
    epochs: int = 10,
    backbone: str = "vgg8",
    classes: Sequence[str] = DIGITS,
    values: Mapping[str, float] | None = None,
    health: Sequence[str] = (),
    figures: bool = True,
    command: str = "arcwise compare mnist --losses softmax,arcface --dim 3 --seeds 3",
    loss_settings: Mapping[str, Any] | None = None,
) -> Path:
    """A finished run as training leaves it."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng([seed, len(loss)])
    margin = dict(MARGINS.get(loss, {}))
    lines = [
        'arcwise = "0.1.0"',
        f"command = {quoted(command)}",
        "",
        "[data]",
        f"name = {quoted(data)}",
        "image_size = 0",
        "test_share = 0.2",
        'augment = "affine"',
        "",
        "[backbone]",
        f"name = {quoted(backbone)}",
        f"dim = {dim}",
        "",
        "[loss]",
        f"name = {quoted(loss)}",
        *(
            f"{key} = {quoted(value)}"
            for key, value in {"scale": SCALES.get(loss, 0.0), "warmup_epochs": 1.0, **(loss_settings or {})}.items()
        ),
        "",
        "[loss.margin]",
        *(f"{key} = {quoted(value)}" for key, value in margin.items()),
        *(['continuation = "continuous"', 'gradient = "exact"'] if loss in {"arcface", "combined"} else []),
        "",
        "[train]",
        f"epochs = {epochs}",
        "batch_size = 256",
        'optimiser = "sgd"',
        "lr = 0.1",
        "momentum = 0.9",
        "weight_decay = 0.0005",
        "warmup_share = 0.2",
        f"seed = {seed}",
        'device = "cpu"',
        'precision = "fp32"',
        "channels_last = true",
        "compile = false",
        "snapshot_images = 2000",
        "checkpoint_seconds = 30.0",
    ]
    (folder / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    measured = dict(values if values is not None else VALUES.get(loss, VALUES["arcface"]))
    num = len(classes)
    confusion = [[96 if i == j else 0 for j in range(num)] for i in range(num)]
    if num > 4:
        confusion[4][min(9, num - 1)] = 12
    evaluation = {
        **measured,
        "robustness": [
            {"noise": noise, "angle": 0.95 - 0.04 * i + 0.001 * (len(loss) % 3), "distance": 0.955 - 0.043 * i}
            for i, noise in enumerate(NOISES)
        ],
        "epochs": epochs,
        "data": data,
        "source": "the data set’s own public address, checked by SHA-256",
        "licence": "CC BY-SA 3.0",
        "notes": [],
        "classes": list(classes),
        "num_train": 60000,
        "num_test": 3 * len(classes),
        "shape": [1, 28, 28],
        "device": "cpu, 2 threads",
        "torch": "2.13.0",
        "num_parameters": 345678,
        "verification": {
            "eer": measured.get("eer"),
            "threshold_degrees": 24.6,
            "auc": 0.998,
            "histogram": {"degrees": [0, 90, 180], "genuine": [90, 10], "impostor": [10, 90]},
        },
        "confusion": confusion,
    }
    (folder / "evaluation.json").write_text(json.dumps(evaluation), encoding="utf-8")
    os.utime(folder / "evaluation.json", (1_750_000_000 + seed, 1_750_000_000 + seed))
    metrics = [
        {
            "kind": "step",
            "step": step,
            "epoch": step / 235,
            "loss": 2.3 / (1 + step),
            "accuracy": 0.5,
            "target_angle": 40.0,
        }
        for step in range(5)
    ]
    metrics += [{"kind": "health", "step": 12, "name": "scale-too-small", "message": message} for message in health]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics), encoding="utf-8")
    labels = np.repeat(np.arange(num, dtype=np.int64), 3)
    centres = generator.normal(size=(num, dim)).astype(np.float32)
    (folder / "embeddings").mkdir()
    save_file(
        {"embeddings": centres[labels], "labels": labels, "centres": centres, "predicted": labels},
        folder / "embeddings" / "final.safetensors",
        metadata={"classes": json.dumps(list(classes))},
    )
    if figures:
        for stem in ("embeddings", "angles", "training", "target_logit", "robustness"):
            picture(folder / "figures" / f"{stem}.png", f"{stem} {loss}")
        picture(folder / "figures" / "confusion.png", f"confusion {loss}", (600, 560))
    return folder


def write_comparison(
    folder: Path,
    losses: Sequence[str] = ("softmax", "arcface"),
    *,
    seeds: Sequence[int] = (0, 1, 2),
    figures: bool = True,
    command: str = "arcwise compare mnist --losses softmax,arcface --dim 3 --seeds 3",
    **settings: Any,
) -> Path:
    """A comparison as `arcwise compare` leaves it, with a little spread between the seeds."""
    folder.mkdir(parents=True)
    rows: dict[str, Any] = {}
    for loss in losses:
        measured: list[dict[str, float]] = []
        for seed in seeds:
            shift = 1 + 0.001 * (seed - 1) if len(seeds) > 1 else 1.0
            values = {key: value * shift for key, value in VALUES.get(loss, VALUES["arcface"]).items()}
            write_run(
                folder / f"{loss}-seed{seed}",
                loss,
                seed=seed,
                values=values,
                figures=figures,
                command=command,
                **settings,
            )
            measured.append(values)
        rows[loss] = {
            "runs": [f"{loss}-seed{seed}" for seed in seeds],
            "values": {column["key"]: [values[column["key"]] for values in measured] for column in COLUMNS},
        }
    content = {
        "data": settings.get("data", "mnist"),
        "dim": settings.get("dim", 3),
        "epochs": settings.get("epochs", 10),
        "seeds": list(seeds),
        "device": "cpu, 2 threads",
        "command": command,
        "arcwise": "0.1.0",
        "torch": "2.13.0",
        "losses": list(losses),
        "columns": COLUMNS,
        "rows": rows,
    }
    (folder / "comparison.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    if figures:
        for stem in ("embeddings", "angles", "training", "robustness"):
            picture(folder / "figures" / f"{stem}.png", f"{stem} {' | '.join(losses)}", (1200, 500))
        (folder / "figures" / "embeddings.gif").write_bytes(b"GIF89a")
    return folder


RunWriter = Callable[..., Path]


@pytest.fixture
def make_run() -> RunWriter:
    return write_run


@pytest.fixture
def make_comparison() -> RunWriter:
    return write_comparison


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One comparison of softmax and ArcFace over three seeds, for tests that only read it."""
    return write_comparison(tmp_path_factory.mktemp("runs") / "mnist-compare")

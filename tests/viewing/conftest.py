"""A sample run folder as training would write it: classes that drift apart on a sphere over the epochs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

Array = NDArray[np.float32]
MakeRun = Callable[..., Path]

FIRST_EPOCH = (0.0, 0.25, 0.5, 0.75)


def unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12), dtype=np.float32)


def well_spread(num: int, dim: int, generator: np.random.Generator) -> Array:
    """Directions that push each other away until they are spread evenly."""
    if dim == 2:
        angle = 2 * np.pi * (generator.permutation(num) + generator.uniform(-0.12, 0.12, size=num)) / num
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    points = unit(generator.normal(size=(num, dim)).astype(np.float32))
    for _ in range(150 if num <= 60 else 10):
        apart = points[:, None] - points[None]
        distance = np.linalg.norm(apart, axis=-1) + np.eye(num)
        force = (apart / distance[..., None] ** 3).sum(axis=1).astype(np.float32)
        points = unit(points + 0.06 * force / max(float(np.abs(force).max()), 1e-6))
    return points


def snapshot(
    progress: float, targets: Array, labels: NDArray[np.int64], noise: Array, tightness: float, raw_growth: float
) -> tuple[Array, Array]:
    """(embeddings, centres) at a share of training: from one loose cloud to a cluster around each target."""
    dim = targets.shape[1]
    lump = np.zeros(dim, dtype=np.float32)
    lump[0] = 1.0
    pull = progress**0.6
    centres = unit((1 - pull) * (0.8 * lump + 0.5 * targets[::-1]) + pull * targets)
    spread = (1 - pull) * 0.45 + pull * tightness
    hard = 1 + 2.2 * (np.arange(len(labels)) % 17 == 0)[:, None]
    directions = unit(centres[labels] + spread * hard * noise / np.sqrt(dim / 3))
    length = 1 + raw_growth * progress * (1 + 0.3 * noise[:, :1])
    return (directions * np.maximum(length, 0.2)).astype(np.float32), (centres * (1 + progress)).astype(np.float32)


def accuracy_of(
    embeddings: Array, labels: NDArray[np.int64], num_classes: int
) -> tuple[float, NDArray[np.int64], Array]:
    directions = unit(embeddings)
    means = np.zeros((num_classes, embeddings.shape[1]), dtype=np.float32)
    np.add.at(means, labels, directions)
    means = unit(means)
    predicted = (directions @ means.T).argmax(axis=1)
    return float((predicted == labels).mean()), predicted, means


def write_run(
    path: Path,
    *,
    loss: str = "arcface",
    margin: dict[str, float] | None = None,
    dim: int = 3,
    classes: Sequence[str] = tuple("0123456789"),
    num_samples: int = 2000,
    num_final: int = 5000,
    num_epochs: int = 12,
    seed: int = 0,
    data: str = "mnist",
    early: Sequence[float] = FIRST_EPOCH[1:],
) -> Path:
    """Write a whole run folder."""
    generator = np.random.default_rng(seed)
    num_classes = len(classes)
    is_softmax = loss == "softmax"
    tightness, growth = (0.30, 9.0) if is_softmax else (0.12, 1.0)
    tightness = tightness * min(1.0, 3.0 / num_classes) if dim == 2 else tightness
    targets = well_spread(num_classes, dim, generator)
    (path / "embeddings").mkdir(parents=True)
    labels = np.sort(np.arange(num_samples) % num_classes).astype(np.int64)
    noise = generator.normal(size=(num_samples, dim)).astype(np.float32)
    epochs = [0.0, *early, *(float(epoch) for epoch in range(1, num_epochs + 1))]
    lines: list[dict[str, Any]] = []
    for epoch in epochs:
        embeddings, centres = snapshot(epoch / num_epochs, targets, labels, noise, tightness, growth)
        accuracy, _, means = accuracy_of(embeddings, labels, num_classes)
        angle = float(np.degrees(np.arccos(np.clip((unit(embeddings) * means[labels]).sum(axis=1), -1, 1))).mean())
        name = f"epoch-{int(epoch):04d}" + ("" if epoch == int(epoch) else f"{epoch - int(epoch):.2f}"[1:])
        save_file(
            {"embeddings": embeddings, "labels": labels, "centres": centres},
            path / "embeddings" / f"{name}.safetensors",
            metadata={"epoch": f"{epoch:g}", "test_accuracy": f"{accuracy:.6f}", "step": str(int(epoch * 100))},
        )
        if epoch == int(epoch) and epoch > 0:
            lines += _step_lines(int(epoch), num_epochs, accuracy, angle, generator)
            lines.append(
                {
                    "kind": "epoch",
                    "epoch": int(epoch),
                    "step": int(epoch) * 100,
                    "loss": 2.5 * np.exp(-epoch / 3) + 0.1,
                    "accuracy": min(1.0, accuracy + 0.005),
                    "target_angle": angle * 0.9,
                    "test_accuracy": accuracy,
                    "test_angle": angle,
                    "seconds": 4.2,
                }
            )
    lines.append({"kind": "health", "step": 7, "name": "scale-too-small", "message": "plain words"})
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _write_final(path, targets, tightness, growth, classes, num_final, generator)
    _write_config(
        path, loss, margin if margin is not None else ({} if is_softmax else {"m": 0.5}), dim, data, num_epochs
    )
    return path


def _step_lines(
    epoch: int, num_epochs: int, accuracy: float, angle: float, generator: np.random.Generator
) -> list[dict[str, Any]]:
    lines = []
    for step in range(100):
        at = epoch - 1 + (step + 1) / 100
        lines.append(
            {
                "kind": "step",
                "step": (epoch - 1) * 100 + step + 1,
                "epoch": at,
                "loss": float(2.5 * np.exp(-at / 3) + 0.1 + abs(generator.normal()) * 0.15),
                "accuracy": float(np.clip(accuracy - 0.3 * np.exp(-at * 2) + generator.normal() * 0.02, 0, 1)),
                "target_angle": float(angle + 4 * np.exp(-at) + generator.normal()),
                "images_per_second": 9000.0,
                "lr": 0.1,
                "scale": 12.6,
                "margin_fraction": 1.0,
            }
        )
    return lines


def _write_final(
    path: Path,
    targets: Array,
    tightness: float,
    growth: float,
    classes: Sequence[str],
    num: int,
    generator: np.random.Generator,
) -> None:
    num_classes, dim = targets.shape
    labels = generator.integers(0, num_classes, size=num).astype(np.int64)
    labels[: min(num, num_classes)] = np.arange(min(num, num_classes))
    noise = generator.normal(size=(num, dim)).astype(np.float32)
    embeddings, centres = snapshot(1.0, targets, labels, noise, tightness, growth)
    accuracy, predicted, means = accuracy_of(embeddings, labels, num_classes)
    save_file(
        {
            "embeddings": embeddings,
            "labels": labels,
            "centres": centres,
            "class_means": means,
            "raw_class_means": means * 2,
            "predicted": predicted,
        },
        path / "embeddings" / "final.safetensors",
        metadata={"classes": json.dumps(list(classes))},
    )
    directions = unit(embeddings)[:1200]
    degrees = np.degrees(np.arccos(np.clip(directions @ directions.T, -1, 1)))
    same = labels[:1200, None] == labels[None, :1200]
    upper = np.triu(np.ones_like(same), 1).astype(bool)
    edges = np.arange(0, 181, 2)
    genuine, impostor = degrees[same & upper], degrees[~same & upper]
    threshold = min(range(1, 180), key=lambda t: abs(float((genuine > t).mean()) - float((impostor <= t).mean())))
    eer = float(((genuine > threshold).mean() + (impostor <= threshold).mean()) / 2)
    confusion = np.bincount(labels * num_classes + predicted, minlength=num_classes**2).reshape(
        num_classes, num_classes
    )
    noises = ["gaussian 0.3", "gaussian 0.6", "salt and pepper 0.1", "occlusion 25 %", "blur 1.5"]
    evaluation: dict[str, Any] = {
        "accuracy": accuracy,
        "eer": eer,
        "robustness": [
            {
                "noise": noise,
                "angle": accuracy - 0.05 * i - tightness * 0.1,
                "distance": accuracy - 0.08 * i - tightness * 0.2,
            }
            for i, noise in enumerate(noises)
        ],
        "verification": {
            "eer": eer,
            "threshold_degrees": float(threshold),
            "auc": 0.99,
            "histogram": {
                "degrees": edges.tolist(),
                "genuine": np.histogram(genuine, edges)[0].tolist(),
                "impostor": np.histogram(impostor, edges)[0].tolist(),
            },
        },
    }
    if num_classes <= 100:
        evaluation["confusion"] = confusion.tolist()
    (path / "evaluation.json").write_text(json.dumps(evaluation))


def _write_config(path: Path, loss: str, margin: dict[str, float], dim: int, data: str, num_epochs: int) -> None:
    margins = "".join(f"{key} = {value}\n" for key, value in margin.items())
    table = f"[loss.margin]\n{margins}" if margin else ""
    (path / "config.toml").write_text(
        'arcwise = "0.1.0"\n'
        f"[data]\nname = {json.dumps(data)}\n"
        f'[backbone]\nname = "vgg8"\ndim = {dim}\n'
        f"[train]\nepochs = {num_epochs}\n"
        f'[loss]\nname = "{loss}"\nscale = 12.6\n{table}'
    )


def write_comparison(folder: Path, losses: Sequence[str] = ("softmax", "arcface"), **options: Any) -> Path:
    """Write a comparison of runs with one seed each."""
    folder.mkdir(parents=True)
    for number, loss in enumerate(losses):
        write_run(folder / f"{loss}-seed0", loss=loss, seed=number, **options)
    content = {
        "data": "mnist",
        "dim": 3,
        "losses": list(losses),
        "rows": {loss: {"runs": [f"{loss}-seed0"], "values": {"accuracy": [0.98]}} for loss in losses},
    }
    (folder / "comparison.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def make_run() -> MakeRun:
    """Writes a run folder; see `write_run` for what can be chosen."""
    return write_run


@pytest.fixture
def make_comparison() -> MakeRun:
    """Writes a comparison folder; see `write_comparison`."""
    return write_comparison


@pytest.fixture(scope="session")
def make_many() -> Callable[[Path, tuple[str, ...]], Path]:
    """Writes a small comparison of many losses."""

    def write(folder: Path, losses: tuple[str, ...]) -> Path:
        return write_comparison(folder, losses, margin={}, num_samples=60, num_final=100, num_epochs=2, early=())

    return write


@pytest.fixture(scope="session")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One sample run, shared by tests that only read it."""
    return write_run(tmp_path_factory.mktemp("runs") / "mnist-arcface")

"""What is measured once training is over, and written beside the weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from arcwise import evaluation
from arcwise.backbones import count_parameters
from arcwise.data import Dataset
from arcwise.progress import Reporter
from arcwise.training.build import Model
from arcwise.training.config import Config
from arcwise.training.device import describe
from arcwise.training.run_folder import RunFolder
from arcwise.training.suspects import list_suspects

PART = 2000

# Measures the trained model, writes what it found into the run folder, and returns what evaluation.json holds.
Measure = Callable[[RunFolder, Config, Dataset, Model, float, Reporter], dict[str, Any]]


def measure(
    folder: RunFolder, config: Config, data: Dataset, model: Model, train_seconds: float, reporter: Reporter
) -> dict[str, Any]:
    """Embed all pictures, measure, write embeddings/final.safetensors and evaluation.json; returns the latter."""
    train, test = data.train, data.test
    with reporter.stage(f"measuring {config.loss.name}", total=len(train.labels) + len(test.labels)) as stage:

        def embed(images: torch.Tensor) -> torch.Tensor:
            parts = []
            for part in images.split(PART):
                parts.append(model.embed(part))
                stage.advance(len(part))
            return torch.cat(parts)

        train_embeddings, test_embeddings = embed(train.images), embed(test.images)
    means = evaluation.class_means(train_embeddings, train.labels, data.num_classes)
    with torch.no_grad():
        by_head = model.head.logits(test_embeddings.to(model.device)).argmax(dim=1).cpu()
    noise = evaluation.robustness(
        model.embed, test.images, test.labels, means.directions, means.raw, seed=config.train.seed, reporter=reporter
    )
    measured = evaluation.evaluate_embeddings(
        embeddings=test_embeddings,
        labels=test.labels,
        class_means=means.directions,
        raw_class_means=means.raw,
        predicted_by_head=by_head,
        classes=data.classes,
        robustness=noise,
        reporter=reporter,
    )
    facts = {
        "data": data.name,
        "source": data.source,
        "licence": data.licence,
        "notes": list(data.notes),
        "classes": list(data.classes),
        "num_train": len(train.labels),
        "num_test": len(test.labels),
        "shape": list(data.shape),
        "num_parameters": count_parameters(model.backbone),
        "train_seconds": train_seconds,
        "epochs": config.train.epochs,
        "device": describe(model.device),
        "torch": torch.__version__,
    }
    record = {**measured.to_dict(), **list_suspects(folder, data, train_embeddings), **facts}
    bias = getattr(model.head, "bias", None)
    folder.save_embeddings(
        "final",
        {
            **({"bias": bias} if bias is not None else {}),
            "embeddings": test_embeddings,
            "labels": test.labels,
            "centres": model.head.weight,
            "class_means": means.directions.float(),
            "raw_class_means": means.raw.float(),
            "predicted": evaluation.nearest_by_angle(test_embeddings, means.directions),
        },
        {"classes": json.dumps(list(data.classes)), "epoch": str(config.train.epochs)},
    )
    folder.write_evaluation(record)
    return record

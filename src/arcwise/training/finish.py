"""What is measured once training is over, and written beside the weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from arcwise import evaluation
from arcwise.backbones import count_parameters
from arcwise.data import Dataset, without_quarter_turns
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
    measured, tensors = (
        _measure_unseen(folder, model, data, reporter)
        if data.disjoint
        else _measure_known(folder, config, data, model, reporter)
    )
    tested = data.test_classes or data.classes
    facts = {
        "data": data.name,
        "source": data.source,
        "licence": data.licence,
        "notes": list(data.notes),
        "classes": list(tested),
        "num_classes": data.num_classes,
        "num_train": len(data.train.labels),
        "num_test": len(data.test.labels),
        "shape": list(data.shape),
        "num_parameters": count_parameters(model.backbone),
        "train_seconds": train_seconds,
        "epochs": config.train.epochs,
        "device": describe(model.device),
        "torch": torch.__version__,
    }
    if data.disjoint:
        facts["num_test_classes"] = len(data.test_classes)
    record = {**measured, **facts}
    folder.save_embeddings("final", tensors, {"classes": json.dumps(list(tested)), "epoch": str(config.train.epochs)})
    folder.write_evaluation(record)
    return record


def unseen(model: Model, data: Dataset, reporter: Reporter | None = None) -> evaluation.UnseenEvaluation:
    """Measure a model on the test part of data whose classes it was not trained on, and on its one-shot trials if it has some.

    The data may be any `Dataset` with `test_classes`: a held-out part of training classes as well.
    """
    reporter = reporter if reporter is not None else Reporter()
    embeddings = _embedded(model, data.test.images, f"measuring {data.name}", reporter)
    return _unseen_of(embeddings, model, data, reporter)


def _unseen_of(
    embeddings: torch.Tensor, model: Model, data: Dataset, reporter: Reporter
) -> evaluation.UnseenEvaluation:
    trials = evaluation.one_shot(model.embed, data.one_shot) if data.one_shot is not None else None
    return evaluation.evaluate_unseen(embeddings.to(model.device), data.test.labels, one_shot=trials, reporter=reporter)


def _embedded(model: Model, images: torch.Tensor, title: str, reporter: Reporter) -> torch.Tensor:
    with reporter.stage(title, total=len(images)) as stage:
        parts = []
        for part in images.split(PART):
            parts.append(model.embed(part))
            stage.advance(len(part))
        return torch.cat(parts)


def _measure_unseen(
    folder: RunFolder, model: Model, data: Dataset, reporter: Reporter
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    embeddings = _embedded(model, data.test.images, f"measuring {data.name}", reporter)
    measured = _unseen_of(embeddings, model, data, reporter)
    means = evaluation.class_means(embeddings, data.test.labels, len(data.test_classes))
    tensors = {
        "embeddings": embeddings,
        "labels": data.test.labels,
        "centres": means.directions.float(),
        "class_means": means.directions.float(),
        "raw_class_means": means.raw.float(),
        "trained_centres": model.head.dominant_centers(),
    }
    upright = without_quarter_turns(data)
    train_embeddings = _embedded(model, upright.train.images, "looking through the training part", reporter)
    return {**measured.to_dict(), **list_suspects(folder, upright, train_embeddings)}, tensors


def _measure_known(
    folder: RunFolder, config: Config, data: Dataset, model: Model, reporter: Reporter
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
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
    suspects = list_suspects(folder, data, train_embeddings)
    bias = getattr(model.head, "bias", None)
    tensors = {
        **({"bias": bias} if bias is not None else {}),
        "embeddings": test_embeddings,
        "labels": test.labels,
        "centres": model.head.dominant_centers(),
        "class_means": means.directions.float(),
        "raw_class_means": means.raw.float(),
        "predicted": evaluation.nearest_by_angle(test_embeddings, means.directions),
    }
    return {**measured.to_dict(), **suspects}, tensors

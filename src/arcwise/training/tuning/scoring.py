"""What a trial is scored by: one number, measured on what was held out of training."""

from __future__ import annotations

from typing import Any

import torch

from arcwise import evaluation
from arcwise.data import Dataset
from arcwise.errors import TrainingError
from arcwise.progress import Reporter
from arcwise.training.build import Model
from arcwise.training.config import Config
from arcwise.training.run_folder import RunFolder


def score_trial(
    folder: RunFolder, config: Config, data: Dataset, model: Model, train_seconds: float, reporter: Reporter
) -> dict[str, Any]:
    """Score a trained model, higher being better, and write it as the trial's evaluation.json."""
    held_out = _finite(model.embed(data.test.images))
    if data.disjoint:
        score = evaluation.retrieval(held_out.to(model.device), data.test.labels).map_at_r
    else:
        means = evaluation.class_means(_finite(model.embed(data.train.images)), data.train.labels, data.num_classes)
        score = evaluation.accuracy(evaluation.nearest_by_angle(held_out, means.directions), data.test.labels)
    record = {"score": score, "train_seconds": train_seconds}
    folder.write_evaluation(record)
    return record


def _finite(embeddings: torch.Tensor) -> torch.Tensor:
    if not bool(embeddings.isfinite().all()):
        raise TrainingError("the embeddings are not finite at the end of training. Use a smaller scale or --lr.")
    return embeddings

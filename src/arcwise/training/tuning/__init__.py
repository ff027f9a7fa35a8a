"""Tuning: the scale and margin of each loss, searched on held-out training data with the same budget for all."""

from __future__ import annotations

from arcwise.training.tuning.loss_search import Trial
from arcwise.training.tuning.result import Tuning
from arcwise.training.tuning.tune import tune

__all__ = ["Trial", "Tuning", "tune"]

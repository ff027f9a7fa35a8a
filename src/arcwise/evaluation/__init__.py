"""What embeddings are worth: as a classifier, for verification and retrieval, as points on a sphere, from one example, and under noise."""

from __future__ import annotations

from arcwise.evaluation.geometry import Geometry, geometry
from arcwise.evaluation.intervals import wilson
from arcwise.evaluation.mislabelled import Found, Mislabelled, Suspect, likely_mislabelled
from arcwise.evaluation.nearest_centre import ClassMeans, accuracy, class_means, nearest_by_angle, nearest_by_distance
from arcwise.evaluation.one_shot import OneShotResult, one_shot
from arcwise.evaluation.retrieval import Retrieval, recall_at_1, retrieval
from arcwise.evaluation.robustness import NoiseResult, robustness
from arcwise.evaluation.summary import Evaluation, evaluate_embeddings
from arcwise.evaluation.unseen import UnseenEvaluation, evaluate_unseen
from arcwise.evaluation.verification import Verification, verification

__all__ = [
    "ClassMeans",
    "Evaluation",
    "Found",
    "Geometry",
    "Mislabelled",
    "NoiseResult",
    "OneShotResult",
    "Retrieval",
    "Suspect",
    "UnseenEvaluation",
    "Verification",
    "accuracy",
    "class_means",
    "evaluate_embeddings",
    "evaluate_unseen",
    "geometry",
    "likely_mislabelled",
    "nearest_by_angle",
    "nearest_by_distance",
    "one_shot",
    "recall_at_1",
    "retrieval",
    "robustness",
    "verification",
    "wilson",
]

"""What embeddings are worth: as a classifier, for verification, as points on a sphere, and under noise."""

from __future__ import annotations

from arcwise.evaluation.geometry import Geometry, geometry
from arcwise.evaluation.mislabelled import Found, Mislabelled, Suspect, likely_mislabelled
from arcwise.evaluation.nearest_centre import ClassMeans, accuracy, class_means, nearest_by_angle, nearest_by_distance
from arcwise.evaluation.robustness import NoiseResult, robustness
from arcwise.evaluation.summary import Evaluation, evaluate_embeddings
from arcwise.evaluation.verification import Verification, verification

__all__ = [
    "ClassMeans",
    "Evaluation",
    "Found",
    "Geometry",
    "Mislabelled",
    "NoiseResult",
    "Suspect",
    "Verification",
    "accuracy",
    "class_means",
    "evaluate_embeddings",
    "geometry",
    "likely_mislabelled",
    "nearest_by_angle",
    "nearest_by_distance",
    "robustness",
    "verification",
]

"""Everything that is measured about classes that training never saw: nothing is asked of the head, only of the embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from arcwise.evaluation.geometry import Geometry, finite_or_none, geometry
from arcwise.evaluation.one_shot import OneShotResult
from arcwise.evaluation.retrieval import Retrieval, retrieval
from arcwise.evaluation.verification import FAR, Verification, verification
from arcwise.progress import Reporter


@dataclass(frozen=True)
class UnseenEvaluation:
    """What `evaluate_unseen` found. Rates are shares of one, angles degrees.

    Attributes:
        verification: all pairs of samples.
        retrieval: each sample among all others.
        geometry: around the mean direction of each class, taken over these samples themselves.
        one_shot: None where the data has no such trials.
        num_samples: labelled samples.
        num_classes: classes among them.
    """

    verification: Verification
    retrieval: Retrieval
    geometry: Geometry
    one_shot: OneShotResult | None
    num_samples: int
    num_classes: int

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        return [
            *self.retrieval.table()[:-1],
            *self.verification.table()[:4],
            *(self.one_shot.table() if self.one_shot is not None else ()),
            *self.geometry.table(),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file; None for what is undefined or was not measured."""
        trials = self.one_shot
        return {
            "recall_at_1": self.retrieval.recall_at_1,
            "map_at_r": self.retrieval.map_at_r,
            "eer": self.verification.eer,
            "auc": self.verification.auc,
            "tar_at_far": self.verification.tar_at_far[FAR],
            "far": FAR,
            "one_shot_accuracy": None if trials is None else trials.accuracy,
            "one_shot_low": None if trials is None else trials.low,
            "one_shot_high": None if trials is None else trials.high,
            "own_angle": finite_or_none(self.geometry.own_angle),
            "other_angle": finite_or_none(self.geometry.other_angle),
            "smallest_centre_angle": finite_or_none(self.geometry.smallest_centre_angle),
            "closest_pair": self.geometry.to_dict()["closest_pair"],
            "fisher": finite_or_none(self.geometry.fisher),
            "retrieval": self.retrieval.to_dict(),
            "verification": self.verification.to_dict(),
            "one_shot": None if trials is None else trials.to_dict(),
            "num_samples": self.num_samples,
        }


def evaluate_unseen(
    embeddings: Tensor, labels: Tensor, *, one_shot: OneShotResult | None = None, reporter: Reporter | None = None
) -> UnseenEvaluation:
    """Measure embeddings (M, D) of classes that training never saw, on the device where they are. Labels of −1 are ignored."""
    found = retrieval(embeddings, labels, reporter=reporter)
    return UnseenEvaluation(
        verification=verification(embeddings, labels, reporter=reporter),
        retrieval=found,
        geometry=geometry(embeddings, labels),
        one_shot=one_shot,
        num_samples=found.num_samples,
        num_classes=found.num_classes,
    )

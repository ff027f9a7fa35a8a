"""Everything that is measured about the embeddings of one trained model, in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation.angles import labelled
from arcwise.evaluation.geometry import Geometry, finite_or_none, geometry
from arcwise.evaluation.nearest_centre import accuracy, nearest_by_angle, nearest_by_distance
from arcwise.evaluation.robustness import NoiseResult
from arcwise.evaluation.verification import Verification, verification
from arcwise.progress import Reporter

MAX_CONFUSION_CLASSES = 100
MAX_VERIFICATION_SAMPLES = 20_000


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate_embeddings` found. Rates are shares of one, angles degrees.

    Attributes:
        accuracy: by the nearest mean direction.
        accuracy_distance: by the nearest plain mean.
        classifier_accuracy: of the head's own largest logit; None where it was not given.
        verification: None where the samples give no pairs of both kinds; `notes` says so.
        geometry: of the test embeddings around the mean directions of training.
        robustness: one result for each kind of noise; empty where it was not measured.
        confusion: (N, N) counts, true class by row and predicted one by column; None beyond 100 classes. Samples without a
            nearest class are in none of the columns.
        num_samples: labelled test samples.
        notes: plain sentences about what could not be measured.
    """

    accuracy: float
    accuracy_distance: float
    classifier_accuracy: float | None
    verification: Verification | None
    geometry: Geometry
    robustness: tuple[NoiseResult, ...]
    confusion: tuple[tuple[int, ...], ...] | None
    num_samples: int
    notes: tuple[str, ...]

    @property
    def noise_accuracy(self) -> float | None:
        """The mean over the kinds of noise of the accuracy by angle."""
        return _mean([result.angle for result in self.robustness])

    @property
    def noise_accuracy_distance(self) -> float | None:
        """The mean over the kinds of noise of the accuracy by distance."""
        return _mean([result.distance for result in self.robustness])

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        rows = [
            ("accuracy, nearest angle", _percent(self.accuracy)),
            ("accuracy, nearest distance", _percent(self.accuracy_distance)),
        ]
        if self.classifier_accuracy is not None:
            rows.append(("accuracy, classifier", _percent(self.classifier_accuracy)))
        if self.verification is not None:
            rows += self.verification.table()[:2]
        rows += self.geometry.table()
        for result in self.robustness:
            rows.append(
                (f"under {result.noise}", f"{_percent(result.angle)} by angle, {_percent(result.distance)} by distance")
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file; None for what is undefined or was not measured."""
        return {
            "accuracy": self.accuracy,
            "accuracy_distance": self.accuracy_distance,
            "classifier_accuracy": self.classifier_accuracy,
            "eer": None if self.verification is None else self.verification.eer,
            "own_angle": finite_or_none(self.geometry.own_angle),
            "other_angle": finite_or_none(self.geometry.other_angle),
            "smallest_centre_angle": finite_or_none(self.geometry.smallest_centre_angle),
            "closest_pair": self.geometry.to_dict()["closest_pair"],
            "fisher": finite_or_none(self.geometry.fisher),
            "noise_accuracy": self.noise_accuracy,
            "noise_accuracy_distance": self.noise_accuracy_distance,
            "robustness": [result.to_dict() for result in self.robustness],
            "verification": None if self.verification is None else self.verification.to_dict(),
            "confusion": None if self.confusion is None else [list(row) for row in self.confusion],
            "num_samples": self.num_samples,
            "notes": list(self.notes),
        }


def evaluate_embeddings(
    *,
    embeddings: Tensor,
    labels: Tensor,
    class_means: Tensor,
    raw_class_means: Tensor,
    classes: Sequence[str],
    predicted_by_head: Tensor | None = None,
    robustness: Sequence[NoiseResult] | None = None,
    reporter: Reporter | None = None,
) -> Evaluation:
    """Measure test embeddings (M, D) against the class means (N, D) of the training embeddings.

    Args:
        embeddings: raw, not normalised.
        labels: (M,) int64; −1 is ignored.
        class_means: mean directions; a zero row is a class without training samples.
        raw_class_means: plain means, likewise.
        classes: the names of the N classes.
        predicted_by_head: (M,) the class of the head's largest logit.
        robustness: what `robustness` measured.
        reporter: told of progress.
    """
    if not (len(class_means) == len(raw_class_means) == len(classes)):
        raise DataError(
            f"expected one mean of each kind for each of {len(classes)} classes; got {len(class_means)} directions and "
            f"{len(raw_class_means)} plain means. Compute them over all classes."
        )
    head_accuracy = None if predicted_by_head is None else accuracy(predicted_by_head, labels)
    embeddings, labels = labelled(embeddings, labels)
    predicted = nearest_by_angle(embeddings, class_means)
    notes: list[str] = []
    return Evaluation(
        accuracy=accuracy(predicted, labels),
        accuracy_distance=accuracy(nearest_by_distance(embeddings, raw_class_means), labels),
        classifier_accuracy=head_accuracy,
        verification=_verify(embeddings, labels, notes, reporter),
        geometry=geometry(embeddings, labels, directions=class_means),
        robustness=tuple(robustness or ()),
        confusion=confusion(predicted, labels, len(classes)) if len(classes) <= MAX_CONFUSION_CLASSES else None,
        num_samples=len(labels),
        notes=tuple(notes),
    )


def confusion(predicted: Tensor, labels: Tensor, num_classes: int) -> tuple[tuple[int, ...], ...]:
    """(N, N) counts: true class by row, predicted class by column. Negative labels and predictions are left out."""
    keep = (labels >= 0) & (predicted >= 0)
    cells = torch.bincount(labels[keep] * num_classes + predicted[keep], minlength=num_classes**2)
    return tuple(tuple(row) for row in cells.view(num_classes, num_classes).tolist())


def _verify(embeddings: Tensor, labels: Tensor, notes: list[str], reporter: Reporter | None) -> Verification | None:
    _, sizes = labels.unique(return_counts=True)
    if len(sizes) < 2 or int(sizes.max()) < 2:
        notes.append("Verification was not measured: it needs two classes, and two samples of one of them.")
        return None
    if len(labels) > MAX_VERIFICATION_SAMPLES:
        chosen = (
            torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:MAX_VERIFICATION_SAMPLES]
            .sort()
            .values
        )
        notes.append(
            f"Verification compares all pairs of {MAX_VERIFICATION_SAMPLES:,} of the {len(labels):,} samples, drawn at random."
        )
        embeddings, labels = embeddings[chosen], labels[chosen]
    return verification(embeddings, labels, reporter=reporter)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"

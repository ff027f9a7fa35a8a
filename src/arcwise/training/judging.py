"""What is measured while training goes on, after each epoch and with each snapshot, on classes that training does not see."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from arcwise import evaluation
from arcwise.evaluation.angles import angle_between, unit_rows

MOST_JUDGED = 16_384
SHOWN_CLASSES = 20


def judged_rows(labels: Tensor) -> Tensor:
    """All rows; or, where there are very many, those of classes spread evenly over all of them. Classes are never cut."""
    per_class = math.ceil(len(labels) / max(len(labels.unique()), 1))
    return (
        rows_of_spread_classes(labels, MOST_JUDGED // per_class)
        if len(labels) > MOST_JUDGED
        else torch.arange(len(labels))
    )


def rows_of_spread_classes(labels: Tensor, count: int) -> Tensor:
    """All rows of `count` classes, two at least, that are spread evenly over all classes, in rising order."""
    classes = labels[labels >= 0].unique()
    # In float32 the rounding of many places would make some of them one.
    last, num = max(len(classes) - 1, 0), min(max(count, 2), len(classes))
    places = torch.linspace(0, last, num, dtype=torch.float64).round().long()
    return torch.isin(labels, classes[places]).nonzero().flatten()


def judged_unseen(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """Recall@1 under the name of the accuracy, and the mean angle to the mean direction of the sample's own class."""
    means = evaluation.class_means(embeddings, labels, int(labels.max()) + 1).directions
    known = labels >= 0
    own = unit_rows(means)[labels[known]] if bool((means != 0).any(dim=1).all()) else means[labels[known]].double()
    angle = angle_between(unit_rows(embeddings[known]), own).mean()
    return {
        "test_accuracy": evaluation.recall_at_1(embeddings, labels),
        "test_angle": math.degrees(float(angle)),
    }


def means_of_shown(embeddings: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(N, D) the mean direction of each class that is shown, which stands in for a centre; zero for the others."""
    return evaluation.class_means(embeddings, labels, num_classes).directions

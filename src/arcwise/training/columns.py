"""What runs are compared by: other things where the test part holds classes that training never saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """One thing that every run is measured by."""

    key: str
    title: str
    unit: str  # "%" for fractions, "°", "s" or nothing
    better: str  # "higher" | "lower"
    meaning: str


_TIME = Column("train_seconds", "training time", "s", "lower", "seconds spent in training steps")
_EER = Column(
    "eer", "EER", "%", "lower", "equal error rate of deciding same or different over all pairs of test samples"
)
_FISHER = Column(
    "fisher",
    "between/within",
    "",
    "higher",
    "spread between the classes over the spread within them, on the unit sphere",
)

COLUMNS = (
    Column("accuracy", "accuracy", "%", "higher", "test samples whose nearest class mean, by angle, is their own"),
    Column(
        "classifier_accuracy",
        "own classifier",
        "%",
        "higher",
        "test samples that the trained head itself classifies rightly",
    ),
    _EER,
    Column(
        "own_angle",
        "angle to own centre",
        "°",
        "lower",
        "mean angle between a test sample and the mean of its class in training",
    ),
    Column(
        "smallest_centre_angle", "nearest centres", "°", "higher", "smallest angle between the means of two classes"
    ),
    _FISHER,
    Column(
        "noise_accuracy", "noise, by angle", "%", "higher", "accuracy under added noise, nearest class mean by angle"
    ),
    Column(
        "noise_accuracy_distance",
        "noise, by distance",
        "%",
        "higher",
        "the same, nearest class mean by Euclidean distance",
    ),
    _TIME,
)

UNSEEN_COLUMNS = (
    Column(
        "recall_at_1",
        "Recall@1",
        "%",
        "higher",
        "samples of unseen classes whose nearest neighbour, by angle, is of their class",
    ),
    Column(
        "map_at_r",
        "MAP@R",
        "%",
        "higher",
        "mean average precision among as many neighbours of a sample as there are others of its class",
    ),
    _EER,
    Column(
        "tar_at_far",
        "TAR@FAR=0.1%",
        "%",
        "higher",
        "pairs of one class that are accepted where 0.1 % of the pairs of two classes are",
    ),
    Column(
        "one_shot_accuracy",
        "one-shot",
        "%",
        "higher",
        "one-shot trials in which the query was given to the right one of twenty examples",
    ),
    Column(
        "own_angle",
        "angle to own centre",
        "°",
        "lower",
        "mean angle between a test sample and the mean of its class in the test part",
    ),
    Column(
        "smallest_centre_angle",
        "nearest centres",
        "°",
        "higher",
        "smallest angle between the means of two classes in the test part",
    ),
    _FISHER,
    _TIME,
)


def columns_of(evaluation: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns that suit what a run has measured."""
    return UNSEEN_COLUMNS if "recall_at_1" in evaluation else COLUMNS

"""The simplest classifier there is: a class is where its training embeddings are on average, and a sample belongs to the nearest one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation.angles import labelled, unit_rows

TILE = 4096
NO_CLASS = -1


@dataclass(frozen=True)
class ClassMeans:
    """Where each class is. Rows of classes without a sample are zero, and no sample is ever assigned to them.

    Attributes:
        directions: (N, D) float32, the mean of the unit embeddings of a class, scaled to length one.
        raw: (N, D) float32, the mean of its embeddings as they are.
        counts: (N,) int64, how many samples it had.
    """

    directions: Tensor
    raw: Tensor
    counts: Tensor


def class_means(embeddings: Tensor, labels: Tensor, num_classes: int) -> ClassMeans:
    """The mean direction and the plain mean of every class, summed in float64. Labels of −1 are ignored."""
    embeddings, labels = labelled(embeddings, labels)
    if int(labels.max()) >= num_classes:
        raise DataError(
            f"there are {num_classes} classes, 0 to {num_classes - 1}; got the label {int(labels.max())}. Check the labels."
        )
    counts = torch.bincount(labels, minlength=num_classes)
    raw = mean_per_class(embeddings.to(torch.float64), labels, num_classes)
    directions = mean_per_class(unit_rows(embeddings), labels, num_classes)
    lengths = directions.norm(dim=1, keepdim=True)
    # Opposite vectors can cancel; what is left of them by rounding is no direction.
    directions = torch.where(lengths > 1e-12, directions / lengths.clamp_min(1e-12), 0.0)
    return ClassMeans(directions.float(), raw.float(), counts)


def mean_per_class(vectors: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(N, D): the mean of the rows with each label; zero where there is none."""
    sums = torch.zeros(num_classes, vectors.shape[1], dtype=vectors.dtype).index_add_(0, labels, vectors)
    return sums / torch.bincount(labels, minlength=num_classes).clamp_min(1)[:, None]


def nearest_by_angle(embeddings: Tensor, directions: Tensor) -> Tensor:
    """The class (M,) int64 whose mean direction makes the smallest angle; −1 for an embedding that is zero or not finite."""
    return _nearest(embeddings, directions, lambda e, c: e @ c.T, needs_direction=True)


def nearest_by_distance(embeddings: Tensor, raw_means: Tensor) -> Tensor:
    """The class (M,) int64 whose plain mean is at the smallest Euclidean distance; −1 for an embedding that is not finite."""
    half_squares = 0.5 * raw_means.detach().to("cpu", torch.float64).square().sum(dim=1)
    # |e − c|² = |e|² − 2 (e·c − |c|²/2), and |e|² is the same for every class.
    return _nearest(embeddings, raw_means, lambda e, c: e @ c.T - half_squares, needs_direction=False)


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """The share of samples whose predicted class is their label. Labels of −1 are ignored."""
    predicted, labels = labelled(predicted, labels)
    return (predicted == labels).to(torch.float64).mean().item()


def _nearest(
    embeddings: Tensor, centres: Tensor, closeness: Callable[[Tensor, Tensor], Tensor], *, needs_direction: bool
) -> Tensor:
    centres = centres.detach().to("cpu", torch.float64)
    absent = (centres == 0).all(dim=1)
    if bool(absent.all()):
        raise DataError("no class has a mean to be near to. Pass the means of at least one class.")
    nearest = torch.empty(len(embeddings), dtype=torch.int64)
    for start in range(0, len(embeddings), TILE):
        tile = embeddings[start : start + TILE].detach().to("cpu", torch.float64)
        finite = torch.isfinite(tile).all(dim=1)
        usable = finite & (tile != 0).any(dim=1) if needs_direction else finite
        close = closeness(torch.nan_to_num(tile), centres).masked_fill_(absent, -torch.inf)
        nearest[start : start + TILE] = torch.where(usable, close.argmax(dim=1), NO_CLASS)
    return nearest

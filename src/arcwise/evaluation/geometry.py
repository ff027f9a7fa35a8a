"""How the classes lie on the unit sphere: how tight each is, how far apart they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation.angles import angle_between, labelled, unit_rows
from arcwise.evaluation.nearest_centre import class_means, mean_per_class

TILE = 256


@dataclass(frozen=True)
class Geometry:
    """Angles in degrees; NaN where there is only one class, and nothing to be apart from.

    Attributes:
        own_angle: the mean angle between an embedding and the mean direction of its own class.
        other_angle: the mean angle between an embedding and the nearest mean direction of another class.
        smallest_centre_angle: the smallest angle between the mean directions of two classes.
        closest_pair: those two classes, or None.
        fisher: the spread of the classes over the spread within them, on the unit sphere. With unit embeddings e_i of class y_i,
            plain class means μ_c of these over n_c samples, and their overall mean μ, it is
            Σ_c n_c |μ_c − μ|² / Σ_i |e_i − μ_{y_i}|²: the ratio of the traces of the between and within scatter matrices.
            Infinite where every class is a single point.
    """

    own_angle: float
    other_angle: float
    smallest_centre_angle: float
    closest_pair: tuple[int, int] | None
    fisher: float

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        pair = "" if self.closest_pair is None else f" (classes {self.closest_pair[0]} and {self.closest_pair[1]})"
        return [
            ("angle to own centre", _degrees(self.own_angle)),
            ("angle to nearest other centre", _degrees(self.other_angle)),
            ("smallest angle between centres", _degrees(self.smallest_centre_angle) + pair),
            ("between / within", f"{self.fisher:.2f}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers, with None for what is undefined or infinite."""
        return {
            "own_angle": finite_or_none(self.own_angle),
            "other_angle": finite_or_none(self.other_angle),
            "smallest_centre_angle": finite_or_none(self.smallest_centre_angle),
            "closest_pair": None if self.closest_pair is None else list(self.closest_pair),
            "fisher": finite_or_none(self.fisher),
        }


def geometry(embeddings: Tensor, labels: Tensor, *, directions: Tensor | None = None) -> Geometry:
    """Measure embeddings (M, D). Labels of −1 are ignored.

    Args:
        embeddings: as they are; their length does not matter.
        labels: (M,) int64.
        directions: (N, D) mean direction of each class, from training say; zero rows are classes without one. By default the means
            of these embeddings themselves.
    """
    embeddings, labels = labelled(embeddings, labels)
    unit = unit_rows(embeddings)
    if directions is None:
        directions = class_means(embeddings, labels, int(labels.max()) + 1).directions
    directions = directions.detach().to("cpu", torch.float64)
    present = torch.nonzero((directions != 0).any(dim=1))[:, 0]
    position = torch.full((max(len(directions), int(labels.max()) + 1),), -1, dtype=torch.int64)
    position[present] = torch.arange(len(present))
    measured = position[labels] >= 0
    if not bool(measured.any()):
        raise DataError(
            "none of the labelled embeddings is of a class with a mean direction. Pass the means of their classes."
        )
    unit, labels = unit[measured], labels[measured]
    centres = unit_rows(directions[present], what="class mean")
    own = position[labels]
    own_angle = angle_between(unit, centres[own]).mean().item()
    other_angle, smallest, pair = math.nan, math.nan, None
    if len(centres) > 1:
        nearest = _nearest_other(unit, own, centres)
        other_angle = angle_between(unit, centres[nearest]).mean().item()
        nearest = _nearest_other(centres, torch.arange(len(centres)), centres)
        apart = angle_between(centres, centres[nearest])
        first = int(apart.argmin())
        smallest = apart[first].item()
        a, b = sorted((int(present[first]), int(present[nearest[first]])))
        pair = (a, b)
    return Geometry(
        math.degrees(own_angle), math.degrees(other_angle), math.degrees(smallest), pair, fisher_ratio(unit, own)
    )


def fisher_ratio(unit: Tensor, labels: Tensor) -> float:
    """The ratio of the between to the within scatter of unit embeddings, as `Geometry` defines it."""
    num_classes = int(labels.max()) + 1
    means = mean_per_class(unit, labels, num_classes)
    within = (unit - means[labels]).square().sum().item()
    between = (means[labels] - unit.mean(dim=0)).square().sum().item()
    # Rounding leaves about 1e-32 for each entry of classes that are single points.
    if within <= 1e-28 * unit.numel():
        return math.inf if between > 1e-28 * unit.numel() else math.nan
    return between / within


def finite_or_none(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None


def _nearest_other(unit: Tensor, own: Tensor, centres: Tensor) -> Tensor:
    """For each unit vector the index of the centre nearest to it that is not its own."""
    nearest = torch.empty(len(unit), dtype=torch.int64)
    for start in range(0, len(unit), TILE):
        rows = slice(start, start + TILE)
        closeness = unit[rows] @ centres.T
        closeness[torch.arange(len(closeness)), own[rows]] = -torch.inf
        nearest[rows] = closeness.argmax(dim=1)
    return nearest


def _degrees(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}°"

"""Which labels are likely wrong: samples that lie nearer to the centre of another class than to their own, the clearest first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from arcwise.errors import ConfigError, DataError
from arcwise.evaluation.angles import angle_between, labelled, unit_rows
from arcwise.evaluation.nearest_centre import mean_per_class

ENTRIES_AT_ONCE = 1 << 24
SHOWN = 20


@dataclass(frozen=True)
class Suspect:
    """One sample and what speaks against its label. Angles in degrees.

    Attributes:
        row: its place among the embeddings.
        path: where it came from, or "".
        label: the class that it is said to be.
        suggested: the other class whose centre is nearest.
        own_angle: from the sample to the centre of its label.
        other_angle: from the sample to the centre of `suggested`.
    """

    row: int
    path: str
    label: int
    suggested: int
    own_angle: float
    other_angle: float

    @property
    def score(self) -> float:
        """By how many degrees the other centre is nearer than the own one."""
        return self.own_angle - self.other_angle


@dataclass(frozen=True)
class Found:
    """How well a ranking finds labels that are known to be wrong. Shares of one; NaN where none is wrong.

    Attributes:
        num_wrong: how many are wrong.
        found: the share of them among the first `num_wrong` of the ranking; precision and recall are the same there.
        average_precision: the mean, over the wrong ones, of the share of wrong ones down to their place in the ranking.
    """

    num_wrong: int
    found: float
    average_precision: float


@dataclass(frozen=True, eq=False)
class Mislabelled:
    """Samples ranked by how likely their label is wrong, the likeliest first. `ranked[0]` and `for suspect in ranked` give `Suspect`s.

    Attributes:
        rows: (K,) int64, the rows of the embeddings in the order of the ranking.
        labels: (K,) int64, what they are said to be.
        suggested: (K,) int64, the nearest other class.
        own_angle: (K,) float64, degrees to the centre of the own class.
        other_angle: (K,) float64, degrees to the nearest other centre.
        num_judged: how many samples were ranked before the list was cut to K.
        num_suspect: how many of these lie nearer to another centre than to their own.
        paths: one for every row of the embeddings, or none at all.
    """

    rows: Tensor
    labels: Tensor
    suggested: Tensor
    own_angle: Tensor
    other_angle: Tensor
    num_judged: int
    num_suspect: int
    paths: tuple[str, ...] = ()

    @property
    def score(self) -> Tensor:
        """(K,) by how many degrees the other centre is nearer: falling, and above 0 for the first `num_suspect`."""
        return self.own_angle - self.other_angle

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Suspect:
        row = int(self.rows[place])
        return Suspect(
            row=row,
            path=self.paths[row] if self.paths else "",
            label=int(self.labels[place]),
            suggested=int(self.suggested[place]),
            own_angle=float(self.own_angle[place]),
            other_angle=float(self.other_angle[place]),
        )

    def __iter__(self) -> Iterator[Suspect]:
        return (self[place] for place in range(len(self)))

    def against(self, wrong: Tensor) -> Found:
        """Hold the ranking against the truth: `wrong` (M,) says of each row of the embeddings whether its label is wrong.

        Wrong rows that are not in the list count as not found.
        """
        wrong = wrong.detach().cpu().bool()
        num_wrong = int(wrong.sum())
        if num_wrong == 0:
            return Found(0, math.nan, math.nan)
        hits = wrong[self.rows].to(torch.float64)
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        return Found(num_wrong, float(hits[:num_wrong].sum()) / num_wrong, float((precision * hits).sum()) / num_wrong)

    def table(self, classes: Sequence[str] = (), rows: int = SHOWN) -> list[list[str]]:
        """A header and the first `rows` of the ranking for a person, with the names of the classes where they are given."""

        def name(label: int) -> str:
            return classes[label] if classes else str(label)

        return [
            ["sample", "label", "more like", "angle to label", "angle to that", "nearer by"],
            *(
                [
                    s.path or f"row {s.row}",
                    name(s.label),
                    name(s.suggested),
                    f"{s.own_angle:.1f}°",
                    f"{s.other_angle:.1f}°",
                    f"{s.score:.1f}°",
                ]
                for s in (self[place] for place in range(min(rows, len(self))))
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "num_judged": self.num_judged,
            "num_suspect": self.num_suspect,
            "ranked": [
                {
                    "row": s.row,
                    "path": s.path,
                    "label": s.label,
                    "suggested": s.suggested,
                    "own_angle": s.own_angle,
                    "other_angle": s.other_angle,
                    "score": s.score,
                }
                for s in self
            ],
        }


def likely_mislabelled(
    embeddings: Tensor,
    labels: Tensor,
    centers: Tensor | None = None,
    *,
    paths: Sequence[str] | None = None,
    top: int | None = None,
) -> Mislabelled:
    """Rank the samples by how much nearer they lie to another class than to the one on their label.

        ranked = likely_mislabelled(embeddings, labels, head.dominant_centers(), paths=dataset.train.paths)

    Args:
        embeddings: (M, D) of samples that the model was trained on, or of others.
        labels: (M,) int64; −1 is ignored.
        centers: (N, D) one centre for each class, of any length; zero rows are classes without one. None takes the mean direction of
            each class's embeddings, and for every sample that of its own class *without the sample itself*.
        paths: where each sample came from, for the list.
        top: how many to list; by default all.
    """
    if paths and len(paths) != len(embeddings):
        raise DataError(
            f"paths must name each of the {len(embeddings)} embeddings; got {len(paths)}. Pass one for each, or none."
        )
    if top is not None and top < 0:
        raise ConfigError(f"top must be 0 or more samples to list; got {top}. Leave it out to list all.")
    numbered = torch.arange(len(embeddings))
    kept, kept_labels = labelled(embeddings, labels)
    rows = numbered[labels.detach().cpu() >= 0]
    unit = unit_rows(kept)
    if centers is None:
        directions, own = _means_without_the_sample(unit, kept_labels)
    else:
        directions, own = _given(centers, kept_labels)
    present = (directions != 0).any(dim=1)
    if int(present.sum()) < 2:
        raise DataError(
            "a label can only be doubted where there is another class; got the centre of one class. Pass those of two or more."
        )
    judged = (own != 0).any(dim=1)
    unit, own, kept_labels, rows = unit[judged], own[judged], kept_labels[judged], rows[judged]
    suggested = _nearest_other(unit, kept_labels, directions, present)
    own_angle = angle_between(unit, own).rad2deg()
    other_angle = angle_between(unit, directions[suggested]).rad2deg()
    score = own_angle - other_angle
    order = score.argsort(descending=True, stable=True)[:top]
    return Mislabelled(
        rows=rows[order],
        labels=kept_labels[order],
        suggested=suggested[order],
        own_angle=own_angle[order],
        other_angle=other_angle[order],
        num_judged=len(score),
        num_suspect=int((score > 0).sum()),
        paths=tuple(paths or ()),
    )


def _given(centers: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The unit centres (N, D), and for each sample (M, D) that of its own class; zero where there is none."""
    centers = centers.detach().to("cpu", torch.float64)
    if centers.ndim != 2 or int(labels.max()) >= len(centers):
        raise DataError(
            f"centers must have one row for each class, and the largest label is {int(labels.max())};"
            f" got the shape {tuple(centers.shape)}. Pass head.dominant_centers()."
        )
    present = (centers != 0).any(dim=1)
    directions = torch.zeros_like(centers)
    directions[present] = unit_rows(centers[present], what="centre")
    return directions, directions[labels]


def _means_without_the_sample(unit: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The mean direction of each class (N, D), and for each sample (M, D) that of the others of its class; zero where there is none."""
    num_classes = int(labels.max()) + 1
    counts = torch.bincount(labels, minlength=num_classes).to(unit.dtype).unsqueeze(1)
    sums = mean_per_class(unit, labels, num_classes) * counts
    return _directions(sums), _directions(sums[labels] - unit)


def _directions(sums: Tensor) -> Tensor:
    """Sums of unit vectors at length one. What rounding leaves of vectors that cancel is no direction."""
    lengths = sums.norm(dim=1, keepdim=True)
    return torch.where(lengths > 1e-9, sums / lengths.clamp_min(1e-9), 0.0)


def _nearest_other(unit: Tensor, labels: Tensor, directions: Tensor, present: Tensor) -> Tensor:
    """The class (M,) whose centre is the nearest that is not the sample's own. The search runs in float32, a tile of rows at a time."""
    nearest = torch.empty(len(unit), dtype=torch.int64)
    centres = directions.float().T.contiguous()
    tile = max(1, ENTRIES_AT_ONCE // len(directions))
    for start in range(0, len(unit), tile):
        rows = slice(start, start + tile)
        closeness = (unit[rows].float() @ centres).masked_fill_(~present, -math.inf)
        nearest[rows] = closeness.scatter_(1, labels[rows].unsqueeze(1), -math.inf).argmax(dim=1)
    return nearest

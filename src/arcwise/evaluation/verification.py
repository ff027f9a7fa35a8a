"""Verification: are two samples of the same class? Every pair is asked, and every threshold on the angle tried.

The angles of all M·(M−1)/2 pairs are counted in a fine histogram, tile by tile, so that the memory does not grow with the number of
pairs. A bin is 1/400 of a degree wide; angles within one bin count as ties, which bounds the resolution of the threshold. Up to 4,096
samples, and on a GPU always, the cosines are computed in float64; beyond that in float32, whose rounding moves an angle near 0° or 180°
by up to 0.03°, and elsewhere by far less than a bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from arcwise.errors import ConfigError, DataError
from arcwise.evaluation.angles import labelled, measuring_device, unit_rows
from arcwise.progress import Reporter

BINS_PER_DEGREE = 400
NUM_BINS = 180 * BINS_PER_DEGREE
TILE, GPU_TILE = 1024, 4096
FAR = 1e-3
FLOAT64_ROWS = 4096

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Verification:
    """How well one threshold on the angle tells pairs of the same class (genuine) from pairs of two classes (impostor).

    Attributes:
        eer: equal error rate: the share of errors at the threshold where as many impostors pass as genuine pairs are refused,
            interpolated between bins.
        threshold_degrees: that threshold.
        auc: the chance that a genuine pair has a smaller angle than an impostor pair; ties count half.
        tar_at_far: by false accept rate, the share of genuine pairs that pass at the largest threshold at which no larger share of
            impostors does (true accept rate).
        num_genuine, num_impostor: how many pairs of each kind there were.
        genuine, impostor: pairs per degree, 180 counts each.
    """

    eer: float
    threshold_degrees: float
    auc: float
    num_genuine: int
    num_impostor: int
    genuine: tuple[int, ...]
    impostor: tuple[int, ...]
    tar_at_far: dict[float, float] = field(default_factory=dict)

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        return [
            ("equal error rate", f"{100 * self.eer:.2f} %"),
            ("threshold at it", f"{self.threshold_degrees:.1f}°"),
            ("area under the curve", f"{self.auc:.4f}"),
            *((f"TAR at FAR = {far:g}", f"{100 * tar:.2f} %") for far, tar in self.tar_at_far.items()),
            ("genuine pairs", f"{self.num_genuine:,}"),
            ("impostor pairs", f"{self.num_impostor:,}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers, with the histogram for a figure: 181 edges in degrees, 180 counts of each kind."""
        return {
            "eer": self.eer,
            "threshold_degrees": self.threshold_degrees,
            "auc": self.auc,
            "tar_at_far": {f"{far:g}": tar for far, tar in self.tar_at_far.items()},
            "num_genuine": self.num_genuine,
            "num_impostor": self.num_impostor,
            "histogram": {
                "degrees": [float(degree) for degree in range(181)],
                "genuine": list(self.genuine),
                "impostor": list(self.impostor),
            },
        }


def verification(
    embeddings: Tensor, labels: Tensor, *, fars: Sequence[float] = (FAR,), reporter: Reporter | None = None
) -> Verification:
    """Compare every pair of embeddings (M, D) by angle, on the device where they are. Samples with a label of −1 take no part.

    Args:
        fars: the false accept rates at which the true accept rate is wanted.
    """
    if any(not 0 <= far <= 1 for far in fars):
        raise ConfigError(f"a false accept rate is a share between 0 and 1; got {tuple(fars)}. 0.001 is usual.")
    device = measuring_device(embeddings)
    embeddings, labels = labelled(embeddings, labels, device=device)
    _check_kinds(labels)
    unit = unit_rows(embeddings, device=device)
    if device.type == "cpu" and len(unit) > FLOAT64_ROWS:
        unit = unit.float()
    tile = TILE if device.type == "cpu" else GPU_TILE
    with (reporter or Reporter()).stage("verification, all pairs", _pairs(len(unit))) as stage:
        histogram = np.zeros((2, NUM_BINS), dtype=np.int64)
        for rows in range(0, len(unit), tile):
            for columns in range(rows, len(unit), tile):
                histogram += _count_tile(unit, labels, slice(rows, rows + tile), slice(columns, columns + tile))
                stage.update(done=int(histogram.sum()))
    return _from_histogram(impostor=histogram[0], genuine=histogram[1], fars=fars)


def _count_tile(unit: Tensor, labels: Tensor, a: slice, b: slice) -> Counts:
    """(2, bins): impostor and genuine pairs (i, j), i < j, with i in one tile and j in the other."""
    degrees = (unit[a] @ unit[b].T).clamp_(-1.0, 1.0).acos_().mul_(180.0 / math.pi)
    bins = degrees.mul_(BINS_PER_DEGREE).to(torch.int64).clamp_(0, NUM_BINS - 1)
    bins.add_(labels[a, None] == labels[None, b], alpha=NUM_BINS)
    if a == b:
        pairs = torch.triu_indices(len(bins), len(bins), offset=1, device=bins.device)
        bins = bins[pairs[0], pairs[1]]
    counts: Counts = torch.bincount(bins.flatten(), minlength=2 * NUM_BINS).cpu().numpy().reshape(2, NUM_BINS)
    return counts


def _from_histogram(*, genuine: Counts, impostor: Counts, fars: Sequence[float] = ()) -> Verification:
    num_genuine, num_impostor = int(genuine.sum()), int(impostor.sum())
    # At the lower edge of bin k, and one more at the top: pairs below the edge pass.
    passed = np.concatenate(([0], impostor.cumsum())) / num_impostor
    refused = 1.0 - np.concatenate(([0], genuine.cumsum())) / num_genuine
    eer, edge = _crossing(passed, refused)
    below = np.concatenate(([0], genuine.cumsum()))
    smaller = below[:-1].astype(np.float64) + 0.5 * genuine
    auc = float((smaller * impostor).sum() / (float(num_genuine) * num_impostor))
    return Verification(
        eer=eer,
        threshold_degrees=edge / BINS_PER_DEGREE,
        auc=auc,
        num_genuine=num_genuine,
        num_impostor=num_impostor,
        genuine=_per_degree(genuine),
        impostor=_per_degree(impostor),
        tar_at_far={far: float(below[np.searchsorted(passed, far, side="right") - 1]) / num_genuine for far in fars},
    )


def _crossing(passed: npt.NDArray[np.float64], refused: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Where the rising share of passed impostors meets the falling share of refused genuine pairs: (rate, position in bins)."""
    difference = passed - refused
    first = int(np.searchsorted(difference, 0.0, side="left"))
    if difference[first] == 0.0:
        # They can agree over a stretch of empty bins: the threshold is its middle.
        last = int(np.searchsorted(difference, 0.0, side="right")) - 1
        return float(passed[first]), (first + last) / 2
    share = -difference[first - 1] / (difference[first] - difference[first - 1])
    rate = passed[first - 1] + share * (passed[first] - passed[first - 1])
    return float(rate), first - 1 + float(share)


def _per_degree(counts: Counts) -> tuple[int, ...]:
    return tuple(int(count) for count in counts.reshape(180, BINS_PER_DEGREE).sum(axis=1))


def _pairs(num: int) -> int:
    return num * (num - 1) // 2


def _check_kinds(labels: Tensor) -> None:
    sizes = torch.bincount(labels)
    sizes = sizes[sizes > 0]
    if len(sizes) < 2:
        raise DataError(
            f"verification compares pairs within and between classes; got {len(labels)} samples of a single class. "
            "Pass samples of at least two classes."
        )
    if int(sizes.max()) < 2:
        raise DataError(
            f"verification compares pairs within and between classes; got {len(labels)} classes with one sample each. "
            "Pass at least two samples of some class."
        )

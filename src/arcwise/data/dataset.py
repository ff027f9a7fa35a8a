"""What every loader of this room hands on: two parts of labelled rows, in memory, with everything a reader must know about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from arcwise.data.one_shot import OneShot

# Rows a pass over a whole set takes at once, so that no pass needs a second copy of the set.
ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a data set.

    Args:
        images: uint8 (M, C, H, W); for features float32 (M, F).
        labels: int64 (M,), counted from 0; −1 is ignored by every head.
        paths: where each row came from, for folders and lists of files; else empty.
        true_labels: (M,) what the labels were before some of them were replaced on purpose; None where none was.
    """

    images: Tensor
    labels: Tensor
    paths: tuple[str, ...] = ()
    true_labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled images or features, split into a part to learn from and a part to judge by.

    Args:
        name: the name of a known set, or the stem of the user's folder or file.
        kind: "image" or "features".
        source: in plain words, where the data came from.
        classes: the names of the classes in training, and of those in the test where `test_classes` is empty.
        notes: sentences that the user must see: what was left out, and what stands in for something else.
        test_classes: the names of the classes in the test part where they are others; the test's labels count from 0 in them.
        one_shot: trials that belong to the set, beside the test part.
        quarter_turns: whether the training part holds its pictures turned by quarters too, as classes of their own.
    """

    name: str
    kind: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    source: str
    licence: str
    notes: tuple[str, ...] = ()
    test_classes: tuple[str, ...] = ()
    one_shot: OneShot | None = None
    quarter_turns: bool = False

    @property
    def num_classes(self) -> int:
        """How many classes there are in training."""
        return len(self.classes)

    @property
    def disjoint(self) -> bool:
        """Whether the test part holds classes of its own, which training never sees."""
        return bool(self.test_classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image, or (F,) of a row of features."""
        return tuple(self.train.images.shape[1:])

    @property
    def mean(self) -> Tensor:
        """The mean of the training part, float32: per channel with pixels in [0, 1], per column for features."""
        return self._mean_and_std[0]

    @property
    def std(self) -> Tensor:
        """The standard deviation beside `mean`; 1 where a channel or column never changes, so that dividing is safe."""
        return self._mean_and_std[1]

    @cached_property
    def _mean_and_std(self) -> tuple[Tensor, Tensor]:
        images = self.train.images
        mean, std = _pixel_moments(images) if images.dtype == torch.uint8 else _column_moments(images)
        std = torch.where(std > 0, std, torch.ones_like(std))
        return mean.to(torch.float32), std.to(torch.float32)


def _pixel_moments(images: Tensor) -> tuple[Tensor, Tensor]:
    """Moments per channel from exact whole-number sums, so that the number of threads cannot change them."""
    total = torch.zeros(images.shape[1], dtype=torch.int64)
    squares = torch.zeros_like(total)
    for rows in images.split(ROWS_AT_ONCE // 8):
        values = rows.to(torch.int32)
        total += values.sum(dim=(0, 2, 3))
        squares += values.square_().sum(dim=(0, 2, 3))
    num = max(images.numel() // images.shape[1], 1)
    mean = total.double() / num
    variance = squares.double() / num - mean.square()
    return mean / 255, variance.clamp(min=0).sqrt() / 255


def _column_moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """Two passes in float64: a column of large numbers that hardly differ keeps its deviation."""
    num = max(len(features), 1)
    total = torch.zeros(features.shape[1], dtype=torch.float64)
    for rows in features.split(ROWS_AT_ONCE):
        total += rows.double().sum(dim=0)
    mean = total / num
    squares = torch.zeros_like(mean)
    for rows in features.split(ROWS_AT_ONCE):
        squares += (rows.double() - mean).square().sum(dim=0)
    std = (squares / num).sqrt()
    # A column that is constant leaves only rounding behind: not a deviation to divide by.
    return mean, torch.where(std > 1e-12 * mean.abs(), std, torch.zeros_like(std))

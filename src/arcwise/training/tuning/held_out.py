"""Data to tune on: a part of the training part to learn from and another to score by. The test part is left behind here.

What goes into a trial is a new `Dataset`, made from the training part alone, so that no trial can look at a test sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from arcwise.data import Dataset, Split
from arcwise.data.splitting import stratified_split
from arcwise.errors import DataError

SHARE = 0.2
FEWEST_CLASSES = 2


@dataclass(frozen=True)
class HeldOut:
    """What trials get to see.

    Attributes:
        data: its test part was taken from the training part.
        measured: what trials are scored by, as a key of evaluation.json: "map_at_r" or "accuracy".
        told: in plain words, what was held out.
    """

    data: Dataset
    measured: str
    told: str


def hold_out(data: Dataset, seed: int) -> HeldOut:
    """Hold out classes where the test will be of unseen classes too, and samples of each class where it is of known ones."""
    return _hold_out_classes(data, seed) if data.disjoint else _hold_out_samples(data, seed)


def _hold_out_samples(data: Dataset, seed: int) -> HeldOut:
    kept, held = stratified_split(data.train.labels, test_share=SHARE, seed=seed)
    held = held[data.train.labels[held] >= 0]
    if not len(held):
        raise DataError(
            f"there is nothing to tune {data.name} on: no class has two training samples, one to learn from and one to score by."
            " Add samples."
        )
    made = _dataset(data, _rows(data.train, kept), _rows(data.train, held), data.classes, ())
    return HeldOut(
        made,
        "accuracy",
        f"{len(held):,} of the {len(data.train):,} training samples, a fifth of each class, scored by the accuracy of the nearest"
        " class mean",
    )


def _hold_out_classes(data: Dataset, seed: int) -> HeldOut:
    groups = groups_of(data.classes)
    held = _drawn(groups, seed)
    if len(held) < FEWEST_CLASSES or data.num_classes - len(held) < FEWEST_CLASSES:
        raise DataError(
            f"there are too few classes in {data.name} to hold some out for tuning: {data.num_classes} in {len(groups)} groups."
            " Add classes."
        )
    is_held = torch.zeros(data.num_classes, dtype=torch.bool)
    is_held[held] = True
    labels = data.train.labels
    label_is_held = (labels >= 0) & is_held[labels.clamp_min(0)]
    made = _dataset(
        data,
        _renumbered(_rows(data.train, (~label_is_held).nonzero().flatten()), ~is_held),
        _renumbered(_rows(data.train, label_is_held.nonzero().flatten()), is_held),
        tuple(name for name, out in zip(data.classes, is_held.tolist(), strict=True) if not out),
        tuple(name for name, out in zip(data.classes, is_held.tolist(), strict=True) if out),
    )
    whole = (
        f" of {sum(set(group) <= set(held) for group in groups)} whole groups" if len(groups) < data.num_classes else ""
    )
    return HeldOut(
        made,
        "map_at_r",
        f"{len(held):,} of the {data.num_classes:,} training classes{whole}, scored by MAP@R among themselves",
    )


def groups_of(classes: tuple[str, ...]) -> list[list[int]]:
    """Classes that belong together, as "Greek/character01" and "Greek/character02" do; else each class by itself.

    Characters of one alphabet resemble each other: scoring on an alphabet of which some were trained would be too easy.
    """
    names: dict[str, list[int]] = {}
    for number, name in enumerate(classes):
        names.setdefault(name.split("/")[0], []).append(number)
    grouped = all("/" in name for name in classes) and len(names) > 1
    return list(names.values()) if grouped else [[number] for number in range(len(classes))]


def _drawn(groups: list[list[int]], seed: int) -> list[int]:
    """Classes in whole groups, drawn until they are about a fifth of all."""
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed)).tolist()
    wanted = SHARE * sum(len(group) for group in groups)
    held: list[int] = []
    for number in order[:-1]:
        group = groups[number]
        if held and abs(len(held) + len(group) - wanted) > abs(len(held) - wanted):
            break
        held += group
    return sorted(held)


def _rows(split: Split, rows: Tensor) -> Split:
    return Split(split.images[rows], split.labels[rows])


def _renumbered(split: Split, present: Tensor) -> Split:
    """The same rows with the classes that are present counted from 0; −1 stays what it is."""
    new = torch.where(present, present.cumsum(0) - 1, -1)
    return Split(split.images, torch.where(split.labels >= 0, new[split.labels.clamp_min(0)], -1))


def _dataset(
    data: Dataset, train: Split, test: Split, classes: tuple[str, ...], test_classes: tuple[str, ...]
) -> Dataset:
    # Field by field: whatever else the original carries, such as trials of its own, stays behind.
    return Dataset(
        name=data.name,
        kind=data.kind,
        train=train,
        test=test,
        classes=classes,
        source=data.source,
        licence=data.licence,
        test_classes=test_classes,
    )

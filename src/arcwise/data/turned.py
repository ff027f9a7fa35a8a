"""Quarter turns: each picture turned by 90°, 180° and 270° is a class of its own.

A turned character is another character. Learning to tell it from the upright one makes four classes of one without another drawing
(Santoro et al. 2016, One-shot Learning with Memory-Augmented Neural Networks, section 4.1).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from arcwise.data.dataset import Dataset
from arcwise.errors import ConfigError

QUARTERS = (1, 2, 3)


def num_turned_classes(dataset: Dataset) -> int:
    """How many classes training has once quarter turns are among them."""
    return dataset.num_classes * (1 if dataset.quarter_turns else 1 + len(QUARTERS))


def with_quarter_turns(dataset: Dataset) -> Dataset:
    """The same data with four classes in training for each one, turned anti-clockwise. The test part stays as it is.

    A data set that has them already is returned as it is. Turned class j by k quarters is class k·N + j.
    """
    if dataset.quarter_turns:
        return dataset
    if dataset.kind != "image" or dataset.shape[1] != dataset.shape[2]:
        raise ConfigError(
            f"only square pictures can be turned by quarters; {dataset.name} holds {dataset.kind} of the shape {dataset.shape}."
            " Leave data.quarter_turns off."
        )
    if not dataset.disjoint:
        raise ConfigError(
            f"data.quarter_turns makes classes that the test part of {dataset.name} does not have, which is right only where the test"
            " holds classes of its own, as in omniglot. Leave it off."
        )
    train, num = dataset.train, dataset.num_classes
    images = torch.cat([train.images, *(torch.rot90(train.images, k, dims=(2, 3)) for k in QUARTERS)])

    def turned(labels: Tensor) -> Tensor:
        # −1 is ignored however it is turned.
        return torch.cat([torch.where(labels >= 0, labels + k * num, -1) for k in (0, *QUARTERS)])

    names = tuple(f"{name} turned {90 * k}°" for k in QUARTERS for name in dataset.classes)
    return replace(
        dataset,
        train=replace(
            train,
            images=images,
            labels=turned(train.labels),
            paths=train.paths * 4,
            true_labels=None if train.true_labels is None else turned(train.true_labels),
        ),
        classes=(*dataset.classes, *names),
        quarter_turns=True,
    )


def without_quarter_turns(dataset: Dataset) -> Dataset:
    """The data as it was before `with_quarter_turns`."""
    if not dataset.quarter_turns:
        return dataset
    train, num, classes = dataset.train, len(dataset.train) // 4, dataset.num_classes // 4
    upright = replace(
        train,
        images=train.images[:num],
        labels=train.labels[:num],
        paths=train.paths[:num],
        true_labels=None if train.true_labels is None else train.true_labels[:num],
    )
    return replace(dataset, train=upright, classes=dataset.classes[:classes], quarter_turns=False)

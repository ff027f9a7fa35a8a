"""Wrong labels on purpose: what does a loss make of data in which a known share of the labels is false?"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from arcwise.data._seeding import generator_for
from arcwise.data.dataset import Dataset
from arcwise.errors import ConfigError, DataError


def shuffle_labels(labels: Tensor, num_classes: int, *, share: float, seed: int) -> Tensor:
    """A copy of the labels (M,) in which a share of them is another class, drawn uniformly from all other classes.

    A pure function of its arguments. Labels of −1 stay as they are and do not count. Under one seed the labels that a small share
    replaces are among those of a larger one, and become the same wrong classes: a curve over shares differs in nothing else.
    """
    if not 0 <= share < 1:
        raise ConfigError(
            f"data.label_noise must be in [0, 1), a share of the training labels; got {share}. 0.2 replaces a fifth of them."
        )
    labelled = (labels >= 0).nonzero().flatten()
    count = round(share * len(labelled))
    if count == 0:
        return labels.clone()
    if num_classes < 2:
        raise DataError(
            f"label noise needs another class to draw; got {num_classes} class. Leave data.label_noise out."
        )
    generator = generator_for("label noise", seed)
    order = labelled[torch.randperm(len(labelled), generator=generator)]
    steps = torch.randint(1, num_classes, (len(labelled),), generator=generator)
    shuffled = labels.clone()
    rows = order[:count]
    shuffled[rows] = (labels[rows] + steps[:count]) % num_classes
    return shuffled


def with_label_noise(data: Dataset, *, share: float, seed: int) -> Dataset:
    """The data set with a share of its *training* labels replaced; the test part stays as it is.

    `train.true_labels` keeps what the labels were, and a note says what was done. A share of 0 gives the same object back.
    """
    if share == 0:
        return data
    if data.train.true_labels is not None:
        raise DataError(
            "the training labels of this data set have been shuffled before. Start from the data as it was loaded."
        )
    labels = shuffle_labels(data.train.labels, data.num_classes, share=share, seed=seed)
    count = int((labels != data.train.labels).sum())
    note = (
        f"{count:,} of {int((labels >= 0).sum()):,} training labels were replaced by another class on purpose"
        f" (data.label_noise = {share:g})."
    )
    train = replace(data.train, labels=labels, true_labels=data.train.labels)
    return replace(data, train=train, notes=(*data.notes, note))

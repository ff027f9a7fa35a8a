"""Divide labelled rows into a part to learn from and a part to judge by."""

from __future__ import annotations

import torch
from torch import Tensor

from arcwise.data._seeding import generator_for
from arcwise.errors import ConfigError


def stratified_split(labels: Tensor, *, test_share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows to test on, both int64 and in rising order, with every class in the same proportion.

    A class of two or more has at least one row in each part; the only row of a class goes to training. Which rows a class
    gives depends on the seed, the class and its own rows alone: another class that grows does not reshuffle it.
    """
    if not 0 < test_share < 1:
        raise ConfigError(f"test_share must lie between 0 and 1; got {test_share}. 0.2 keeps a fifth for the test.")
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        rows = (labels == label).nonzero().flatten()
        if len(rows) < 2:
            continue
        num_test = min(max(round(len(rows) * test_share), 1), len(rows) - 1)
        order = torch.randperm(len(rows), generator=generator_for("split", seed, label))
        chosen[rows[order[:num_test]]] = True
    return (~chosen).nonzero().flatten(), chosen.nonzero().flatten()


def lonely_classes_note(labels: Tensor, classes: tuple[str, ...], what: str) -> str | None:
    """The sentence about classes with a single row, of which the test part can have none."""
    counts = torch.bincount(labels[labels >= 0], minlength=len(classes)).tolist()
    lonely = [name for name, count in zip(classes, counts, strict=True) if count == 1]
    if not lonely:
        return None
    named = ", ".join(lonely[:5]) + (f" and {len(lonely) - 5} more" if len(lonely) > 5 else "")
    if len(lonely) == 1:
        return f"The class {named} has only one {what}: it is used for training, and the test says nothing about this class."
    return (
        f"{len(lonely)} classes have only one {what} each ({named}): these are used for training, "
        "and the test says nothing about these classes."
    )

"""The order in which an epoch visits its rows."""

from __future__ import annotations

import torch
from torch import Tensor

from arcwise.data._seeding import generator_for


def epoch_order(num: int, seed: int, epoch: int) -> Tensor:
    """A permutation of `num` rows, int64 (num,): a pure function of its arguments.

    Nothing is carried from one epoch to the next, so a run that resumes in the middle of an epoch finds its place again.
    """
    if num < 0:
        raise ValueError(f"num must be 0 or more rows; got {num}.")
    return torch.randperm(num, generator=generator_for("epoch order", seed, epoch))

"""All pairs of a batch: their cosines, and which are of one class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from arcwise.engines.unit_rows import unit_rows
from arcwise.losses.term import working_dtype


@dataclass(frozen=True)
class Pairs:
    """Every sample as an anchor (a row) with every other one (a column).

    Attributes:
        cosines: (B, B) of each pair.
        positive: (B, B) whether the two are different samples of one class.
        negative: (B, B) whether they are of two classes.
    """

    cosines: Tensor
    positive: Tensor
    negative: Tensor

    @property
    def comparable(self) -> Tensor:
        """(B,) the anchors that have both a positive and a negative."""
        return self.positive.any(dim=1) & self.negative.any(dim=1)


def all_pairs(x_BD: Tensor, labels_B: Tensor) -> Pairs:
    """The pairs of a batch; samples labelled −1 are in none."""
    x_hat_BD = unit_rows(x_BD, working_dtype(x_BD))
    valid_B = labels_B >= 0
    valid_BB = valid_B.unsqueeze(1) & valid_B.unsqueeze(0)
    same_BB = labels_B.unsqueeze(1) == labels_B.unsqueeze(0)
    itself_BB = torch.eye(len(labels_B), dtype=torch.bool, device=labels_B.device)
    return Pairs(x_hat_BD @ x_hat_BD.T, same_BB & valid_BB & ~itself_BB, ~same_BB & valid_BB)

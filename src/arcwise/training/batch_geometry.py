"""How the embeddings of a batch, or the class centres, lie to each other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Geometry:
    """A set of rows in a few numbers.

    Attributes:
        num: how many rows.
        num_zero: how many of length 0.
        finite: whether all their lengths are finite.
        length: the mean length.
        cosine: the mean over pairs, of different classes where labels are known; NaN where there is no such pair.
    """

    num: int
    num_zero: int
    finite: bool
    length: float
    cosine: float


def geometry_of(vectors: Tensor, labels: Tensor | None) -> Geometry:
    """How the rows lie to each other, in O(B·D) and with one transfer to the CPU.

    The sum of cos over all pairs is ‖Σ x̂‖², and over the pairs within a class ‖Σ_class x̂‖², so no (B, B) is needed.
    """
    x_BD = vectors.detach().float()
    length_B = torch.linalg.vector_norm(x_BD, dim=1)
    unit_BD = x_BD / length_B.clamp_min(torch.finfo(torch.float32).tiny).unsqueeze(1)
    if labels is None:
        # Every row is a class of its own: its pair with itself is what is left out.
        sum_D, within = unit_BD.sum(0), unit_BD.square().sum()
        pairs = torch.tensor(float(len(x_BD) * (len(x_BD) - 1)), device=x_BD.device)
    else:
        valid_B = labels >= 0
        unit_BD = unit_BD * valid_B.unsqueeze(1)
        _, class_B, count_C = torch.unique(labels, return_inverse=True, return_counts=True)
        sum_CD = unit_BD.new_zeros(len(count_C), x_BD.shape[1]).index_add_(0, class_B, unit_BD)
        sum_D, within = sum_CD.sum(0), sum_CD.square().sum()
        valid_C = torch.zeros_like(count_C).index_add_(0, class_B, valid_B.to(count_C.dtype)).float()
        pairs = valid_C.sum().square() - valid_C.square().sum()
    cosine = (sum_D.square().sum() - within) / pairs
    num_zero = (length_B == 0).sum()
    finite = torch.isfinite(length_B).all()
    facts = torch.stack([num_zero.float(), finite.float(), length_B.mean(), cosine.float()])
    zero, is_finite, length, mean_cosine = facts.tolist()
    return Geometry(len(x_BD), int(zero), bool(is_finite), length, mean_cosine)

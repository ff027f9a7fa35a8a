"""The reference engine: margin-softmax in plain torch, to be read beside the paper. Every other engine is tested against it.

Notation: B embeddings, width D, N classes. x̂ and ŵ are normalised *copies* of the embeddings and of the class centres.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.engines.stats import Stats
from arcwise.engines.unit_rows import unit_rows
from arcwise.margins.base import Margin


def cosines(x_BD: Tensor, w_ND: Tensor) -> Tensor:
    """cos θ between every embedding and every class centre, in float32 at least. (B, N)"""
    dtype = torch.promote_types(torch.promote_types(x_BD.dtype, w_ND.dtype), torch.float32)
    with torch.autocast(x_BD.device.type, enabled=False):
        return unit_rows(x_BD, dtype) @ unit_rows(w_ND, dtype).T


def margin_logits(cos_BN: Tensor, labels_B: Tensor, margin: Margin, scale: float) -> Tensor:
    """s·ψ(θ) for each sample's own class and s·cos θ for all others. Rows labelled −1 keep their plain cosines. (B, N)"""
    own_B1 = labels_B.clamp_min(0).unsqueeze(1)
    cos_own_B1 = cos_BN.gather(1, own_B1)
    psi_B1 = torch.where(labels_B.unsqueeze(1) >= 0, margin.target(cos_own_B1), cos_own_B1)
    return scale * cos_BN.scatter(1, own_B1, psi_B1)


def margin_softmax(x_BD: Tensor, w_ND: Tensor, labels_B: Tensor, margin: Margin, scale: float) -> tuple[Tensor, Stats]:
    """The mean cross-entropy of the logits with the margin, over the samples whose label is not −1, and the batch's statistics.

    Softmax → norm-softmax → margin in four lines: normalise both sides, so that only the angle is left; lower the own class's cosine
    by the margin; stretch by s; cross-entropy.
    """
    cos_BN = cosines(x_BD, w_ND)
    logits_BN = margin_logits(cos_BN, labels_B, margin, scale)
    loss = mean_cross_entropy(logits_BN, labels_B)
    return loss, batch_stats(cos_BN, cos_BN, labels_B)


def mean_cross_entropy(logits_BN: Tensor, labels_B: Tensor) -> Tensor:
    """Cross-entropy averaged over the labelled samples; 0, with zero gradients, when there are none."""
    total = F.cross_entropy(logits_BN, labels_B, ignore_index=-1, reduction="sum")
    return total / (labels_B >= 0).sum().clamp_min(1)


def batch_stats(plain_BN: Tensor, cos_BN: Tensor, labels_B: Tensor) -> Stats:
    """Predictions from the plain logits and cosines to the own centre."""
    with torch.no_grad():
        valid_B = labels_B >= 0
        own_B = cos_BN.gather(1, labels_B.clamp_min(0).unsqueeze(1)).squeeze(1)
        predicted_B = plain_BN.argmax(dim=1)
        return Stats(
            target_cosine=own_B.masked_fill(~valid_B, torch.nan),
            predicted=predicted_B,
            correct=(predicted_B == labels_B) & valid_B,
            valid=valid_B,
        )

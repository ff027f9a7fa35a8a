"""The reference engine: margin losses in plain torch, to be read beside the papers. Every other engine is tested against it.

Notation: B embeddings, width D, N classes with K centres each. x̂ and ŵ are normalised *copies* of embeddings and centres.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.engines.stats import Stats
from arcwise.engines.task import NO_FILTER, Outcome, Task
from arcwise.engines.unit_rows import row_lengths, unit_rows
from arcwise.margins.base import Margin, Samples, with_slope


def margin_loss(x_BD: Tensor, w_MD: Tensor, labels_B: Tensor, task: Task) -> Outcome:
    """The mean loss over the samples whose label is not −1, and what else a batch tells.

    Softmax → norm-softmax → margin in four lines: normalise both sides, so that only the angle is left; lower the own class's cosine
    by the margin; stretch by s; cross-entropy.
    """
    cos_BN, own_center_B = class_cosines(x_BD, w_MD, labels_B, task.centers_per_class)
    samples = look_at(x_BD, cos_BN, labels_B, task)
    state = {}
    if task.training:
        with torch.no_grad():
            state = task.margin.observe(samples)
        samples = replace(samples, state={**task.state, **state})
    scale = samples.state["scale"] if task.margin.owns_scale else task.scale
    psi_B = task.margin.psi(samples)
    logits_BN = margin_logits(cos_BN, psi_B, labels_B, replace(task, scale=scale, state=samples.state))
    if task.margin.reduction == "binary":
        loss = samples.mean(binary_loss(logits_BN, labels_B, task.margin.weights(scale)))
    else:
        loss = mean_cross_entropy(logits_BN, labels_B)
    penalty_B = task.margin.penalty(samples)
    if penalty_B is not None:
        loss = loss + samples.mean(penalty_B)
    stats = batch_stats(cos_BN, cos_BN, labels_B)
    if task.margin.reads_norm:
        stats = replace(stats, quality=samples.norm_B.detach())
    return Outcome(loss, stats, state, own_center_B)


def cosines(x_BD: Tensor, w_MD: Tensor) -> Tensor:
    """cos θ between every embedding and every centre, in float32 at least. (B, M)"""
    dtype = torch.promote_types(torch.promote_types(x_BD.dtype, w_MD.dtype), torch.float32)
    with torch.autocast(x_BD.device.type, enabled=False):
        return unit_rows(x_BD, dtype) @ unit_rows(w_MD, dtype).T


def class_cosines(x_BD: Tensor, w_MD: Tensor, labels_B: Tensor, centers_per_class: int) -> tuple[Tensor, Tensor]:
    """(B, N) the cosine to the nearest centre of every class, and (B,) which of its own class's centres that is."""
    cos_BM = cosines(x_BD, w_MD)
    if centers_per_class == 1:
        return cos_BM, torch.zeros_like(labels_B)
    cos_BN, nearest_BN = cos_BM.unflatten(1, (-1, centers_per_class)).max(dim=2)
    return cos_BN, nearest_BN.gather(1, labels_B.clamp_min(0).unsqueeze(1)).squeeze(1)


def look_at(x_BD: Tensor, cos_BN: Tensor, labels_B: Tensor, task: Task) -> Samples:
    """What the margin may ask about a batch."""
    own_B1 = labels_B.clamp_min(0).unsqueeze(1)

    def log_negatives(scale: Tensor | float) -> Tensor:
        return torch.logsumexp(scale * cos_BN.detach().scatter(1, own_B1, -torch.inf), dim=1)

    norm_B = row_lengths(x_BD) if task.margin.reads_norm else x_BD.new_empty(0)
    return Samples(cos_BN.gather(1, own_B1).squeeze(1), norm_B, labels_B, task.state, task.training, log_negatives)


def margin_logits(cos_BN: Tensor, psi_B: Tensor, labels_B: Tensor, task: Task) -> Tensor:
    """s·ψ(θ) for each sample's own class and s·cos θ, reshaped where the margin does so, for all others. (B, N)

    Rows labelled −1 keep their plain cosines.
    """
    valid_B1 = (labels_B >= 0).unsqueeze(1)
    own_BN = torch.zeros_like(cos_BN, dtype=torch.bool).scatter(1, labels_B.clamp_min(0).unsqueeze(1), valid_B1)
    others_BN = cos_BN
    if task.margin.reshapes_negatives:
        others_BN = torch.where(valid_B1, reshaped(cos_BN, psi_B, task.margin, task), cos_BN)
    if task.filter_above < NO_FILTER:
        others_BN = others_BN.masked_fill(valid_B1 & (cos_BN > task.filter_above), -torch.inf)
    logits_BN = task.scale * torch.where(own_BN, psi_B.unsqueeze(1), others_BN)
    return logits_BN + task.margin.offset(task.state) if task.margin.reduction == "binary" else logits_BN


def reshaped(cos_BN: Tensor, psi_B: Tensor, margin: Margin, task: Task) -> Tensor:
    """The other classes' cosines as the margin wants them."""
    with torch.no_grad():
        value_BN, slope_BN = margin.negatives(cos_BN, psi_B.unsqueeze(1), task.state)
    return with_slope(value_BN, slope_BN, cos_BN)


def binary_loss(logits_BN: Tensor, labels_B: Tensor, weights: tuple[Tensor | float, Tensor | float]) -> Tensor:
    """(B,) a yes-or-no question for each class: softplus(−z) for the own one, softplus(z) for all others, weighed."""
    own_weight, other_weight = weights
    own_B1 = labels_B.clamp_min(0).unsqueeze(1)
    own_B = F.softplus(-logits_BN.gather(1, own_B1)).squeeze(1)
    others_B = F.softplus(logits_BN.scatter(1, own_B1, -torch.inf)).sum(dim=1)
    return own_weight * own_B + other_weight * others_B


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

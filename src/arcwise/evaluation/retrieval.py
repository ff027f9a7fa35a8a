"""Retrieval: each sample asks for the others of its class, and all samples but itself are ranked by angle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from arcwise.errors import ConfigError, DataError
from arcwise.evaluation.angles import labelled, measuring_device, unit_rows
from arcwise.evaluation.verification import FLOAT64_ROWS
from arcwise.progress import Reporter

TILE_CELLS = 1 << 24  # cosines in memory at a time


@dataclass(frozen=True)
class Retrieval:
    """How well the nearest neighbours of a sample are of its class. Shares of one.

    Attributes:
        recall: by k, the share of queries that have a sample of their class among the k nearest (Recall@k).
        map_at_r: mean average precision at R (Musgrave, Belongie and Lim 2020, A Metric Learning Reality Check, section 3.2): for a
            query with R others of its class, (1/R) Σ_{i ≤ R} P(i)·rel(i), where P(i) is the precision among the i nearest and rel(i)
            whether the i-th is of its class; then the mean over queries.
        r_precision: the share of a query's R nearest that are of its class; the mean over queries.
        num_queries: samples that have another one of their class; the rest are only ever found.
        num_samples: all that were ranked.
        num_classes: classes among them.
    """

    recall: dict[int, float]
    map_at_r: float
    r_precision: float
    num_queries: int
    num_samples: int
    num_classes: int

    @property
    def recall_at_1(self) -> float:
        return self.recall[1]

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        return [
            *((f"Recall@{k}", f"{100 * share:.2f} %") for k, share in self.recall.items()),
            ("MAP@R", f"{100 * self.map_at_r:.2f} %"),
            ("R-precision", f"{100 * self.r_precision:.2f} %"),
            ("queries", f"{self.num_queries:,}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers."""
        return {
            "recall": {str(k): share for k, share in self.recall.items()},
            "map_at_r": self.map_at_r,
            "r_precision": self.r_precision,
            "num_queries": self.num_queries,
            "num_samples": self.num_samples,
            "num_classes": self.num_classes,
        }


def retrieval(
    embeddings: Tensor, labels: Tensor, *, ks: Sequence[int] = (1, 5, 10), reporter: Reporter | None = None
) -> Retrieval:
    """Rank all other samples for each sample, on the device where the embeddings (M, D) are.

    The ranking is exact, tile by tile, so that the memory does not grow with the square of M. Among equal cosines the samples of
    other classes come first, so that embeddings that fell together earn nothing. Labels of −1 take no part.

    Args:
        ks: the k of Recall@k; 1 is always among them.
    """
    if any(k < 1 for k in ks):
        raise ConfigError(f"the k of Recall@k counts neighbours and is at least 1; got {tuple(ks)}.")
    device = measuring_device(embeddings)
    embeddings, labels = labelled(embeddings, labels, device=device)
    unit = unit_rows(embeddings, device=device)
    if device.type == "cpu" and len(unit) > FLOAT64_ROWS:
        unit = unit.float()
    num_others = torch.bincount(labels)[labels] - 1
    rows = (num_others > 0).nonzero().flatten()
    if not len(rows):
        raise DataError(
            f"retrieval looks for other samples of the same class; got {len(labels)} samples of as many classes. "
            "Pass at least two samples of some class."
        )
    wanted = sorted({1, *ks})
    depth = min(max(int(num_others.max()), wanted[-1]), len(unit) - 1)
    place_K = torch.arange(1, depth + 1, device=device)
    sums = torch.zeros(len(wanted) + 2, dtype=torch.float64, device=device)
    with (reporter or Reporter()).stage("retrieval, all samples", len(rows)) as stage:
        for part in rows.split(max(1, TILE_CELLS // len(unit))):
            found_TK = _found(unit, labels, part, depth)
            r_T1 = num_others[part, None]
            within_TK = found_TK & (place_K <= r_T1)
            precision_TK = within_TK.cumsum(dim=1) / place_K
            per_query = [found_TK[:, :k].any(dim=1).double().sum() for k in wanted]
            per_query.append(((precision_TK * within_TK).sum(dim=1, dtype=torch.float64) / r_T1[:, 0]).sum())
            per_query.append((within_TK.sum(dim=1, dtype=torch.float64) / r_T1[:, 0]).sum())
            sums += torch.stack(per_query)
            stage.advance(len(part))
    *recalls, map_at_r, r_precision = (sums / len(rows)).tolist()
    return Retrieval(
        recall=dict(zip(wanted, recalls, strict=True)),
        map_at_r=map_at_r,
        r_precision=r_precision,
        num_queries=len(rows),
        num_samples=len(labels),
        num_classes=len(labels.unique()),
    )


def recall_at_1(embeddings: Tensor, labels: Tensor) -> float:
    """Recall@1 alone, as `retrieval` gives it: quick enough to be asked for again and again while training goes on."""
    device = measuring_device(embeddings)
    embeddings, labels = labelled(embeddings, labels, device=device)
    unit = unit_rows(embeddings, device=device).float()
    rows = (torch.bincount(labels)[labels] > 1).nonzero().flatten()
    right = 0
    for part in rows.split(max(1, TILE_CELLS // len(unit))):
        cos_TM = unit[part] @ unit.T
        same_TM = labels[part, None] == labels
        best_other_T = cos_TM.masked_fill(same_TM, -torch.inf).amax(dim=1)
        cos_TM[torch.arange(len(part), device=device), part] = -torch.inf
        right += int((cos_TM.masked_fill_(~same_TM, -torch.inf).amax(dim=1) > best_other_T).sum())
    return right / max(len(rows), 1)


def _found(unit: Tensor, labels: Tensor, rows: Tensor, depth: int) -> Tensor:
    """(T, depth): whether the first, second … nearest sample of each of these rows is of its class."""
    cos_TM = unit[rows] @ unit.T
    cos_TM[torch.arange(len(rows), device=rows.device), rows] = -torch.inf
    # One more than is asked for tells where a tie goes on past `depth`. The sample itself is the last of all and ties with none.
    cos_TK, nearest_TK = cos_TM.topk(depth + 1, dim=1)
    torn_T = cos_TK[:, -2] == cos_TK[:, -1]
    cos_TK, nearest_TK = cos_TK[:, :depth], nearest_TK[:, :depth]
    same_TK = labels[nearest_TK] == labels[rows, None]
    # Another class goes first in a tie.
    order_TK = same_TK.to(torch.int8).argsort(dim=1, stable=True)
    order_TK = order_TK.gather(1, cos_TK.gather(1, order_TK).argsort(dim=1, descending=True, stable=True))
    found_TK = same_TK.gather(1, order_TK)
    if bool(torn_T.any()):
        last_U1 = cos_TK[torn_T, -1:]
        other_UM = labels[rows[torn_T], None] != labels
        num_nearer_U1 = (cos_TK[torn_T] > last_U1).sum(dim=1, keepdim=True)
        num_other_U1 = ((cos_TM[torn_T] == last_U1) & other_UM).sum(dim=1, keepdim=True)
        place_K = torch.arange(depth, device=rows.device)
        within_tie_UK = place_K - num_nearer_U1
        found_TK[torn_T] = torch.where(within_tie_UK < 0, found_TK[torn_T], within_tie_UK >= num_other_U1)
    return found_TK

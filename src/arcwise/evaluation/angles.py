"""Unit vectors and the angles between them, safe at both ends of the range."""

from __future__ import annotations

import torch
from torch import Tensor

from arcwise.errors import DataError

NAMED_ROWS = 5
CPU = torch.device("cpu")


def measuring_device(embeddings: Tensor) -> torch.device:
    """Where to measure embeddings: on their own GPU, else on the CPU (not every accelerator knows float64)."""
    return embeddings.device if embeddings.device.type == "cuda" else CPU


def unit_rows(vectors: Tensor, *, what: str = "embedding", device: torch.device = CPU) -> Tensor:
    """The rows of a matrix, scaled to length one, in float64. A row without a direction (zero or not finite) is an error that names it."""
    if vectors.ndim != 2:
        raise DataError(f"expected a matrix with one {what} a row; got the shape {tuple(vectors.shape)}. Reshape it.")
    vectors = vectors.detach().to(device, torch.float64)
    _refuse(~torch.isfinite(vectors).all(dim=1), f"{what}s that are not finite have no direction")
    # Divided by the largest entry first, so that squaring neither overflows nor vanishes.
    largest = vectors.abs().amax(dim=1, keepdim=True)
    _refuse(largest[:, 0] == 0, f"{what}s of length zero have no direction")
    vectors = vectors / largest
    lengths: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors / lengths


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """The angle in radians between unit vectors along the last dimension.

    Computed as 2·atan2(|a − b|, |a + b|) (Kahan), which keeps full precision near 0 and π, where arccos loses half of the digits.
    """
    apart: Tensor = (a - b).norm(dim=-1)
    together: Tensor = (a + b).norm(dim=-1)
    return 2.0 * torch.atan2(apart, together)


def labelled(embeddings: Tensor, labels: Tensor, *, device: torch.device = CPU) -> tuple[Tensor, Tensor]:
    """The embeddings and labels of the samples that have one: a label of −1 means ignored."""
    labels = labels.detach().to(device, torch.int64)
    if labels.ndim != 1 or len(labels) != len(embeddings):
        raise DataError(
            f"expected one label for each embedding; got {len(embeddings)} embeddings and labels of the shape "
            f"{tuple(labels.shape)}. Pass labels of the shape ({len(embeddings)},)."
        )
    keep = labels >= 0
    if not bool(keep.any()):
        raise DataError("there is nothing to measure: no sample has a label of 0 or more. Pass labelled samples.")
    embeddings = embeddings.detach().to(device)
    return (embeddings, labels) if bool(keep.all()) else (embeddings[keep], labels[keep])


def _refuse(bad: Tensor, sentence: str) -> None:
    rows = torch.nonzero(bad)[:, 0].tolist()
    if rows:
        named = ", ".join(str(row) for row in rows[:NAMED_ROWS]) + (", …" if len(rows) > NAMED_ROWS else "")
        raise DataError(
            f"{sentence}: {len(rows)} of {len(bad)}, in rows {named}. Leave them out, or look at what made them."
        )

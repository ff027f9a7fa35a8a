"""What every term beside a head is: (embeddings, labels, centres) -> a scalar."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from arcwise.errors import ConfigError
from arcwise.heads.inputs import check_embeddings, check_labels


class Term(nn.Module, ABC):
    """A loss on angles or pairs, used alone or added to a head's loss with a weight.

        loss = head(embeddings, labels) + 0.1 * term(embeddings, labels, head.weight)

    Every term is called alike and takes what it needs. Labels of −1 are ignored, and a batch in which there is nothing to compare gives
    0 with zero gradients. Subclasses implement `loss`.

    Attributes:
        dim: the width of the embeddings, where the term has centres of its own; else None.
        num_classes: beside `dim`.
    """

    name: ClassVar[str] = ""
    # What the value is multiplied by beside a head, where nothing else is said.
    default_weight: ClassVar[float]
    # Whether it is to be given the head's class centres.
    needs_centers: ClassVar[bool] = False
    # Whether it has centres of its own, and so a constructor that begins with dim and num_classes.
    owns_centers: ClassVar[bool] = False
    # Whether it says the same of embeddings of any length.
    is_angular: ClassVar[bool] = True
    # The parameters worth tuning, each with the range to look in; the weight is searched from a tenth of its default to ten times it.
    search: ClassVar[Mapping[str, tuple[float, float]]] = {}

    dim: int | None = None
    num_classes: int | None = None

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, embeddings: Tensor, labels: Tensor, centers: Tensor | None = None) -> Tensor:
        return super().__call__(embeddings, labels, centers)  # type: ignore[no-any-return]

    def forward(self, embeddings: Tensor, labels: Tensor, centers: Tensor | None = None) -> Tensor:
        """The term's value for a batch.

        Args:
            embeddings: (B, D) in float32, float16, bfloat16 or float64, under autocast or not. They need not be normalised.
            labels: (B,) whole numbers from 0; −1 marks a sample to ignore.
            centers: (N, D) the head's class centres, `head.weight`, for the terms that need them; others leave them alone.

        Returns:
            A scalar in float32 (float64 for float64 input).
        """
        check_embeddings(embeddings, self.dim)
        num_classes = self.num_classes
        if self.needs_centers:
            centers = self._checked(centers, embeddings)
            num_classes = len(centers)
        labels = check_labels(labels, embeddings, num_classes)
        # An ignored row must not even pass on a NaN.
        embeddings = torch.where((labels >= 0).unsqueeze(1), embeddings, 0.0)
        with torch.autocast(embeddings.device.type, enabled=False):
            return self.loss(embeddings, labels, centers)

    @abstractmethod
    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        """The value for a batch that has been checked; rows to ignore are zeros. Called without autocast."""

    def _checked(self, centers: Tensor | None, x_BD: Tensor) -> Tensor:
        kind = type(self).__name__
        if centers is None:
            raise ConfigError(f"{kind} needs the class centres; got none. Pass them as centers=head.weight.")
        if centers.dim() != 2 or centers.shape[1] != x_BD.shape[1] or not centers.is_floating_point():
            raise ConfigError(
                f"{kind} needs class centres of the shape (classes, {x_BD.shape[1]}), floating point like the embeddings;"
                f" got {tuple(centers.shape)} in {centers.dtype}. Pass head.weight of a head of that width."
            )
        if centers.device != x_BD.device:
            raise ConfigError(
                f"centers are on {centers.device} and embeddings on {x_BD.device}; move one to the other."
            )
        return centers


def working_dtype(*tensors: Tensor) -> torch.dtype:
    """The widest of their dtypes, float32 at least."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def mean_where(mask: Tensor, values: Tensor) -> Tensor:
    """The mean of the values that the mask picks; 0 with zero gradients where it picks none."""
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp_min(1)

"""What all heads have in common: class centres, and the same three questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, overload

import torch
from torch import Tensor, nn

from arcwise.engines import reference
from arcwise.engines.stats import Stats
from arcwise.heads.inputs import check_embeddings, check_labels, check_size


class Head(nn.Module, ABC):
    """The last layer of a network that learns classes: (embeddings, labels) -> loss.

    Attributes:
        weight: (N, D) the class centres, (N·K, D) where each class has K. They may have any norm: only normalised copies of them are
            used where angles count.
    """

    def __init__(self, dim: int, num_classes: int, centers_per_class: int = 1) -> None:
        super().__init__()
        check_size(dim, num_classes)
        self.dim = dim
        self.num_classes = num_classes
        self.centers_per_class = centers_per_class
        self.weight = nn.Parameter(torch.empty(num_classes * centers_per_class, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the centres anew, in all directions, with a norm around 1."""
        nn.init.normal_(self.weight, std=self.dim**-0.5)

    @overload
    def __call__(self, embeddings: Tensor, labels: Tensor, *, return_stats: Literal[False] = False) -> Tensor: ...
    @overload
    def __call__(self, embeddings: Tensor, labels: Tensor, *, return_stats: Literal[True]) -> tuple[Tensor, Stats]: ...
    def __call__(
        self, embeddings: Tensor, labels: Tensor, *, return_stats: bool = False
    ) -> Tensor | tuple[Tensor, Stats]:
        return super().__call__(embeddings, labels, return_stats=return_stats)  # type: ignore[no-any-return]

    def forward(
        self, embeddings: Tensor, labels: Tensor, *, return_stats: bool = False
    ) -> Tensor | tuple[Tensor, Stats]:
        """The loss of a batch.

        Args:
            embeddings: (B, D) in float32, float16, bfloat16 or float64, under autocast or not. They need not be normalised.
            labels: (B,) whole numbers in 0 … N − 1; −1 marks a sample to ignore, whatever its embedding holds.
            return_stats: also return the batch's `Stats`, measured without the margin.

        Returns:
            The mean loss over the labelled samples, a scalar in float32 (float64 for float64 input). It is NaN where a labelled
            embedding holds NaN or infinity: looking for that beforehand would wait for the device at every step. An embedding of
            zeros has no direction: it counts as standing at 90° to every centre and gets no gradient.
        """
        check_embeddings(embeddings, self.dim)
        labels = check_labels(labels, embeddings, self.num_classes)
        # 0·NaN is NaN: an ignored row that is not finite would reach every centre's gradient.
        harmless_B = (labels >= 0) | embeddings.isfinite().all(dim=1)
        loss, stats = self.loss(torch.where(harmless_B.unsqueeze(1), embeddings, 0.0), labels)
        return (loss, stats) if return_stats else loss

    @abstractmethod
    def loss(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
        """The loss and the statistics of a batch that has been checked."""

    @abstractmethod
    def logits(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """(B, N) class-wise affinity scores."""

    def cosines(self, embeddings: Tensor) -> Tensor:
        """(B, N) the cosine between every embedding and the nearest centre of every class, without margin or scale."""
        check_embeddings(embeddings, self.dim)
        cos_BM = reference.cosines(embeddings, self.weight)
        return cos_BM.unflatten(1, (-1, self.centers_per_class)).amax(dim=2) if self.centers_per_class > 1 else cos_BM

    def dominant_centers(self) -> Tensor:
        """(N, D) the centre of each class, with gradients; of several, the one that most of its samples lie nearest to."""
        return self.weight

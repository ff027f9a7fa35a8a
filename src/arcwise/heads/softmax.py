"""The plain softmax classifier, with the same call as the margin heads."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from arcwise.engines import reference
from arcwise.engines.stats import Stats
from arcwise.heads.head import Head
from arcwise.heads.inputs import check_embeddings, check_labels


class SoftmaxHead(Head):
    """z = W x + b and cross-entropy: what every classifier ends in, and what the margin heads are measured against.

    Lengths count here: a longer class vector wins a larger region, and a longer embedding is a surer one.

    Prefer `NormSoftmax` or a margin when embeddings are compared with each other later: with plain softmax nothing asks for a small
    angle within a class.

    Asks for: the right class winning.
    Take it when: you want a plain baseline, or only ever classify the classes you train on.

    Formula:
        every class: w_j·x + b_j

    Args:
        dim: the width D of the embeddings.
        num_classes: the number of classes N.
        bias: whether each class has a bias b.

    Paper:
        John S. Bridle. Training Stochastic Model Recognition Algorithms as Networks can Lead to Maximum Mutual Information Estimation
        of Parameters. NIPS 1989.
    """

    def __init__(self, dim: int, num_classes: int, bias: bool = True) -> None:
        super().__init__(dim, num_classes)
        self.bias = nn.Parameter(torch.zeros(num_classes)) if bias else None

    def loss(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
        logits_BN = self._plain_logits(embeddings)
        with torch.no_grad():
            cos_BN = reference.cosines(embeddings, self.weight)
        return reference.mean_cross_entropy(logits_BN, labels), reference.batch_stats(logits_BN, cos_BN, labels)

    def logits(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """(B, N) the plain logits W x + b. Labels are taken, and make no difference: there is no margin."""
        check_embeddings(embeddings, self.dim)
        if labels is not None:
            check_labels(labels, embeddings, self.num_classes)
        return self._plain_logits(embeddings)

    def _plain_logits(self, x_BD: Tensor) -> Tensor:
        dtype = torch.promote_types(torch.promote_types(x_BD.dtype, self.weight.dtype), torch.float32)
        with torch.autocast(x_BD.device.type, enabled=False):
            bias_N = self.bias.to(dtype) if self.bias is not None else None
            return F.linear(x_BD.to(dtype), self.weight.to(dtype), bias_N)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, num_classes={self.num_classes}, bias={self.bias is not None}"

"""CenterLoss: embeddings near a running mean of their class."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.heads.inputs import check_size
from arcwise.losses.registry import register
from arcwise.losses.term import Term, mean_where, working_dtype


@register("center")
class CenterLoss(Term):
    """Half the squared distance between an embedding and a running centre of its class.  Wen et al. 2016, eq. 2.

    It was made to stand beside a plain softmax, which separates classes and leaves each of them long and wide. The centres are the
    term's own and are not learnt by gradient: each training forward moves them a step towards the embeddings that it saw, by the
    paper's rule. Lengths count here, unlike in the angular terms. The paper writes both losses as sums over the batch and here both
    are means, so the weight between them is the paper's λ.

    Prefer `IntraLoss` beside a head that works by angle: it asks for the same closeness without fixing the embeddings' lengths.

    Asks for: a small distance to the mean of the class.
    Take it when: the head is `SoftmaxHead`.

    Formula:
        mean over samples of ½‖x − c_y‖²
        each training step: c_j ← c_j + α · Σ (x_i − c_j) / (1 + n_j) over the n_j samples i of class j

    Args:
        dim: the width D of the embeddings.
        num_classes: the number of classes N.
        alpha: how far the centres follow, 0 ≤ α ≤ 1; 0 leaves them at the origin.

    Paper:
        Yandong Wen, Kaipeng Zhang, Zhifeng Li, Yu Qiao. A Discriminative Feature Learning Approach for Deep Face Recognition.
        ECCV 2016.
    """

    default_weight: ClassVar[float] = 0.003
    owns_centers: ClassVar[bool] = True
    is_angular: ClassVar[bool] = False

    centers: Tensor

    def __init__(self, dim: int, num_classes: int, alpha: float = 0.5) -> None:
        super().__init__()
        check_size(dim, num_classes)
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha must be in [0, 1], a share of the way to the class's mean; got {alpha:g}.")
        self.dim, self.num_classes, self.alpha = dim, num_classes, alpha
        self.register_buffer("centers", torch.zeros(num_classes, dim))

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        dtype, valid_B = working_dtype(x_BD, self.centers), labels_B >= 0
        away_BD = x_BD.to(dtype) - self.centers[labels_B.clamp_min(0)].to(dtype)
        value = mean_where(valid_B, away_BD.square().sum(dim=1) / 2)
        if self.training and torch.is_grad_enabled():
            self._follow(away_BD.detach(), labels_B.clamp_min(0), valid_B)
        return value

    @torch.no_grad()
    def _follow(self, away_BD: Tensor, class_B: Tensor, valid_B: Tensor) -> None:
        """Move each centre that was seen by −α·Δc_j (eq. 4)."""
        away_BD = torch.where(valid_B.unsqueeze(1), away_BD, 0.0).to(self.centers.dtype)
        sum_ND = torch.zeros_like(self.centers).index_add_(0, class_B, away_BD)
        count_N = self.centers.new_zeros(len(self.centers)).index_add_(0, class_B, valid_B.to(self.centers.dtype))
        self.centers += self.alpha * sum_ND / (1 + count_N).unsqueeze(1)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, num_classes={self.num_classes}, alpha={self.alpha:g}"

"""The loss of a head whose margin is still growing, kept out of compiled graphs.

torch.compile would make a new graph for every step of the warm-up, give up after eight of them, and leave the model around the head
uncompiled for the rest of the training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from arcwise.engines.stats import Stats

if TYPE_CHECKING:
    from arcwise.heads.margin import MarginHead


@torch.compiler.disable  # type: ignore[untyped-decorator]
def warming_loss(head: MarginHead, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Stats]:
    """The loss at the margin that is in force now; a training forward brings the head one step further."""
    margin = head.margin.at(head.margin_fraction)
    if head.training and torch.is_grad_enabled():
        head.warm_up()
    return head.loss_under(margin, embeddings, labels)

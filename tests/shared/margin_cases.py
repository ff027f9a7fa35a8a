"""Heads to test margins with, whatever the margin asks for."""

from __future__ import annotations

from typing import Any

import torch

from arcwise.heads import MarginHead
from arcwise.margins import Margin, build, names


def head_of(
    margin: Margin | str, dim: int = 4, num_classes: int = 6, scale: float = 12.0, **options: Any
) -> MarginHead:
    """A head with this scale, or with the margin's own where that is the margin's affair."""
    margin = build(margin) if isinstance(margin, str) else margin
    return MarginHead(dim, num_classes, margin, "auto" if margin.owns_scale else scale, **options)


def settled(head: MarginHead, batches: int = 3) -> MarginHead:
    """The head after a few training batches, in evaluation mode: what the margin keeps is there and stays, and nothing is drawn."""
    generator = torch.Generator().manual_seed(7)
    head.train()
    for _ in range(batches):
        x = 3 * torch.randn(16, head.dim, generator=generator)
        head(x.to(head.weight.dtype), torch.randint(0, head.num_classes, (16,), generator=generator))
    head.eval()
    return head


def function_of_the_angle(name: str) -> bool:
    """Whether this margin is softmax over cosines with ψ in the own class's place, and nothing else."""
    margin = build(name)
    facts_free = not (margin.reads_norm or margin.owns_scale or margin.reshapes_negatives)
    return facts_free and margin.reduction == "softmax" and name not in {"elasticface", "long-tail"}


FUNCTIONS_OF_THE_ANGLE = [name for name in names() if function_of_the_angle(name)]

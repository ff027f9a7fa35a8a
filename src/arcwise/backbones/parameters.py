"""How large a network is."""

from __future__ import annotations

from torch import nn


def count_parameters(module: nn.Module) -> int:
    """The number of values that training changes; one that is shared counts once."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)

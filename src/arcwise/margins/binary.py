"""Where the threshold of a binary reduction begins."""

from __future__ import annotations

import math


def balanced_offset(own: float, other: float, num_others: int, own_weight: float, other_weight: float) -> float:
    """The b at which the own class pulls b up exactly as strongly as all other classes pull it down.

    A sample's loss is own_weight·softplus(−(own + b)) + other_weight·Σ softplus(other + b). Begun elsewhere, b would have to travel
    first, and the centres with it.

    Args:
        own: the own class's logit without b.
        other: each other class's logit without b.
    """
    low, high = -1e4, 1e4
    for _ in range(200):
        b = (low + high) / 2
        rising = own_weight * _sigmoid(-(own + b)) > other_weight * num_others * _sigmoid(other + b)
        low, high = (b, high) if rising else (low, b)
    return low


def _sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))

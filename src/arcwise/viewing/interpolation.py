"""The way between two snapshots: along great circles, as a turning direction moves."""

from __future__ import annotations

import numpy as np

from arcwise.viewing.run_folder import Array

ALMOST_OPPOSITE = -0.9995


def along_great_circles(start_MD: Array, end_MD: Array, share: float) -> Array:
    """Unit vectors `share` of the way from one direction to the other; a zero vector, which has no direction, grows or shrinks."""
    cos_M = np.clip(np.einsum("md,md->m", start_MD, end_MD, dtype=np.float64), -1, 1)
    angle_M = np.arccos(cos_M)[:, None]
    sin_M = np.sin(angle_M)
    nearly_equal = sin_M < 1e-4
    safe = np.where(nearly_equal, 1.0, sin_M)
    weight_start = np.where(nearly_equal, 1 - share, np.sin((1 - share) * angle_M) / safe)
    weight_end = np.where(nearly_equal, share, np.sin(share * angle_M) / safe)
    moved = weight_start * start_MD + weight_end * end_MD
    pointless = (np.abs(start_MD).sum(axis=1) == 0) | (np.abs(end_MD).sum(axis=1) == 0)
    moved[pointless] = (1 - share) * start_MD[pointless] + share * end_MD[pointless]
    opposite = (cos_M < ALMOST_OPPOSITE) & ~pointless
    if opposite.any():
        moved[opposite] = _half_turn(start_MD[opposite], share)
    return np.asarray(moved, dtype=np.float32)


def _half_turn(start_MD: Array, share: float) -> Array:
    """Opposite directions have no shortest way: take the one over the axis that `start` has least of."""
    least = np.abs(start_MD).argmin(axis=1)
    over = np.zeros_like(start_MD)
    over[np.arange(len(over)), least] = 1
    over -= np.einsum("md,md->m", over, start_MD)[:, None] * start_MD
    over /= np.linalg.norm(over, axis=1, keepdims=True)
    return np.asarray(np.cos(np.pi * share) * start_MD + np.sin(np.pi * share) * over, dtype=np.float32)

"""Accuracy under noise, by angle and by distance, over the seeds of each loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from arcwise.reporting.conclusion import NoisePoint
from arcwise.reporting.measured import mean
from arcwise.reporting.reading import Run


def noise_points(runs: Mapping[str, Sequence[Run]]) -> tuple[NoisePoint, ...]:
    """One point for each kind of noise and loss, in the order of the files."""
    collected: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for loss, listed in runs.items():
        for run in listed:
            for entry in run.evaluation.get("robustness") or ():
                if isinstance(entry, Mapping) and _number(entry.get("angle")) and _number(entry.get("distance")):
                    key = (str(entry.get("noise", "noise")), loss)
                    collected.setdefault(key, []).append((float(entry["angle"]), float(entry["distance"])))
    return tuple(
        NoisePoint(noise, loss, mean([angle for angle, _ in pairs]), mean([distance for _, distance in pairs]))
        for (noise, loss), pairs in collected.items()
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

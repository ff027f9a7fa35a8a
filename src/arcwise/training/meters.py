"""Running sums over an epoch, kept on the device so that no step waits for them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from arcwise.engines import Stats


class Meters:
    """Loss, accuracy without the margin, and the angle to the own centre, averaged since the last `reset`.

    Args:
        parts: the names of what the loss is made of, where it is to be told part by part.
    """

    def __init__(self, device: torch.device, parts: tuple[str, ...] = ()) -> None:
        self.parts = parts
        self.sums = torch.zeros(4 + len(parts), dtype=torch.float64, device="cpu" if device.type == "cpu" else device)

    def add(self, loss: Tensor, stats: Stats, parts: Mapping[str, Tensor] | None = None) -> None:
        """Count a batch in."""
        valid = stats.valid
        angle = stats.target_cosine.clamp(-1, 1).acos().nan_to_num(0.0).sum()
        count = valid.sum()
        values = [(parts or {})[name] * count for name in self.parts]
        self.sums += torch.stack([loss.detach() * count, stats.correct.sum(), angle, count, *values]).to(self.sums)

    def read(self) -> dict[str, float]:
        """The averages so far. Waits for the device."""
        loss, correct, angle, count, *values = self.sums.tolist()
        count = max(count, 1.0)
        return {
            "loss": loss / count,
            "accuracy": correct / count,
            "target_angle": float(torch.rad2deg(torch.tensor(angle / count, dtype=torch.float64))),
            **{name: value / count for name, value in zip(self.parts, values, strict=True)},
        }

    def reset(self) -> None:
        """Start anew."""
        self.sums.zero_()

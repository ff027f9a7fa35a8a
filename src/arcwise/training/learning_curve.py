"""Losses and accuracies of the last steps, in eight buckets: enough to tell a curve that falls from one that does not."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

BUCKETS = 8
RECENT = 10


@dataclass
class _Bucket:
    steps: int = 0
    loss_sum: float = 0.0
    square_sum: float = 0.0
    right: float = 0.0
    samples: int = 0


@dataclass(frozen=True)
class Window:
    """The last steps together."""

    length: int
    loss: float  # the mean of the newest quarter
    accuracy: float
    num_right: int
    num_samples: int
    is_falling: bool  # whether the newest quarter is below the oldest one by more than noise explains


class LearningCurve:
    """A sliding window over the losses and accuracies, small enough to be kept in a checkpoint.

    Args:
        window: how many steps it spans.
    """

    def __init__(self, window: int) -> None:
        self._bucket_steps = max(1, window // BUCKETS)
        self._buckets: deque[_Bucket] = deque(maxlen=BUCKETS)
        self._recent: deque[float] = deque(maxlen=RECENT)
        self.first_loss: float | None = None

    def add(self, loss: float, accuracy: float, batch: int, *, settled: bool = True) -> bool:
        """Take a step in. Steps under a changing objective (not `settled`) start the window anew.

        Returns:
            Whether a bucket was filled, which is when a look at the window is worth it.
        """
        if self.first_loss is None:
            self.first_loss = loss
        self._recent.append(loss)
        if not settled:
            self._buckets.clear()
            return False
        if not self._buckets or self._buckets[-1].steps == self._bucket_steps:
            self._buckets.append(_Bucket())
        bucket = self._buckets[-1]
        bucket.steps += 1
        bucket.loss_sum += loss
        bucket.square_sum += loss * loss
        bucket.right += accuracy * batch
        bucket.samples += batch
        return bucket.steps == self._bucket_steps

    @property
    def last_loss(self) -> float:
        return self._recent[-1] if self._recent else math.nan

    def recent_loss(self) -> float:
        """The median of the last few losses, which one outlier does not move."""
        return median(self._recent) if self._recent else math.nan

    def exploded(self, start: float) -> bool:
        """Whether each of the last few losses is far above where training began."""
        return len(self._recent) == RECENT and min(self._recent) > _far_above(start)

    def has_risen(self, start: float) -> bool:
        """Whether the last loss is far above where training began."""
        return bool(self._recent) and self._recent[-1] > _far_above(start)

    def summary(self) -> Window | None:
        """The window, or None while it has not been filled."""
        if len(self._buckets) < BUCKETS or self._buckets[-1].steps < self._bucket_steps:
            return None
        quarter = BUCKETS // 4
        old_mean, old_error = _mean_and_error(list(self._buckets)[:quarter])
        new_mean, new_error = _mean_and_error(list(self._buckets)[-quarter:])
        noise = 2 * math.hypot(old_error, new_error)
        samples = sum(bucket.samples for bucket in self._buckets)
        right = sum(bucket.right for bucket in self._buckets)
        return Window(
            length=sum(bucket.steps for bucket in self._buckets),
            loss=new_mean,
            accuracy=right / samples,
            num_right=round(right),
            num_samples=samples,
            is_falling=old_mean - new_mean > max(noise, 0.001 * abs(old_mean)),
        )

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "buckets": [asdict(bucket) for bucket in self._buckets],
            "recent": list(self._recent),
            "first_loss": self.first_loss,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._buckets = deque((_Bucket(**bucket) for bucket in state["buckets"]), maxlen=BUCKETS)
        self._recent = deque(state["recent"], maxlen=RECENT)
        self.first_loss = state["first_loss"]


def _far_above(start: float) -> float:
    return 3 * start + 3


def _mean_and_error(buckets: list[_Bucket]) -> tuple[float, float]:
    """The mean loss and its standard error."""
    steps = sum(bucket.steps for bucket in buckets)
    mean = sum(bucket.loss_sum for bucket in buckets) / steps
    variance = max(0.0, sum(bucket.square_sum for bucket in buckets) / steps - mean * mean)
    return mean, math.sqrt(variance / steps)

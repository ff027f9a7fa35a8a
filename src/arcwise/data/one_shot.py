"""One-shot trials: one example of each of N classes is given, and a query has to be named."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class OneShot:
    """R runs of N-way trials, for classes that training has not seen.

    Args:
        supports: (R, N, C, H, W), one picture of each of N classes.
        queries: (R, Q, C, H, W).
        answers: (R, Q) int64, the row of `supports` that is of the query's class.
    """

    supports: Tensor
    queries: Tensor
    answers: Tensor

    @property
    def num_trials(self) -> int:
        return self.answers.numel()

"""One-shot classification: which of N single examples shows the same class as the query?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from arcwise.data.one_shot import OneShot
from arcwise.evaluation.angles import unit_rows
from arcwise.evaluation.intervals import wilson


@dataclass(frozen=True)
class OneShotResult:
    """How many queries were given to the right support, over all runs together.

    Attributes:
        accuracy: the share of trials that were right.
        low, high: the ends of Wilson's 95 % interval for it.
        by_run: the accuracy of each run.
        num_ways: how many supports a query had to be told apart from, its own included.
    """

    accuracy: float
    low: float
    high: float
    num_correct: int
    num_trials: int
    num_ways: int
    by_run: tuple[float, ...]

    def table(self) -> list[tuple[str, str]]:
        """(name, value) rows for a person."""
        return [
            (
                f"one-shot, {self.num_ways}-way",
                f"{100 * self.accuracy:.2f} % ({100 * self.low:.1f} … {100 * self.high:.1f} %), "
                f"{self.num_correct} of {self.num_trials}",
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers."""
        return {
            "accuracy": self.accuracy,
            "low": self.low,
            "high": self.high,
            "num_correct": self.num_correct,
            "num_trials": self.num_trials,
            "num_ways": self.num_ways,
            "by_run": list(self.by_run),
        }


def one_shot(embed: Callable[[Tensor], Tensor], trials: OneShot) -> OneShotResult:
    """Give each query to the support at the smallest angle. A tie between the right support and another one counts as wrong.

    Args:
        embed: maps pictures (B, C, H, W), as `trials` has them, to embeddings (B, D).
    """
    (runs, ways), queries = trials.supports.shape[:2], trials.queries.shape[1]
    support_RND, query_RQD = (
        unit_rows(embed(pictures.flatten(0, 1))).unflatten(0, (runs, count))
        for pictures, count in ((trials.supports, ways), (trials.queries, queries))
    )
    cos_RQN = query_RQD @ support_RND.mT
    answers_RQ1 = trials.answers.cpu().unsqueeze(2)
    own_RQ = cos_RQN.gather(2, answers_RQ1).squeeze(2)
    best_other_RQ = cos_RQN.scatter(2, answers_RQ1, -torch.inf).amax(dim=2)
    right_RQ = own_RQ > best_other_RQ
    num_correct, num_trials = int(right_RQ.sum()), right_RQ.numel()
    low, high = wilson(num_correct, num_trials)
    return OneShotResult(
        accuracy=num_correct / num_trials,
        low=low,
        high=high,
        num_correct=num_correct,
        num_trials=num_trials,
        num_ways=ways,
        by_run=tuple(right_RQ.double().mean(dim=1).tolist()),
    )

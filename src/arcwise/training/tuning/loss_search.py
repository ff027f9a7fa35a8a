"""The search for one loss: which trials are done, which can begin, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arcwise.training.config import Config
from arcwise.training.loss_spec import Value
from arcwise.training.tuned_settings import TunedLoss
from arcwise.training.tuning.schedule import is_ready, round_of, setting
from arcwise.training.tuning.space import LR, SCALE, Space, with_parameters


@dataclass(frozen=True)
class Trial:
    """One setting that was tried.

    Attributes:
        number: from 0, which is the default setting.
        parameters: what was searched, by name; "lr" is a factor of the recipe's learning rate.
        score: on held-out training data, higher being better; 0 where training came to nothing.
        seconds: how long it took.
        trouble: why it came to nothing.
    """

    number: int
    parameters: Mapping[str, float]
    score: float
    seconds: float
    trouble: str = ""


@dataclass
class LossSearch:
    """The search for one loss.

    Args:
        label: of the loss.
        base: the config of its default setting.
        trials: how many it gets.
        finished: those that are done, by number.
    """

    label: str
    base: Config
    space: Space
    trials: int
    seed: int
    finished: dict[int, Trial] = field(default_factory=dict)

    def next_trial(self, running: set[int]) -> int | None:
        """The first trial that is neither done nor running and can begin."""
        waiting = (number for number in range(self.trials) if number not in self.finished and number not in running)
        number = next(waiting, None)
        return number if number is not None and is_ready(number, self.trials, self._scores()) else None

    def round_of(self, number: int) -> int:
        return round_of(number, self.trials)

    def setting(self, number: int) -> dict[str, float]:
        """What a trial sets, once all that it depends on is known."""
        tried = {number: trial.parameters for number, trial in self.finished.items()}
        return setting(self.space, number, self.trials, self.seed, tried, self._scores())

    def config(self, number: int) -> Config:
        return with_parameters(self.base, self.setting(number))

    @property
    def best(self) -> Trial | None:
        """The best trial so far, the earliest among equals."""
        return max(self.finished.values(), key=lambda trial: (trial.score, -trial.number), default=None)

    def result(self) -> TunedLoss:
        """The best setting."""
        best = self.best
        assert best is not None, "a search is asked for its result when its trials are done"
        loss = with_parameters(self.base, best.parameters).loss
        terms: dict[str, dict[str, Value]] = {}
        for name, value in best.parameters.items():
            term, dot, key = name.partition(".")
            if dot:
                terms.setdefault(term, {})[key] = value
        return TunedLoss(
            score=best.score,
            default_score=self.finished[0].score,
            scale=best.parameters.get(SCALE, 0.0),
            lr_factor=best.parameters.get(LR, 1.0),
            margin={name: value for name, value in best.parameters.items() if name in loss.margin},
            terms=terms,
        )

    def _scores(self) -> dict[int, float]:
        return {number: trial.score for number, trial in self.finished.items()}

"""What tuning several losses came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arcwise.training.tuned_settings import MEASURES, TunedSettings
from arcwise.training.tuning.loss_search import Trial


@dataclass(frozen=True)
class Tuning:
    """What tuning several losses came to.

    Attributes:
        path: the folder with tuning.json and tuned.toml.
        settings: the best for each loss; None where tuning was stopped early.
        trials: all that were done, by the loss's label.
        stopped_by: the signal that stopped it early, or None.
    """

    path: Path
    settings: TunedSettings | None
    trials: Mapping[str, tuple[Trial, ...]]
    stopped_by: str | None = None

    @property
    def file(self) -> Path:
        """What `arcwise train --tuned` and `arcwise compare --tuned` take."""
        return self.path / "tuned.toml"

    @property
    def measured(self) -> str:
        """What the scores are, in words."""
        assert self.settings is not None, "a tuning that was stopped has no result"
        return MEASURES[self.settings.measured]

    def table(self) -> list[list[str]]:
        """A header and a row for each loss: its best score and setting, and what the default setting scored."""
        assert self.settings is not None, "there is no table of a tuning that was stopped"
        rows = [["loss", "best", "default", "failed", "setting"]]
        for label, loss in self.settings.losses.items():
            trials = self.trials[label]
            best = max(trials, key=lambda trial: (trial.score, -trial.number))
            failed = sum(bool(trial.trouble) for trial in trials)
            rows.append(
                [
                    label,
                    f"{100 * loss.score:.2f} %",
                    f"{100 * loss.default_score:.2f} %",
                    f"{failed} of {len(trials)}",
                    in_words(best.parameters) + (" (the default)" if best.number == 0 else ""),
                ]
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        settings = {} if self.settings is None else asdict(self.settings)
        settings.pop("where", None)
        return {
            "path": str(self.path),
            **settings,
            "trials": {label: [asdict(trial) for trial in trials] for label, trials in self.trials.items()},
        }


def in_words(parameters: Mapping[str, float]) -> str:
    """Parameters as a person would write them: scale 24.3, m 0.31."""
    return ", ".join(f"{'lr ×' if name == 'lr' else name + ' '}{value:g}" for name, value in parameters.items())

"""tuning.json: what is tuned, and every trial that is done; whole on disk after each of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from arcwise._version import __version__
from arcwise.atomic_write import write_file
from arcwise.errors import RunError
from arcwise.training.config import Config, from_toml, to_toml
from arcwise.training.tuning.loss_search import LossSearch, Trial

NAME = "tuning.json"


class Record:
    """The file.

    Args:
        folder: where it lies.
        facts: what is the same for all losses; a tuning is gone on with only where they are as they were.
        command: as it was typed.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any], command: str) -> None:
        self._file, self._facts, self._command = folder / NAME, facts, command
        # Losses of an earlier session that this one does not name.
        self._others: dict[str, Any] = {}

    def write(self, searches: Sequence[LossSearch]) -> None:
        """Write everything that is known."""
        losses = dict(self._others)
        for search in searches:
            losses[search.label] = {
                "space": [asdict(dimension) for dimension in search.space.dimensions],
                "config": to_toml(search.base),
                "trials": [asdict(trial) for _, trial in sorted(search.finished.items())],
            }
        content = {"arcwise": __version__, "command": self._command, **self._facts, "losses": losses}
        write_file(self._file, json.dumps(content, indent=1) + "\n")

    def read_into(self, searches: Sequence[LossSearch]) -> None:
        """Take over the trials of an earlier session, where there was one."""
        if not self._file.is_file():
            if any(self._file.parent.iterdir()):
                raise RunError(
                    f"{self._file.parent} holds no {NAME} to go on with. Tune into another folder with --out DIR."
                )
            return
        try:
            content = json.loads(self._file.read_bytes())
            losses = dict(content["losses"])
            for key, value in self._facts.items():
                self._same(key, value, content[key])
            for search in searches:
                if search.label in losses:
                    begun = losses.pop(search.label)
                    _same_config(self._file, search, from_toml(begun["config"]))
                    search.finished = {trial["number"]: _trial(trial) for trial in begun["trials"]}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{self._file} is damaged ({type(error).__name__}: {error}). Tune into another folder with --out DIR."
            ) from None
        self._others = losses

    def _same(self, key: str, wanted: Any, begun: Any) -> None:
        if wanted != begun:
            raise RunError(
                f"{self._file.parent} was begun with {key} {begun} and goes on so; got {wanted}."
                " Give the same options to resume, or tune into another folder with --out DIR."
            )


def _same_config(file: Path, search: LossSearch, begun: Config) -> None:
    if replace(begun, command=search.base.command, arcwise=search.base.arcwise) != search.base:
        raise RunError(
            f"{file.parent} was begun with other settings for {search.label} than this command's; see {file.name}."
            " Give the same options to resume, or tune into another folder with --out DIR."
        )


def _trial(written: Mapping[str, Any]) -> Trial:
    trial = Trial(**written)
    if not (isinstance(trial.number, int) and math.isfinite(trial.score)):
        raise ValueError(f"the trial {written}")
    return trial

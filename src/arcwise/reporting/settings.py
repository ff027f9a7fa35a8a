"""Configurations as tables: what all runs share, and where the losses differ."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from arcwise.reporting.reading import Run

_SEED = "train.seed"
ABSENT = "—"
"""What stands for a setting that a run does not have."""
_MEANINGS: dict[tuple[str, object], str] = {("loss.scale", 0): "none", ("data.image_size", 0): "as it comes"}
"""Values that stand for something else than themselves."""


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """`section.key` and the value as TOML would write it; lines about the file itself are not settings."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        elif prefix:
            yield (
                name,
                _MEANINGS.get((name, value), written(value)) if not isinstance(value, bool | list) else written(value),
            )


def written(value: object) -> str:
    """A value as a reader of the TOML file sees it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def shared_and_different(
    runs: Mapping[str, Sequence[Run]],
) -> tuple[list[tuple[str, str]], list[tuple[str, list[str]]]]:
    """Settings that every run has in common, and for the others one value per loss (seeds of a loss joined by commas)."""
    tables = {loss: [dict(flat(run.config)) for run in listed] for loss, listed in runs.items() if listed}
    names = list(dict.fromkeys(name for listed in tables.values() for table in listed for name in table))
    shared: list[tuple[str, str]] = []
    different: list[tuple[str, list[str]]] = []
    for name in names:
        by_loss = [list(dict.fromkeys(table.get(name, ABSENT) for table in listed)) for listed in tables.values()]
        if all(values == by_loss[0] for values in by_loss) and (len(by_loss[0]) == 1 or name == _SEED):
            shared.append((name, ", ".join(by_loss[0])))
        else:
            different.append((name, [", ".join(values) for values in by_loss]))
    return shared, different

"""Everything that arcwise raises on purpose.

    ArcwiseError
    ├── ConfigError        a name, a key or a value that cannot be used (also a ValueError)
    ├── DataError          a data set that cannot be read or fetched
    │   └── DownloadError  no source could deliver it
    ├── RunError           a run folder that is in the way, missing or not what it should be
    │   └── CheckpointError   damaged or foreign checkpoint
    ├── TrainingError      training cannot go on
    └── MissingExtraError  an optional package is not installed (also an ImportError)

Each message is one sentence or two: what was wrong, what was given, what to do. The command line prints it and exits with 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ArcwiseError(Exception):
    """The base of every error that arcwise raises on purpose."""


class ConfigError(ArcwiseError, ValueError):
    """A name, a key or a value that cannot be used."""


class DataError(ArcwiseError):
    """A data set that cannot be read."""


class DownloadError(DataError):
    """A data set that no source could deliver."""


class RunError(ArcwiseError):
    """A run folder that is in the way, missing, or not what it should be."""


class CheckpointError(RunError):
    """A checkpoint that is damaged or belongs to something else."""


class TrainingError(ArcwiseError):
    """Training cannot go on."""


class MissingExtraError(ArcwiseError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed: pip install 'arcwise[{extra}]'")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The sentence that ends an error about an unknown name: the nearest known one, then all of them."""
    names = list(known)
    by_folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(given.lower(), by_folded, n=1, cutoff=0.5)
    suggestion = f"Did you mean {by_folded[near[0]]}? " if near else ""
    return f"{suggestion}Known: {', '.join(names)}."

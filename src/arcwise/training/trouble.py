"""One thing that goes wrong in training, in words for the person who waits for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """One thing that goes wrong.

    Attributes:
        name: the kind of trouble, for `metrics.jsonl`.
        message: what was seen, the likely cause and what to change, in plain words.
        fatal: whether training cannot go on: stop before the optimiser's step, which leaves the parameters as they were.
    """

    name: str
    message: str
    fatal: bool = False

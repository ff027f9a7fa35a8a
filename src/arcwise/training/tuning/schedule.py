"""Which settings are tried: a pure function of the space, the seed and the results so far.

Trial 0 is the default setting. With the trials after it, up to three fifths of all, the whole space is looked over at the points of a
scrambled Sobol sequence, which leaves no large part of it unseen. The rest come in rounds of two, at such points of a box around the
best so far that is half as wide each time. The trials of a round can run at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from arcwise.training.tuning.space import Space

EXPLORING_SHARE = 0.6
ROUND = 2
SHRINK = 0.5


def round_of(number: int, trials: int) -> int:
    """0 for the trials that look over the whole space, 1, 2 … for the rounds of those that look around the best."""
    exploring = _exploring(trials)
    return 0 if number < exploring else 1 + (number - exploring) // ROUND


def is_ready(number: int, trials: int, scores: Mapping[int, float]) -> bool:
    """Whether all that the trial's setting depends on is known."""
    return all(earlier in scores for earlier in range(_first_of(round_of(number, trials), trials)))


def setting(
    space: Space,
    number: int,
    trials: int,
    seed: int,
    tried: Mapping[int, Mapping[str, float]],
    scores: Mapping[int, float],
) -> dict[str, float]:
    """The parameters of a trial.

    Args:
        number: of the trial, from 0.
        trials: how many there are in all.
        tried: the parameters of those that are finished, by number, and
        scores: what they scored.
    """
    if number == 0:
        return space.default
    part = round_of(number, trials)
    place = number - _first_of(part, trials)
    if part == 0:
        return space.at(_point(len(space.dimensions), place - 1, seed, part))
    before = range(_first_of(part, trials))
    best = max(before, key=lambda earlier: (scores[earlier], -earlier))
    width = SHRINK**part
    point = _point(len(space.dimensions), place, seed, part)
    centre = space.shares_of(tried[best])
    low = [min(max(share - width / 2, 0.0), 1.0 - width) for share in centre]
    return space.at([start + width * share for start, share in zip(low, point, strict=True)])


def _exploring(trials: int) -> int:
    return max(1, math.ceil(EXPLORING_SHARE * trials))


def _first_of(part: int, trials: int) -> int:
    """The number of a round's first trial: as many come before it."""
    return 0 if part == 0 else _exploring(trials) + (part - 1) * ROUND


def _point(dimensions: int, place: int, seed: int, part: int) -> list[float]:
    engine = torch.quasirandom.SobolEngine(dimensions, scramble=True, seed=seed * 1_000 + part)
    shares: list[float] = engine.draw(place + 1, dtype=torch.float64)[place].tolist()
    return shares

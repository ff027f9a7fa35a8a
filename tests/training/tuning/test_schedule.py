from __future__ import annotations

import pytest

from arcwise.training.tuning.schedule import is_ready, round_of, setting
from arcwise.training.tuning.space import Dimension, Space

SPACE = Space((Dimension("scale", 1.0, 100.0, 10.0, log=True), Dimension("m", 0.1, 0.7, 0.5)))


def peak(parameters: dict[str, float]) -> float:
    """A score that is highest at scale 40 and m 0.2."""
    here, best = SPACE.shares_of(parameters), SPACE.shares_of({"scale": 40.0, "m": 0.2})
    return 1 - max(abs(a - b) for a, b in zip(here, best, strict=True))


def searched(trials: int, seed: int = 0, space: Space = SPACE) -> list[dict[str, float]]:
    tried: dict[int, dict[str, float]] = {}
    scores: dict[int, float] = {}
    for number in range(trials):
        assert is_ready(number, trials, scores)
        tried[number] = setting(space, number, trials, seed, tried, scores)
        scores[number] = peak({**SPACE.default, **tried[number]})
    return [tried[number] for number in range(trials)]


def test_the_first_trial_is_the_default_setting() -> None:
    assert searched(1) == [{"scale": 10.0, "m": 0.5}]
    assert setting(SPACE, 0, 8, 3, {}, {}) == SPACE.default


@pytest.mark.parametrize("trials", [1, 2, 3, 5, 8, 16, 50])
def test_every_number_of_trials_can_be_planned(trials: int) -> None:
    rounds = [round_of(number, trials) for number in range(trials)]
    assert rounds == sorted(rounds)
    assert rounds.count(0) == max(1, -(-6 * trials // 10))
    assert all(rounds.count(part) <= 2 for part in set(rounds) - {0})
    settings = searched(trials)
    assert all(0.1 <= s["m"] <= 0.7 and 1 <= s["scale"] <= 100 for s in settings)


def test_trials_that_look_over_the_space_depend_on_no_result() -> None:
    assert [is_ready(number, 8, {}) for number in range(8)] == [True] * 5 + [False] * 3
    assert setting(SPACE, 4, 8, 0, {}, {}) == searched(8)[4]


def test_a_round_waits_for_all_trials_before_it_and_for_none_of_its_own() -> None:
    five = dict.fromkeys(range(5), 0.5)
    assert is_ready(5, 8, five)
    assert is_ready(6, 8, five)
    assert not is_ready(7, 8, five)
    assert not is_ready(5, 8, dict.fromkeys(range(4), 0.5))


def test_the_order_in_which_trials_finish_does_not_matter() -> None:
    tried = dict(enumerate(searched(8)[:5]))
    scores = {number: peak(parameters) for number, parameters in tried.items()}
    backwards = {number: tried[number] for number in reversed(tried)}
    assert setting(SPACE, 6, 8, 0, tried, scores) == setting(SPACE, 6, 8, 0, backwards, scores)
    # What a later trial scored has no say either.
    more = {**scores, 5: 9.0}
    assert setting(SPACE, 6, 8, 0, {**tried, 5: SPACE.default}, more) == setting(SPACE, 6, 8, 0, tried, scores)


def test_later_rounds_look_closer_around_the_best() -> None:
    settings = searched(20)
    scores = [peak(s) for s in settings]
    for number in range(12, 20):
        first = min(n for n in range(20) if round_of(n, 20) == round_of(number, 20))
        best = max(range(first), key=lambda earlier: (scores[earlier], -earlier))
        width = 0.5 ** round_of(number, 20)
        for a, b in zip(SPACE.shares_of(settings[number]), SPACE.shares_of(settings[best]), strict=True):
            assert abs(a - b) <= width + 1e-3
    assert max(scores) > max(scores[:12])


def test_among_equals_the_earlier_trial_is_the_best() -> None:
    tried = dict(enumerate(searched(8)[:5]))
    around = setting(SPACE, 5, 8, 0, tried, dict.fromkeys(range(5), 0.5))
    assert around == setting(SPACE, 5, 8, 0, tried, {0: 0.6, **dict.fromkeys(range(1, 5), 0.5)})


def test_the_points_leave_no_quarter_of_a_dimension_unseen() -> None:
    space = Space((Dimension("m", 0.0, 1.0, 0.5),))
    for seed in range(5):
        seen = [s["m"] for s in searched(14, seed, space)[1:5]]
        assert sorted(int(4 * share) for share in seen) == [0, 1, 2, 3]


def test_another_seed_tries_other_settings() -> None:
    assert searched(6, seed=0) == searched(6, seed=0)
    assert searched(6, seed=0)[1:] != searched(6, seed=1)[1:]

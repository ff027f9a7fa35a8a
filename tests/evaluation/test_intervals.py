from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise.errors import ConfigError
from arcwise.evaluation import wilson

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
confidences = st.floats(0, 1, exclude_min=True, exclude_max=True)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_it_gives_the_published_examples(successes: int, trials: int, low: float, high: float) -> None:
    """Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3."""
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_it_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed, so there is no peer to compare with")
    for successes, trials, confidence in ((0, 7, 0.9), (3, 7, 0.95), (7, 7, 0.99), (377, 400, 0.95)):
        theirs = stats.binomtest(successes, trials).proportion_ci(confidence, method="wilson")
        assert wilson(successes, trials, confidence) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(counts, confidences)
def test_its_ends_are_shares_around_the_one_that_was_counted(count: tuple[int, int], confidence: float) -> None:
    successes, trials = count
    low, high = wilson(successes, trials, confidence)
    share = successes / trials
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    assert (low == 0) == (successes == 0)
    assert (high == 1) == (successes == trials)


@given(counts, confidences)
def test_counting_failures_instead_mirrors_it(count: tuple[int, int], confidence: float) -> None:
    successes, trials = count
    low, high = wilson(successes, trials, confidence)
    assert wilson(trials - successes, trials, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@given(counts)
def test_more_trials_or_less_confidence_make_it_narrower(count: tuple[int, int]) -> None:
    successes, trials = count
    low, high = wilson(successes, trials)
    for other in (wilson(10 * successes, 10 * trials), wilson(successes, trials, 0.9)):
        assert other[1] - other[0] < high - low


@pytest.mark.parametrize("trials", [20, 100, 400])
def test_it_holds_the_true_share_in_about_as_many_cases_as_it_says(trials: int) -> None:
    held = [wilson(successes, trials) for successes in range(trials + 1)]
    covered = []
    for step in range(1, 200):
        share = step / 200
        covered.append(
            sum(
                math.comb(trials, k) * share**k * (1 - share) ** (trials - k)
                for k, (low, high) in enumerate(held)
                if low <= share <= high
            )
        )
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=0.01)
    assert min(covered) > 0.83


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 5), (6, 5), (0, -1)])
def test_counts_that_cannot_be_are_named(successes: int, trials: int) -> None:
    with pytest.raises(ConfigError, match=f"0 … n successes in n ≥ 1 trials; got {successes} in {trials}"):
        wilson(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, -0.5, math.nan])
def test_a_confidence_that_is_no_share_is_named(confidence: float) -> None:
    with pytest.raises(ConfigError, match=rf"between 0 and 1; got {confidence}\. 0\.95 is usual"):
        wilson(1, 2, confidence)

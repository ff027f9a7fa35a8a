"""Pictures of a few pixels, whose embedding is the picture itself."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.data import OneShot
from arcwise.errors import ConfigError, DataError
from arcwise.evaluation import one_shot, wilson


def itself(pictures: Tensor) -> Tensor:
    return pictures.flatten(1)


def trials(runs: int, ways: int, queries: int, seed: int = 0) -> OneShot:
    generator = torch.Generator().manual_seed(seed)
    return OneShot(
        torch.randn(runs, ways, 1, 2, 2, generator=generator, dtype=torch.float64),
        torch.randn(runs, queries, 1, 2, 2, generator=generator, dtype=torch.float64),
        torch.randint(ways, (runs, queries), generator=generator),
    )


def is_right(supports: Tensor, query: Tensor, answer: int) -> bool:
    """By a plain loop: no other support is at a cosine as large as the right one's."""

    def cosine(support: Tensor) -> float:
        a, b = support.flatten().tolist(), query.flatten().tolist()
        return float(sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b)))

    return all(cosine(other) < cosine(supports[answer]) for n, other in enumerate(supports) if n != answer)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_it_agrees_with_a_loop_over_queries_and_supports(runs: int, ways: int, queries: int, seed: int) -> None:
    given = trials(runs, ways, queries, seed)
    right = [
        [is_right(given.supports[r], given.queries[r, q], int(given.answers[r, q])) for q in range(queries)]
        for r in range(runs)
    ]
    result = one_shot(itself, given)
    assert result.num_correct == sum(map(sum, right))
    assert result.num_trials == given.num_trials == runs * queries
    assert result.num_ways == ways
    assert result.accuracy == pytest.approx(sum(map(sum, right)) / (runs * queries))
    assert result.by_run == pytest.approx([sum(row) / queries for row in right])
    assert (result.low, result.high) == wilson(result.num_correct, result.num_trials)


def test_a_query_is_told_apart_from_the_supports_of_its_own_run_only() -> None:
    supports = torch.eye(4).reshape(2, 2, 1, 2, 2)
    # The second run's query is nearest to a support of the first run.
    queries = torch.tensor([[1.0, 0.2, 0, 0], [0.9, 0, 0.3, 0.1]]).reshape(2, 1, 1, 2, 2)
    assert one_shot(itself, OneShot(supports, queries, torch.tensor([[0], [0]]))).by_run == (1, 1)
    assert one_shot(itself, OneShot(supports, queries, torch.tensor([[0], [1]]))).by_run == (1, 0)


def test_a_tie_with_another_support_is_wrong() -> None:
    supports = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]).reshape(1, 3, 1, 1, 2)
    queries = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]).reshape(1, 2, 1, 1, 2)
    assert one_shot(itself, OneShot(supports, queries, torch.tensor([[0, 2]]))).by_run == (0.5,)
    together = OneShot(torch.ones(2, 5, 1, 2, 2), torch.ones(2, 3, 1, 2, 2), torch.zeros(2, 3, dtype=torch.int64))
    assert one_shot(itself, together).accuracy == 0


def test_the_length_of_an_embedding_has_no_say() -> None:
    given = trials(3, 5, 8)
    lengths = torch.rand(3, 5, 1, 1, 1) + 0.1
    assert one_shot(itself, OneShot(lengths * given.supports, 7 * given.queries, given.answers)) == one_shot(
        itself, given
    )


def test_answers_that_follow_the_supports_give_the_same_result_in_any_order() -> None:
    given = trials(2, 6, 4)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    shuffled = OneShot(given.supports[:, order], given.queries, order.argsort()[given.answers])
    assert one_shot(itself, shuffled) == one_shot(itself, given)


def test_pictures_reach_the_network_as_batches_of_pictures() -> None:
    seen = []

    def embed(pictures: Tensor) -> Tensor:
        seen.append((tuple(pictures.shape), pictures.dtype))
        return pictures.flatten(1).float() + 1

    pictures = torch.zeros(2, 5, 1, 4, 4, dtype=torch.uint8)
    one_shot(embed, OneShot(pictures, pictures[:, :3], torch.zeros(2, 3, dtype=torch.int64)))
    assert seen == [((10, 1, 4, 4), torch.uint8), ((6, 1, 4, 4), torch.uint8)]


def test_a_picture_whose_embedding_has_no_direction_is_named() -> None:
    given = trials(1, 3, 2)
    given.queries[0, 1] = 0
    with pytest.raises(DataError, match="embeddings of length zero have no direction: 1 of 2, in rows 1"):
        one_shot(itself, given)


def test_trials_without_a_query_have_no_accuracy() -> None:
    with pytest.raises(ConfigError, match="got 0 in 0"):
        one_shot(itself, OneShot(torch.ones(1, 2, 1, 2, 2), torch.ones(1, 0, 1, 2, 2), torch.ones(1, 0).long()))


def test_the_result_can_be_shown_and_written_as_json() -> None:
    result = one_shot(itself, trials(2, 20, 20))
    ((name, value),) = result.table()
    assert name == "one-shot, 20-way"
    assert value.startswith(f"{100 * result.accuracy:.2f} % ({100 * result.low:.1f} … {100 * result.high:.1f} %), ")
    assert value.endswith(f"{result.num_correct} of 40")
    read = json.loads(json.dumps(result.to_dict()))
    assert read["by_run"] == list(result.by_run)
    assert {key: read[key] for key in ("accuracy", "low", "high", "num_correct", "num_trials", "num_ways")} == {
        "accuracy": result.accuracy,
        "low": result.low,
        "high": result.high,
        "num_correct": result.num_correct,
        "num_trials": 40,
        "num_ways": 20,
    }

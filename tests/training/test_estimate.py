from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from arcwise.data import Dataset
from arcwise.training.config import Config
from arcwise.training.estimate import estimate_seconds, in_words

MakeConfig = Callable[..., Config]


def test_an_estimate_is_positive_and_leaves_random_numbers_and_the_network_as_they_were(
    small_digits: Dataset, make_config: MakeConfig
) -> None:
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)).eval()
    before = {key: value.clone() for key, value in own.state_dict().items()}
    random = torch.get_rng_state()
    assert estimate_seconds(make_config(), small_digits, own) > 0
    assert torch.equal(torch.get_rng_state(), random)
    assert not own.training
    assert all(torch.equal(value, before[key]) for key, value in own.state_dict().items())
    assert all(parameter.grad is None for parameter in own.parameters())


def test_an_estimate_counts_every_step(small_digits: Dataset, make_config: MakeConfig) -> None:
    one = estimate_seconds(make_config(epochs=1), small_digits)
    assert estimate_seconds(make_config(epochs=1000), small_digits) > 10 * one


def test_a_batch_beyond_the_data_can_be_estimated(small_digits: Dataset, make_config: MakeConfig) -> None:
    assert estimate_seconds(make_config(batch_size=500), small_digits) > 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "1 second"),
        (1.4, "1 second"),
        (1.6, "2 seconds"),
        (89, "89 seconds"),
        (91, "2 minutes"),
        (5399, "90 minutes"),
        (5400, "1.5 hours"),
        (360_000, "100.0 hours"),
    ],
)
def test_a_duration_is_said_as_a_person_would(seconds: float, words: str) -> None:
    assert in_words(seconds) == words

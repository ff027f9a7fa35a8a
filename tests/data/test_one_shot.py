from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch

from arcwise.data import Dataset, OneShot, Split, resized


def trials() -> OneShot:
    generator = torch.Generator().manual_seed(0)
    supports = torch.randint(0, 256, (2, 5, 1, 8, 8), generator=generator, dtype=torch.uint8)
    queries = torch.randint(0, 256, (2, 3, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return OneShot(supports, queries, torch.tensor([[0, 4, 2], [1, 1, 3]]))


def test_every_query_is_a_trial() -> None:
    assert trials().num_trials == 6
    assert OneShot(torch.zeros(1, 5, 1, 8, 8), torch.zeros(1, 0, 1, 8, 8), torch.zeros(1, 0)).num_trials == 0


def test_trials_cannot_be_changed_and_are_told_apart_by_being_the_same_object() -> None:
    first = trials()
    with pytest.raises(FrozenInstanceError):
        first.answers = torch.zeros(2, 3)  # type: ignore[misc]
    assert first == first
    assert first != trials()


def test_a_set_at_another_size_has_its_trials_at_that_size_too() -> None:
    given = trials()
    part = Split(given.supports[0], torch.arange(5))
    whole = Dataset("mine", "image", part, part, tuple("abcde"), "a test", "none", one_shot=given)
    made = resized(whole, 12).one_shot
    assert made is not None
    assert (made.supports.shape, made.queries.shape) == ((2, 5, 1, 12, 12), (2, 3, 1, 12, 12))
    assert made.supports.dtype == torch.uint8
    assert torch.equal(made.answers, given.answers)
    alone = resized(Dataset("mine", "image", part, part, tuple("abcde"), "a test", "none"), 12)
    assert torch.equal(made.supports[0], alone.train.images)

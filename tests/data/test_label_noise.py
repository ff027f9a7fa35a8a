from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data import Dataset, Split
from arcwise.data.label_noise import shuffle_labels, with_label_noise
from arcwise.errors import ConfigError, DataError


def labels_of(rows: int, classes: int) -> torch.Tensor:
    return torch.arange(rows) % classes


def dataset(labels: torch.Tensor, classes: int = 3) -> Dataset:
    part = Split(torch.zeros(len(labels), 4), labels, tuple(f"row {row}" for row in range(len(labels))))
    names = tuple(str(number) for number in range(classes))
    return Dataset("made", "features", part, part, names, "made here", "none", notes=("a note",))


@settings(deadline=None)
@given(rows=st.integers(0, 60), classes=st.integers(2, 7), share=st.floats(0, 0.999), seed=st.integers(0, 2**31 - 1))
def test_exactly_the_share_becomes_another_class_that_exists(rows: int, classes: int, share: float, seed: int) -> None:
    labels = labels_of(rows, classes)
    before = labels.clone()
    shuffled = shuffle_labels(labels, classes, share=share, seed=seed)
    assert torch.equal(labels, before)
    assert int((shuffled != labels).sum()) == round(share * rows)
    assert bool(((shuffled >= 0) & (shuffled < classes)).all())


def test_rows_without_a_label_are_neither_shuffled_nor_counted() -> None:
    labels = torch.tensor([-1] * 50 + [0, 1, 2, 3, 4] * 10)
    shuffled = shuffle_labels(labels, 5, share=0.4, seed=0)
    assert bool((shuffled[:50] == -1).all())
    assert int((shuffled[50:] != labels[50:]).sum()) == 20
    assert bool((shuffled[50:] >= 0).all())


def test_the_wrong_class_is_drawn_evenly_from_all_the_others() -> None:
    labels = torch.full((12_000,), 2)
    shuffled = shuffle_labels(labels, 5, share=0.999, seed=1)
    counts = torch.bincount(shuffled, minlength=5)
    expected = round(0.999 * 12_000) / 4
    for other in (0, 1, 3, 4):
        assert abs(int(counts[other]) - expected) < 5 * expected**0.5


def test_the_seed_alone_decides() -> None:
    labels = labels_of(300, 10)
    first = shuffle_labels(labels, 10, share=0.2, seed=3)
    torch.manual_seed(99)
    assert torch.equal(first, shuffle_labels(labels, 10, share=0.2, seed=3))
    assert not torch.equal(first, shuffle_labels(labels, 10, share=0.2, seed=4))


def test_a_smaller_share_is_part_of_a_larger_one() -> None:
    labels = labels_of(500, 10)
    few, many = (shuffle_labels(labels, 10, share=share, seed=0) for share in (0.1, 0.4))
    touched = few != labels
    assert torch.equal(few[touched], many[touched])


def test_the_data_set_keeps_the_true_labels_and_says_what_was_done() -> None:
    data = dataset(labels_of(30, 3))
    noisy = with_label_noise(data, share=0.2, seed=0)
    true = noisy.train.true_labels
    assert true is not None
    assert torch.equal(true, data.train.labels)
    assert int((noisy.train.labels != true).sum()) == 6
    assert torch.equal(noisy.test.labels, data.test.labels)
    assert noisy.test.true_labels is None
    assert noisy.train.images is data.train.images
    assert noisy.train.paths == data.train.paths
    assert noisy.notes == (
        "a note",
        "6 of 30 training labels were replaced by another class on purpose (data.label_noise = 0.2).",
    )


def test_no_noise_changes_nothing() -> None:
    data = dataset(labels_of(30, 3))
    assert with_label_noise(data, share=0.0, seed=0) is data


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    message = f"data.label_noise must be in [0, 1), a share of the training labels; got {share}. 0.2 replaces a fifth of them."
    with pytest.raises(ConfigError, match=re.escape(message)):
        shuffle_labels(labels_of(10, 2), 2, share=share, seed=0)


def test_one_class_leaves_nothing_to_draw() -> None:
    message = "label noise needs another class to draw; got 1 class. Leave data.label_noise out."
    with pytest.raises(DataError, match=re.escape(message)):
        shuffle_labels(torch.zeros(10, dtype=torch.int64), 1, share=0.5, seed=0)


def test_labels_are_not_shuffled_twice() -> None:
    data = dataset(labels_of(30, 3))
    noisy = with_label_noise(data, share=0.2, seed=0)
    message = "the training labels of this data set have been shuffled before. Start from the data as it was loaded."
    with pytest.raises(DataError, match=re.escape(message)):
        with_label_noise(noisy, share=0.2, seed=0)
    assert with_label_noise(replace(noisy), share=0.0, seed=0).train.true_labels is not None

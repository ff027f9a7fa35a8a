from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from arcwise.data import Dataset, Split
from arcwise.errors import DataError
from arcwise.training.tuning.held_out import groups_of, hold_out

# Every row's content is its number, which tells where it ended up.


def rows(labels: list[int], begin: int = 0) -> Split:
    numbers = torch.arange(begin, begin + len(labels), dtype=torch.float32)
    return Split(numbers[:, None].repeat(1, 3), torch.tensor(labels), tuple(f"{n}.png" for n in range(len(labels))))


def dataset(train: list[int], classes: tuple[str, ...], test_classes: tuple[str, ...] = ()) -> Dataset:
    test = rows([0, 0, 1, 1], begin=1000)
    return Dataset("mine", "features", rows(train), test, classes, "a test", "none", test_classes=test_classes)


@pytest.fixture
def alphabets() -> Dataset:
    """Ten alphabets of three characters with four drawings each, two of them unlabelled."""
    labels = [number // 4 for number in range(120)]
    labels[5] = labels[50] = -1
    names = tuple(f"Alphabet{number // 3}/character{number % 3}" for number in range(30))
    return dataset(labels, names, ("Unseen/character0", "Unseen/character1"))


def numbers(split: Split) -> set[int]:
    return set(split.images[:, 0].int().tolist())


@pytest.mark.parametrize("seed", range(5))
def test_no_test_sample_gets_into_what_trials_see(seed: int, alphabets: Dataset) -> None:
    for data in (alphabets, dataset([0, 0, 1, 1, 2, 2, 2], ("a", "b", "c"))):
        made = hold_out(data, seed).data
        assert numbers(made.train) | numbers(made.test) <= numbers(data.train)
        assert not numbers(made.train) & numbers(made.test)
        assert not numbers(made.test) & numbers(data.test)


def test_what_else_the_data_carries_stays_behind(alphabets: Dataset) -> None:
    made = hold_out(replace(alphabets, notes=("a note",)), 0).data
    assert made.notes == ()
    assert (made.train.paths, made.test.paths) == ((), ())


@pytest.mark.parametrize("seed", range(5))
def test_samples_are_held_out_where_the_test_is_of_known_classes(seed: int) -> None:
    labels = [0] * 50 + [1] * 25 + [2] + [-1] * 10
    data = dataset(labels, ("a", "b", "c"))
    held = hold_out(data, seed)
    assert held.measured == "accuracy"
    assert not held.data.disjoint
    assert held.data.classes == data.classes
    assert torch.bincount(held.data.test.labels).tolist() == [10, 5]
    assert torch.bincount(held.data.train.labels[held.data.train.labels >= 0]).tolist() == [40, 20, 1]


@pytest.mark.parametrize("seed", range(5))
def test_whole_alphabets_are_held_out_where_the_test_is_of_unseen_classes(seed: int, alphabets: Dataset) -> None:
    held = hold_out(alphabets, seed)
    made = held.data
    assert held.measured == "map_at_r"
    assert made.disjoint
    assert (len(made.classes), len(made.test_classes)) == (24, 6)
    assert {name.split("/")[0] for name in made.classes}.isdisjoint(name.split("/")[0] for name in made.test_classes)
    assert set(made.classes) | set(made.test_classes) == set(alphabets.classes)
    assert "6 of the 30 training classes of 2 whole groups" in held.told


def test_labels_count_from_0_in_each_part_and_keep_their_class(alphabets: Dataset) -> None:
    made = hold_out(alphabets, 1).data
    for split, classes in ((made.train, made.classes), (made.test, made.test_classes)):
        for number, label in zip(split.images[:, 0].int().tolist(), split.labels.tolist(), strict=True):
            was = int(alphabets.train.labels[number])
            assert (label, was) == (-1, -1) or classes[label] == alphabets.classes[was]
    assert -1 not in made.test.labels


def test_the_seed_decides_which_classes_are_held_out(alphabets: Dataset) -> None:
    drawn = {hold_out(alphabets, seed).data.test_classes for seed in range(5)}
    assert len(drawn) > 1
    assert hold_out(alphabets, 3).data.test_classes == hold_out(alphabets, 3).data.test_classes


def test_classes_without_groups_are_drawn_one_by_one() -> None:
    labels = [number // 2 for number in range(40)]
    made = hold_out(dataset(labels, tuple(f"person{n}" for n in range(20)), ("x", "y")), 0).data
    assert (len(made.classes), len(made.test_classes)) == (16, 4)


def test_groups_are_what_stands_before_the_slash_of_every_name() -> None:
    assert groups_of(("A/1", "B/1", "A/2 turned 90°")) == [[0, 2], [1]]
    assert groups_of(("T-shirt/top", "coat")) == [[0], [1]]
    assert groups_of(("A/1", "A/2")) == [[0], [1]]


def test_too_little_to_hold_out_is_told() -> None:
    with pytest.raises(DataError, match=r"nothing to tune mine on: no class has two training samples"):
        hold_out(dataset([0, 1, 2], ("a", "b", "c")), 0)
    with pytest.raises(DataError, match=r"too few classes in mine to hold some out for tuning: 3 in 3 groups"):
        hold_out(dataset([0, 0, 1, 1, 2, 2], ("a", "b", "c"), ("x", "y")), 0)

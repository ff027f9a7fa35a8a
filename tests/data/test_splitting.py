from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data.splitting import lonely_classes_note, stratified_split
from arcwise.errors import ConfigError

LABELS = st.lists(st.integers(0, 5), min_size=1, max_size=80)


@settings(max_examples=80, deadline=None)
@given(LABELS, st.floats(0.01, 0.99), st.integers(0, 10**9))
def test_each_row_lies_in_one_part_and_each_class_of_two_in_both(values: list[int], share: float, seed: int) -> None:
    labels = torch.tensor(values)
    train, test = stratified_split(labels, test_share=share, seed=seed)
    assert sorted(train.tolist() + test.tolist()) == list(range(len(values)))
    for label in set(values):
        in_test = int((labels[test] == label).sum())
        in_all = values.count(label)
        assert in_test == 0 if in_all == 1 else in_test == min(max(round(in_all * share), 1), in_all - 1)


@settings(max_examples=30, deadline=None)
@given(LABELS, st.integers(0, 100))
def test_the_same_seed_gives_the_same_split(values: list[int], seed: int) -> None:
    labels = torch.tensor(values)
    first = stratified_split(labels, test_share=0.3, seed=seed)
    second = stratified_split(labels, test_share=0.3, seed=seed)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_another_seed_gives_another_split() -> None:
    labels = torch.arange(200) % 4
    splits = {tuple(stratified_split(labels, test_share=0.3, seed=seed)[1].tolist()) for seed in range(5)}
    assert len(splits) == 5


def test_rows_added_to_one_class_do_not_move_those_of_another() -> None:
    before = stratified_split(torch.tensor([0] * 10 + [1] * 10), test_share=0.3, seed=1)[1]
    after = stratified_split(torch.tensor([0] * 10 + [1] * 17), test_share=0.3, seed=1)[1]
    assert [row for row in before.tolist() if row < 10] == [row for row in after.tolist() if row < 10]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_share_that_leaves_a_part_empty_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=r"test_share must lie between 0 and 1; got .* 0\.2 keeps"):
        stratified_split(torch.tensor([0, 1]), test_share=share, seed=0)


def test_the_note_names_the_classes_with_one_row() -> None:
    assert lonely_classes_note(torch.tensor([0, 0, 1, 1]), ("a", "b"), "picture") is None
    one = lonely_classes_note(torch.tensor([0, 0, 1, -1]), ("a", "b"), "picture")
    assert one is not None
    assert one.startswith("The class b has only one picture: it is used for training")
    many = lonely_classes_note(torch.arange(8), tuple("abcdefgh"), "row")
    assert many is not None
    assert many.startswith("8 classes have only one row each (a, b, c, d, e and 3 more)")

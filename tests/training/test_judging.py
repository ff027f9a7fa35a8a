from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation import class_means, geometry, recall_at_1
from arcwise.training import judging
from arcwise.training.judging import judged_rows, judged_unseen, means_of_shown, rows_of_spread_classes


def labels_of(least: int) -> st.SearchStrategy[Tensor]:
    some = st.lists(st.integers(-1, 12), min_size=least, max_size=60)
    return some.map(lambda labels: torch.tensor(labels, dtype=torch.int64))


def clouds(num: int = 60, classes: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(num) % classes
    return torch.randn(classes, 4, generator=generator)[labels] + torch.randn(num, 4, generator=generator), labels


@given(labels_of(0))
def test_few_samples_are_all_judged(labels: Tensor) -> None:
    assert judged_rows(labels).tolist() == list(range(len(labels)))


@pytest.mark.parametrize("most", [1, 7, 20])
@given(labels=labels_of(21))
def test_of_many_samples_whole_classes_are_judged_in_rising_order(most: int, labels: Tensor) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "MOST_JUDGED", most)
        rows = judged_rows(labels).tolist()
    judged = {int(labels[row]) for row in rows}
    assert rows == [row for row, label in enumerate(labels.tolist()) if label in judged]
    assert -1 not in judged
    assert len(judged) >= min(2, len(set(labels.tolist()) - {-1}))


@pytest.mark.parametrize(("num_classes", "each"), [(1000, 20), (5, 4000), (16_385, 1), (3, 16_384)])
def test_no_more_are_judged_than_are_quickly_compared_unless_two_classes_are_more(num_classes: int, each: int) -> None:
    labels = torch.arange(num_classes).repeat(each)
    rows = judged_rows(labels)
    classes = labels[rows].unique()
    assert len(rows) == each * len(classes)
    assert len(classes) == max(2, min(num_classes, judging.MOST_JUDGED // each))
    assert (int(classes[0]), int(classes[-1])) == (0, num_classes - 1)
    steps = classes.diff()
    assert int(steps.max() - steps.min()) <= 1


@given(labels_of(0), st.integers(0, 20))
def test_as_many_classes_are_spread_as_are_asked_for_and_two_at_least(labels: Tensor, count: int) -> None:
    rows = rows_of_spread_classes(labels, count)
    known = labels[labels >= 0].unique()
    found = labels[rows].unique()
    assert len(found) == min(max(count, 2), len(known))
    if len(found):
        assert found[0] == known[0]
        assert len(found) == 1 or found[-1] == known[-1]


def test_recall_and_angle_are_those_of_the_definition() -> None:
    embeddings, labels = clouds()
    angles = []
    for row, label in zip(embeddings.double(), labels, strict=True):
        own = embeddings.double()[labels == label]
        mean = (own / own.norm(dim=1, keepdim=True)).mean(dim=0)
        angles.append(math.degrees(math.acos(float(row @ mean / (row.norm() * mean.norm())))))
    judged = judged_unseen(embeddings, labels)
    assert judged == {
        "test_accuracy": recall_at_1(embeddings, labels),
        "test_angle": pytest.approx(sum(angles) / len(angles), abs=1e-4),
    }
    assert judged["test_angle"] == pytest.approx(geometry(embeddings, labels).own_angle, abs=1e-4)


def test_numbers_that_no_class_has_and_samples_without_a_label_change_nothing() -> None:
    embeddings, labels = clouds()
    judged = judged_unseen(embeddings, labels)
    assert judged_unseen(embeddings, 3 * labels + 1) == pytest.approx(judged)
    padded = torch.cat([embeddings, torch.full((5, 4), torch.nan)])
    assert judged_unseen(padded, torch.cat([labels, torch.full((5,), -1)])) == pytest.approx(judged)


def test_samples_stand_at_a_right_angle_to_a_class_that_has_no_direction() -> None:
    embeddings, labels = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), torch.tensor([0, 0, 1, 1])
    assert judged_unseen(embeddings, labels)["test_angle"] == pytest.approx((90 + 90 + 0 + 0) / 4)


def test_without_a_label_there_is_nothing_to_judge() -> None:
    with pytest.raises(DataError, match="there is nothing to measure: no sample has a label"):
        judged_unseen(torch.randn(3, 2), torch.full((3,), -1))


def test_a_class_that_is_not_shown_has_no_centre() -> None:
    embeddings, labels = clouds()
    shown = rows_of_spread_classes(labels, 3)
    means = means_of_shown(embeddings[shown], labels[shown], 8)
    whole = class_means(embeddings, labels, 8).directions
    present = labels[shown].unique().tolist()
    assert (means.shape, means.dtype) == ((8, 4), torch.float32)
    assert len(present) == 3
    for number in range(8):
        torch.testing.assert_close(means[number], whole[number] if number in present else torch.zeros(4))

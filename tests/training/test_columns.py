from __future__ import annotations

import pytest
import torch

from arcwise.evaluation import evaluate_embeddings, evaluate_unseen, robustness
from arcwise.evaluation.nearest_centre import class_means, nearest_by_angle
from arcwise.evaluation.verification import FAR
from arcwise.training.columns import COLUMNS, UNSEEN_COLUMNS, Column, columns_of

both = pytest.mark.parametrize("columns", [COLUMNS, UNSEEN_COLUMNS], ids=["known classes", "unseen classes"])


def measured(unseen: bool) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 4
    embeddings = torch.randn(4, 3, generator=generator)[labels] + 0.3 * torch.randn(40, 3, generator=generator)
    if unseen:
        return evaluate_unseen(embeddings, labels).to_dict()
    means = class_means(embeddings, labels, 4)
    pictures = (embeddings[:, None, None] + 4).mul(20).clamp(0, 255).to(torch.uint8)
    noise = robustness(lambda x: x.flatten(1).float() - 80, pictures, labels, means.directions, means.raw, seed=0)
    return evaluate_embeddings(
        embeddings=embeddings,
        labels=labels,
        class_means=means.directions,
        raw_class_means=means.raw,
        predicted_by_head=nearest_by_angle(embeddings, means.directions),
        classes=tuple("abcd"),
        robustness=noise,
    ).to_dict()


@both
def test_every_column_is_told_apart_and_explained(columns: tuple[Column, ...]) -> None:
    for names in ([column.key for column in columns], [column.title for column in columns]):
        assert len(set(names)) == len(names)
    for column in columns:
        assert column.unit in ("%", "°", "s", "")
        assert column.better in ("higher", "lower")
        assert column.meaning
        assert not column.meaning.endswith(".")


@both
def test_errors_angles_to_the_own_centre_and_time_are_better_when_lower_and_all_else_when_higher(
    columns: tuple[Column, ...],
) -> None:
    assert {column.key for column in columns if column.better == "lower"} == {"eer", "own_angle", "train_seconds"}


@pytest.mark.parametrize("unseen", [False, True])
def test_what_is_measured_holds_every_column_but_the_time(unseen: bool) -> None:
    found = measured(unseen)
    columns = columns_of(found)
    assert columns is (UNSEEN_COLUMNS if unseen else COLUMNS)
    assert {column.key for column in columns} - found.keys() == {"train_seconds"}


def test_the_title_names_the_false_accept_rate_that_is_measured() -> None:
    (column,) = (column for column in UNSEEN_COLUMNS if column.key == "tar_at_far")
    assert column.title == f"TAR@FAR={100 * FAR:g}%"
    assert f"{100 * FAR:g} % of the pairs" in column.meaning


def test_a_run_without_any_measure_is_taken_for_one_of_known_classes() -> None:
    assert columns_of({}) is COLUMNS

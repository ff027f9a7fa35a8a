from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from arcwise.data import OneShot
from arcwise.errors import DataError
from arcwise.evaluation import evaluate_unseen, geometry, one_shot, retrieval, verification
from arcwise.evaluation.verification import FAR
from arcwise.progress import Reporter, Stage
from arcwise.training.columns import UNSEEN_COLUMNS


def clouds() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 6
    return torch.randn(6, 4, generator=generator)[labels] + 0.5 * torch.randn(60, 4, generator=generator), labels


def trials() -> OneShot:
    generator = torch.Generator().manual_seed(1)
    pictures = torch.randn(2, 5, 1, 1, 4, generator=generator)
    noisy = pictures + 0.5 * torch.randn(2, 5, 1, 1, 4, generator=generator)
    return OneShot(pictures, noisy, torch.arange(5).expand(2, 5))


def test_each_part_is_what_measuring_it_alone_gives() -> None:
    embeddings, labels = clouds()
    shots = one_shot(lambda pictures: pictures.flatten(1), trials())
    found = evaluate_unseen(embeddings, labels, one_shot=shots)
    assert found.retrieval == retrieval(embeddings, labels)
    assert found.verification == verification(embeddings, labels)
    assert found.geometry == geometry(embeddings, labels)
    assert found.one_shot is shots
    assert (found.num_samples, found.num_classes) == (60, 6)


def test_the_dictionary_holds_every_number_that_runs_are_compared_by() -> None:
    shots = one_shot(lambda pictures: pictures.flatten(1), trials())
    found = evaluate_unseen(*clouds(), one_shot=shots)
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {column.key for column in UNSEEN_COLUMNS} - {"train_seconds"} <= read.keys()
    assert read["recall_at_1"] == read["retrieval"]["recall"]["1"] == found.retrieval.recall[1]
    assert read["map_at_r"] == found.retrieval.map_at_r
    assert (read["eer"], read["auc"]) == (found.verification.eer, found.verification.auc)
    assert read["far"] == FAR
    assert read["tar_at_far"] == found.verification.tar_at_far[FAR] == read["verification"]["tar_at_far"][f"{FAR:g}"]
    assert [read[f"one_shot_{key}"] for key in ("accuracy", "low", "high")] == [shots.accuracy, shots.low, shots.high]
    assert read["own_angle"] == found.geometry.own_angle
    assert read["closest_pair"] == list(found.geometry.closest_pair or ())
    assert read["num_samples"] == 60


def test_without_one_shot_trials_their_numbers_are_none_and_no_row_speaks_of_them() -> None:
    found = evaluate_unseen(*clouds())
    told = found.to_dict()
    assert [told[key] for key in ("one_shot", "one_shot_accuracy", "one_shot_low", "one_shot_high")] == [None] * 4
    assert not any("one-shot" in name for name, _ in found.table())


def test_the_table_tells_of_every_part_and_counts_no_pairs() -> None:
    shots = one_shot(lambda pictures: pictures.flatten(1), trials())
    assert [name for name, _ in evaluate_unseen(*clouds(), one_shot=shots).table()] == [
        "Recall@1",
        "Recall@5",
        "Recall@10",
        "MAP@R",
        "R-precision",
        "equal error rate",
        "threshold at it",
        "area under the curve",
        f"TAR at FAR = {FAR:g}",
        "one-shot, 5-way",
        "angle to own centre",
        "angle to nearest other centre",
        "smallest angle between centres",
        "between / within",
    ]


def test_samples_without_a_label_take_no_part() -> None:
    embeddings, labels = clouds()
    padded = torch.cat([torch.full((3, 4), torch.nan), embeddings])
    assert evaluate_unseen(padded, torch.cat([torch.full((3,), -1), labels])) == evaluate_unseen(embeddings, labels)


def test_classes_that_are_single_points_are_written_without_infinity() -> None:
    labels = torch.arange(8) % 4
    found = evaluate_unseen(torch.eye(4)[labels], labels)
    assert found.geometry.fisher == torch.inf
    assert found.to_dict()["fisher"] is None
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2, 3], "got 4 samples of as many classes"),
        ([2, 2, 2, 2], "got 4 samples of a single class"),
        ([-1, -1, -1, -1], "there is nothing to measure: no sample has a label"),
    ],
)
def test_what_cannot_be_measured_is_said(labels: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate_unseen(torch.randn(4, 3), torch.tensor(labels))


class Keeper(Reporter):
    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.stages.append(Stage(title, total))
        yield self.stages[-1]


def test_the_slow_parts_tell_how_far_they_are() -> None:
    reporter = Keeper()
    evaluate_unseen(*clouds(), reporter=reporter)
    assert [stage.title for stage in reporter.stages] == ["retrieval, all samples", "verification, all pairs"]
    assert all(stage.done == stage.total for stage in reporter.stages)

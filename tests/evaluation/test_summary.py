from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation import NoiseResult, class_means, evaluate_embeddings, geometry, verification
from arcwise.evaluation.summary import Evaluation, confusion


def clouds(num: int, seed: int, classes: int = 4) -> tuple[Tensor, Tensor]:
    labels = torch.arange(num) % classes
    noise = torch.randn(num, 3, generator=torch.Generator().manual_seed(seed))
    centres = torch.randn(classes, 3, generator=torch.Generator().manual_seed(99))
    return 2 * centres[labels] + noise, labels


def evaluated(embeddings: Tensor, labels: Tensor, num_classes: int = 4, **more: object) -> Evaluation:
    means = class_means(*clouds(200, 1, num_classes), num_classes)
    return evaluate_embeddings(
        embeddings=embeddings,
        labels=labels,
        class_means=means.directions,
        raw_class_means=means.raw,
        classes=[str(c) for c in range(num_classes)],
        **more,  # type: ignore[arg-type]
    )


def test_the_summary_holds_what_each_measure_says() -> None:
    embeddings, labels = clouds(100, 2)
    noise = [NoiseResult("a", 0.5, 0.25), NoiseResult("b", 1.0, 0.75)]
    found = evaluated(embeddings, labels, predicted_by_head=labels, robustness=noise)
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["classifier_accuracy"] == 1.0
    assert read["eer"] == verification(embeddings, labels).eer == read["verification"]["eer"]
    means = class_means(*clouds(200, 1), 4)
    expected = geometry(embeddings, labels, directions=means.directions)
    assert (read["own_angle"], read["fisher"]) == (expected.own_angle, expected.fisher)
    assert read["smallest_centre_angle"] == expected.smallest_centre_angle
    assert (read["noise_accuracy"], read["noise_accuracy_distance"]) == (0.75, 0.5)
    assert read["robustness"] == [
        {"noise": "a", "angle": 0.5, "distance": 0.25},
        {"noise": "b", "angle": 1.0, "distance": 0.75},
    ]
    table = torch.tensor(read["confusion"])
    assert table.sum().item() == read["num_samples"] == 100
    assert table.trace().item() / 100 == pytest.approx(read["accuracy"])
    assert dict(found.table())["under b"] == "100.00 % by angle, 75.00 % by distance"


def test_what_was_not_measured_is_none() -> None:
    read = evaluated(*clouds(100, 2)).to_dict()
    assert read["classifier_accuracy"] is read["noise_accuracy"] is read["noise_accuracy_distance"] is None
    assert read["robustness"] == []


def test_ignored_samples_count_nowhere() -> None:
    embeddings, labels = clouds(100, 2)
    padded = torch.cat([embeddings, torch.zeros(3, 3)])
    ignored = torch.full((3,), -1)
    head = torch.cat([labels, torch.zeros(3, dtype=torch.int64)])
    found = evaluated(padded, torch.cat([labels, ignored]), predicted_by_head=head)
    assert found == evaluated(embeddings, labels, predicted_by_head=labels)


def test_one_test_sample_a_class_is_no_error_but_a_note() -> None:
    found = evaluated(*clouds(4, 2))
    assert found.verification is None
    assert found.to_dict()["eer"] is None
    assert found.notes == ("Verification was not measured: it needs two classes, and two samples of one of them.",)


def test_large_sets_are_verified_on_a_sample_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arcwise.evaluation.summary.MAX_VERIFICATION_SAMPLES", 50)
    found = evaluated(*clouds(100, 2))
    assert found.verification is not None
    assert found.verification.num_genuine + found.verification.num_impostor == 50 * 49 // 2
    assert "all pairs of 50 of the 100 samples" in found.notes[0]
    assert found.num_samples == 100


def test_many_classes_have_no_confusion_matrix() -> None:
    assert evaluated(*clouds(404, 2, 101), num_classes=101).confusion is None
    assert evaluated(*clouds(400, 2, 100), num_classes=100).confusion is not None


def test_confusion_counts_true_classes_by_row() -> None:
    labels, predicted = torch.tensor([0, 0, 1, 2, -1, 1]), torch.tensor([0, 2, 1, 1, 0, -1])
    assert confusion(predicted, labels, 3) == ((1, 0, 1), (0, 1, 0), (0, 1, 0))


def test_there_must_be_a_mean_for_every_class() -> None:
    with pytest.raises(DataError, match="for each of 3 classes; got 2 directions and 3 plain means"):
        evaluate_embeddings(
            embeddings=torch.ones(2, 2),
            labels=torch.tensor([0, 1]),
            class_means=torch.eye(2),
            raw_class_means=torch.ones(3, 2),
            classes=["a", "b", "c"],
        )

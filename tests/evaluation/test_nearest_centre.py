from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation import accuracy, class_means, nearest_by_angle, nearest_by_distance


def clouds(num: int = 60, dim: int = 4, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(num) % classes
    return torch.randn(classes, dim, generator=generator)[labels] + torch.randn(num, dim, generator=generator), labels


def test_the_means_are_those_of_the_definition() -> None:
    embeddings, labels = clouds()
    means = class_means(embeddings, labels, 5)
    for c in range(5):
        own = embeddings[labels == c]
        direction = sum(row / row.norm() for row in own)
        assert isinstance(direction, Tensor)
        torch.testing.assert_close(means.directions[c], direction / direction.norm())
        torch.testing.assert_close(means.raw[c], own.mean(dim=0))
    assert means.counts.tolist() == [12] * 5


def test_both_classifiers_agree_with_a_plain_search() -> None:
    embeddings, labels = clouds()
    means = class_means(embeddings, labels, 5)
    by_angle = torch.nn.functional.cosine_similarity(embeddings[:, None], means.directions[None], dim=2).argmax(dim=1)
    assert torch.equal(nearest_by_angle(embeddings, means.directions), by_angle)
    assert torch.equal(nearest_by_distance(embeddings, means.raw), torch.cdist(embeddings, means.raw).argmin(dim=1))
    assert not torch.equal(by_angle, torch.cdist(embeddings, means.raw).argmin(dim=1))


def test_length_matters_for_the_distance_only() -> None:
    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    raw = torch.tensor([[10.0, 0.0], [0.0, 1.0]])
    sample = torch.tensor([[1.0, 0.9]])
    assert nearest_by_angle(sample, directions).tolist() == [0]
    assert nearest_by_distance(sample, raw).tolist() == [1]


def test_no_sample_goes_to_a_class_that_training_never_saw() -> None:
    embeddings = torch.tensor([[-1.0, 0.1], [-1.0, -0.1], [-2.0, 0.0]])
    means = class_means(embeddings, torch.tensor([1, 1, 3]), 5)
    assert means.counts.tolist() == [0, 2, 0, 1, 0]
    assert means.directions[[0, 2, 4]].abs().sum() == 0
    # The far side of the sphere: every present class is further than a zero vector would seem.
    sample = torch.tensor([[1.0, 0.0]])
    assert nearest_by_angle(sample, means.directions).item() in (1, 3)
    assert nearest_by_distance(sample, means.raw).item() == 1


def test_ignored_samples_move_no_mean_and_no_accuracy() -> None:
    embeddings, labels = clouds()
    noisy = torch.cat([embeddings, torch.full((4, 4), math.nan)])
    padded = torch.cat([labels, torch.full((4,), -1)])
    found, expected = class_means(noisy, padded, 5), class_means(embeddings, labels, 5)
    assert torch.equal(found.directions, expected.directions)
    assert torch.equal(found.raw, expected.raw)
    assert torch.equal(found.counts, expected.counts)
    assert accuracy(torch.tensor([0, 1, 2, 3]), torch.tensor([0, 0, -1, 3])) == pytest.approx(2 / 3)


def test_opposite_embeddings_have_no_mean_direction() -> None:
    means = class_means(torch.tensor([[1.0, 2.0], [-1.0, -2.0], [0.0, 1.0]]), torch.tensor([0, 0, 1]), 2)
    assert means.directions.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_an_embedding_without_a_direction_belongs_to_no_class() -> None:
    samples = torch.tensor([[0.0, 0.0], [math.nan, 1.0], [1.0, 0.0]])
    centres = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert nearest_by_angle(samples, centres).tolist() == [-1, -1, 0]
    assert nearest_by_distance(samples, centres).tolist() == [0, -1, 0]


def test_many_samples_are_handled_in_tiles() -> None:
    samples = torch.randn(9000, 3, generator=torch.Generator().manual_seed(0))
    centres = torch.eye(3)
    assert torch.equal(nearest_by_angle(samples, centres), samples.argmax(dim=1))


def test_a_label_past_the_last_class_is_named() -> None:
    with pytest.raises(DataError, match="there are 3 classes, 0 to 2; got the label 3"):
        class_means(torch.ones(2, 2), torch.tensor([0, 3]), 3)


def test_there_must_be_a_class_to_be_near_to() -> None:
    with pytest.raises(DataError, match="no class has a mean"):
        nearest_by_angle(torch.ones(2, 2), torch.zeros(3, 2))

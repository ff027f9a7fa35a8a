from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from arcwise.training.batch_geometry import geometry_of


def mean_cosine(vectors: Tensor, pairs: Tensor) -> float:
    unit = nn.functional.normalize(vectors.double())
    return float((unit @ unit.T)[pairs].mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_mean_cosine_is_over_all_pairs_of_different_rows(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    vectors = torch.randn(40, 5).to(dtype)
    expected = mean_cosine(vectors, ~torch.eye(40, dtype=torch.bool))
    assert geometry_of(vectors, None).cosine == pytest.approx(expected, abs=1e-6)


def test_with_labels_it_is_over_pairs_of_different_classes_and_without_the_ignored() -> None:
    torch.manual_seed(0)
    vectors, labels = torch.randn(40, 5), torch.randint(-1, 4, (40,))
    pairs = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    assert geometry_of(vectors, labels).cosine == pytest.approx(mean_cosine(vectors, pairs), abs=1e-6)


def test_without_a_pair_there_is_no_mean_cosine() -> None:
    assert math.isnan(geometry_of(torch.ones(1, 3), None).cosine)
    assert math.isnan(geometry_of(torch.ones(4, 3), torch.tensor([2, 2, -1, 2])).cosine)


def test_lengths_are_counted_and_averaged() -> None:
    geometry = geometry_of(torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), None)
    assert (geometry.num, geometry.num_zero, geometry.finite, geometry.length) == (4, 1, True, 2.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_noticed(value: float) -> None:
    vectors = torch.ones(4, 3)
    vectors[2, 1] = value
    assert not geometry_of(vectors, None).finite

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.errors import DataError
from arcwise.evaluation.angles import angle_between, labelled, unit_rows


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1e-3, 1.0, math.pi / 2, 3.0, math.pi - 1e-6, math.pi])
def test_angles_keep_their_precision_at_both_ends(angle: float) -> None:
    a = torch.tensor([1.0, 0.0], dtype=torch.float64)
    b = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    assert angle_between(a, b).item() == pytest.approx(angle, rel=1e-9, abs=1e-15)


@settings(deadline=None)
@given(st.floats(-300, 300))
def test_length_changes_nothing_however_extreme(exponent: float) -> None:
    vector = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    torch.testing.assert_close(unit_rows(vector * 10.0**exponent), vector / 5)


def test_float16_rows_are_normalised_in_float64() -> None:
    unit = unit_rows(torch.tensor([[30000.0, 40000.0], [6e-8, 0.0]], dtype=torch.float16))
    assert unit.dtype == torch.float64
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(2, dtype=torch.float64))


def test_rows_of_zeros_are_named() -> None:
    vectors = torch.ones(9, 2)
    vectors[[1, 2, 3, 5, 7, 8]] = 0
    with pytest.raises(
        DataError, match=r"embeddings of length zero have no direction: 6 of 9, in rows 1, 2, 3, 5, 7, …"
    ):
        unit_rows(vectors)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rows_that_are_not_finite_are_named(bad: float) -> None:
    vectors = torch.ones(3, 2)
    vectors[2, 1] = bad
    with pytest.raises(DataError, match=r"not finite have no direction: 1 of 3, in rows 2\. Leave"):
        unit_rows(vectors)


def test_a_single_vector_is_not_a_matrix() -> None:
    with pytest.raises(DataError, match=r"one embedding a row; got the shape \(3,\)"):
        unit_rows(torch.ones(3))


def test_samples_without_a_label_are_left_out() -> None:
    embeddings, labels = labelled(torch.arange(8.0).view(4, 2), torch.tensor([-1, 3, -1, 0]))
    assert labels.tolist() == [3, 0]
    assert embeddings.tolist() == [[2.0, 3.0], [6.0, 7.0]]


@pytest.mark.parametrize("labels", [torch.zeros(3), torch.zeros(4, 1)])
def test_labels_must_match_the_embeddings(labels: torch.Tensor) -> None:
    with pytest.raises(DataError, match="one label for each embedding; got 4 embeddings"):
        labelled(torch.ones(4, 2), labels)


def test_nothing_but_ignored_samples_is_nothing_to_measure() -> None:
    with pytest.raises(DataError, match="nothing to measure"):
        labelled(torch.ones(2, 2), torch.tensor([-1, -1]))

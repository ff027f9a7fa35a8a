from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import DataError
from arcwise.evaluation import geometry


def on_circle(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def test_two_classes_on_a_circle_measure_what_a_protractor_would() -> None:
    found = geometry(
        on_circle(-10, 10, 80, 120) * torch.tensor([[1.0], [7.0], [0.1], [3.0]]), torch.tensor([0, 0, 1, 1])
    )
    assert found.own_angle == pytest.approx((10 + 10 + 20 + 20) / 4)
    assert found.other_angle == pytest.approx((110 + 90 + 80 + 120) / 4)
    assert found.smallest_centre_angle == pytest.approx(100)
    assert found.closest_pair == (0, 1)


def test_the_closest_pair_is_named_by_its_labels() -> None:
    found = geometry(on_circle(0, 170, 90, 95), torch.tensor([2, 5, 9, 7]))
    assert found.closest_pair == (7, 9)
    assert found.smallest_centre_angle == pytest.approx(5)
    assert dict(found.table())["smallest angle between centres"] == "5.00° (classes 7 and 9)"


def test_a_millionth_of_a_radian_is_not_lost() -> None:
    angle = math.degrees(1e-6)
    found = geometry(on_circle(-angle, angle, 2 * angle), torch.tensor([0, 0, 1]))
    assert found.own_angle == pytest.approx(2 / 3 * angle, rel=1e-6)
    assert found.smallest_centre_angle == pytest.approx(2 * angle, rel=1e-6)


def test_the_fisher_ratio_is_that_of_the_scatter_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (80,), generator=generator)
    embeddings = torch.randn(4, 5, generator=generator)[labels] + torch.randn(80, 5, generator=generator)
    unit = embeddings / embeddings.norm(dim=1, keepdim=True)
    mean = unit.mean(dim=0)
    within, between = torch.zeros(5, 5), torch.zeros(5, 5)
    for c in range(4):
        own = unit[labels == c]
        centred = own - own.mean(dim=0)
        within += centred.T @ centred
        between += len(own) * torch.outer(own.mean(dim=0) - mean, own.mean(dim=0) - mean)
    assert geometry(embeddings, labels).fisher == pytest.approx((between.trace() / within.trace()).item(), rel=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_rotating_everything_changes_nothing(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    labels = torch.arange(30) % 3
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64))[0]
    before, after = geometry(embeddings, labels), geometry(embeddings @ rotation, labels)
    # Class means are kept in float32.
    assert after.own_angle == pytest.approx(before.own_angle, abs=1e-4)
    assert after.other_angle == pytest.approx(before.other_angle, abs=1e-4)
    assert after.smallest_centre_angle == pytest.approx(before.smallest_centre_angle, abs=1e-4)
    assert after.fisher == pytest.approx(before.fisher)


def test_directions_from_training_are_used_where_given() -> None:
    directions = torch.zeros(3, 2)
    directions[0], directions[2] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    found = geometry(on_circle(30, 60), torch.tensor([0, 2]), directions=directions)
    assert found.own_angle == pytest.approx(30)
    assert found.other_angle == pytest.approx(60)
    assert found.smallest_centre_angle == pytest.approx(90)
    assert found.closest_pair == (0, 2)


def test_a_class_without_a_direction_is_left_out() -> None:
    directions = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    found = geometry(on_circle(30, 60), torch.tensor([0, 1]), directions=directions)
    assert found.own_angle == pytest.approx(30)
    with pytest.raises(DataError, match="none of the labelled embeddings is of a class with a mean direction"):
        geometry(on_circle(60), torch.tensor([1]), directions=directions)


def test_one_class_has_nothing_to_be_apart_from() -> None:
    found = geometry(on_circle(0, 20), torch.tensor([0, 0]))
    assert found.own_angle == pytest.approx(10)
    assert math.isnan(found.smallest_centre_angle)
    read = json.loads(json.dumps(found.to_dict()))
    assert (read["smallest_centre_angle"], read["closest_pair"], read["fisher"]) == (None, None, 0.0)
    assert dict(found.table())["smallest angle between centres"] == "–"


def test_classes_that_are_single_points_have_an_infinite_ratio() -> None:
    found = geometry(on_circle(0, 0, 90, 90), torch.tensor([0, 0, 1, 1]))
    assert found.fisher == math.inf
    assert found.to_dict()["fisher"] is None
    assert found.own_angle == pytest.approx(0, abs=1e-5)


def test_embeddings_that_all_collapsed_have_no_ratio() -> None:
    assert math.isnan(geometry(on_circle(40, 40, 40), torch.tensor([0, 1, 1])).fisher)

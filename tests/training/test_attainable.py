from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arcwise.margins import nearest_centre_angle
from arcwise.training.attainable import loss_without_knowledge, troubles_of_settings
from arcwise.training.trouble import Trouble


def troubles(
    *, num_classes: int = 10, dim: int = 128, scale: float | None = 10.0, margin: float = 0.0
) -> tuple[Trouble, ...]:
    return troubles_of_settings(num_classes, dim, scale, margin)


@pytest.mark.parametrize("scale", [None, 1.0, 64.0])
@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("num_classes", [1, 2, 1000])
def test_training_begins_at_the_loss_of_right_angles(num_classes: int, scale: float | None, margin: float) -> None:
    logits = torch.zeros(num_classes, dtype=torch.float64)
    logits[0] = (scale or 0.0) * math.cos(math.pi / 2 + margin)
    expected = float(-logits.log_softmax(0)[0])
    assert loss_without_knowledge(num_classes, scale, margin) == pytest.approx(expected, abs=1e-9)


def test_the_posterior_and_the_floor_of_the_loss_are_those_of_a_perfect_embedding() -> None:
    (trouble,) = troubles(num_classes=100, scale=0.5)
    # A simplex: every embedding on its centre, the 99 others at cos φ = −1/99.
    logits = torch.full((100,), 0.5 * -1 / 99)
    logits[0] = 0.5
    floor = float(-logits.log_softmax(0)[0])
    assert f"only {100 * math.exp(-floor):.2g} % of the probability" in trouble.message
    assert f"begins near {math.log(100):.2f}, cannot go below {floor:.2f}" in trouble.message
    assert "Use --scale 10." in trouble.message


@given(st.integers(2, 5000), st.integers(2, 600), st.floats(0, 1.5), st.floats(0.01, 500))
def test_the_scale_that_is_advised_is_not_complained_about(
    num_classes: int, dim: int, margin: float, scale: float
) -> None:
    for trouble in troubles(num_classes=num_classes, dim=dim, scale=scale, margin=margin):
        if trouble.name == "margin-too-large":
            phi, _ = nearest_centre_angle(num_classes, dim)
            advised = float(trouble.message.split("--margin ")[1].split(",")[0])
            assert 0 < advised < phi <= margin + 1e-9
            continue
        advised = float(trouble.message.split("--scale ")[1].rstrip("."))
        assert (advised > scale) == (trouble.name == "scale-too-small")
        assert troubles(num_classes=num_classes, dim=dim, scale=advised, margin=margin) == ()


@pytest.mark.parametrize(
    ("num_classes", "dim", "scale", "margin"),
    [
        (10, 2, 77.0, 0.5),
        (10, 3, 12.6, 0.5),
        (10, 3, 64.0, 0.5),
        (10, 128, 6.9, 0.5),
        (10, 128, 30.0, 0.35),
        (2, 2, 5.0, 0.5),
        (93_431, 512, 64.0, 0.5),
        (10_575, 512, 30.0, 0.35),
        (100, 512, None, 0.0),
    ],
)
def test_settings_that_people_use_with_success_are_told_nothing(
    num_classes: int, dim: int, scale: float | None, margin: float
) -> None:
    assert troubles(num_classes=num_classes, dim=dim, scale=scale, margin=margin) == ()


def test_the_scale_of_the_face_papers_on_two_or_ten_classes_is_told_to_be_large() -> None:
    for num_classes in (2, 10):
        (trouble,) = troubles(num_classes=num_classes, scale=64.0, margin=0.5)
        assert trouble.name == "scale-too-large"
        assert "the scale of 64 is large" in trouble.message
    assert trouble.message.endswith("Use --scale 7.")


def test_a_margin_wider_than_the_room_between_centres_is_told_with_one_that_fits() -> None:
    (trouble,) = troubles(num_classes=100, dim=2, scale=64.0, margin=0.5)
    assert trouble.name == "margin-too-large"
    assert (
        "the margin of 0.5 (28.6°) cannot be met: 100 classes in 2 dimensions stand at best 3.6° apart. Use --margin 0.031"
        in trouble.message
    )

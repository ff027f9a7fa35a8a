from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins import (
    ArcFace,
    CombinedMargin,
    CosFace,
    Facts,
    Margin,
    NormSoftmax,
    build,
    choose_scale,
    names,
    nearest_centre_angle,
)
from arcwise.margins.auto_scale import _angle_whose_cap_holds

classes = st.one_of(st.integers(2, 40), st.integers(2, 10**7))
dims = st.one_of(st.integers(2, 8), st.integers(2, 4096))


def nearest_angles(points_ND: Tensor) -> Tensor:
    """The angle from each point to its nearest other one, in radians."""
    cos_NN = points_ND @ points_ND.T
    return cos_NN.fill_diagonal_(-2).amax(dim=1).clamp(-1, 1).acos()


def simplex(n: int) -> Tensor:
    centred: Tensor = torch.eye(n, dtype=torch.float64) - 1 / n
    centred /= centred.norm(dim=1, keepdim=True)
    return centred


def ring(n: int) -> Tensor:
    turn = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    return torch.stack([turn.cos(), turn.sin()], dim=1)


def cross_polytope(d: int) -> Tensor:
    return torch.cat([torch.eye(d, dtype=torch.float64), -torch.eye(d, dtype=torch.float64)])


def repelled(n: int, d: int, starts: int = 8) -> float:
    """How far apart gradient descent on a repulsion that sharpens by and by pushes n points in d dimensions."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(starts, n, d, dtype=torch.float64, generator=generator)
    points /= points.norm(dim=2, keepdim=True)
    itself = torch.eye(n, dtype=torch.bool)
    for sharpness in (4, 16, 64, 256, 1024, 4096):
        for _ in range(250):
            cos = (points @ points.transpose(1, 2)).masked_fill(itself, -torch.inf)
            pull = torch.softmax(sharpness * cos.flatten(1), dim=1).view_as(cos) @ points
            points -= n / sharpness * pull
            points /= points.norm(dim=2, keepdim=True)
    return max(float(nearest_angles(start).min()) for start in points)


@pytest.mark.parametrize(("n", "d"), [(2, 2), (2, 512), (3, 2), (4, 3), (10, 9), (10, 128), (129, 128)])
def test_up_to_one_class_more_than_dimensions_stand_as_a_simplex(n: int, d: int) -> None:
    measured = nearest_angles(simplex(n))
    phi, k = nearest_centre_angle(n, d)
    assert measured.tolist() == pytest.approx([phi] * n, abs=1e-7)
    assert k == n - 1


@pytest.mark.parametrize("n", [4, 5, 10, 100])
def test_classes_in_the_plane_stand_on_a_ring(n: int) -> None:
    phi, k = nearest_centre_angle(n, 2)
    assert nearest_angles(ring(n)).tolist() == pytest.approx([phi] * n, abs=1e-7)
    assert k == 2


@pytest.mark.parametrize("d", [3, 4, 5, 64])
def test_up_to_two_classes_a_dimension_stand_at_right_angles(d: int) -> None:
    assert nearest_angles(cross_polytope(d)).tolist() == pytest.approx([math.pi / 2] * 2 * d)
    for n in range(d + 2, 2 * d + 1):
        phi, k = nearest_centre_angle(n, d)
        assert phi == pytest.approx(math.pi / 2)
        assert k <= n - 1
    assert nearest_centre_angle(2 * d, d)[1] == 2 * d - 2


def test_twelve_classes_on_the_ordinary_sphere_stand_as_an_icosahedron() -> None:
    golden = (1 + math.sqrt(5)) / 2
    corners = torch.tensor([[0, a, b * golden] for a in (1, -1) for b in (1, -1)], dtype=torch.float64)
    corners = torch.cat([corners.roll(turn, dims=1) for turn in range(3)])
    corners /= corners.norm(dim=1, keepdim=True)
    phi, _ = nearest_centre_angle(12, 3)
    assert nearest_angles(corners).tolist() == pytest.approx([phi] * 12, abs=1e-4)


@pytest.mark.parametrize("n", [7, 10, 14])
def test_points_that_repel_each_other_on_the_sphere_end_as_far_apart_as_the_table_says(n: int) -> None:
    phi, _ = nearest_centre_angle(n, 3)
    reached = repelled(n, 3)
    assert reached <= phi + math.radians(0.01)
    assert reached == pytest.approx(phi, abs=math.radians(0.3))


@pytest.mark.parametrize(("n", "d"), [(24, 3), (40, 3), (12, 4), (30, 5), (40, 8)])
def test_the_estimate_beyond_the_known_cases_is_within_a_fifth_of_what_repulsion_reaches(n: int, d: int) -> None:
    phi, _ = nearest_centre_angle(n, d)
    assert phi == pytest.approx(repelled(n, d, starts=4), rel=0.2)


@pytest.mark.parametrize("angle", [0.01, 0.3, 1.0, 1.5])
def test_the_spherical_cap_agrees_with_its_closed_forms(angle: float) -> None:
    in_three = (1 - math.cos(angle)) / 2
    in_four = (2 * angle - math.sin(2 * angle)) / (2 * math.pi)
    assert _angle_whose_cap_holds(in_three, 3) == pytest.approx(angle, abs=2e-4)
    assert _angle_whose_cap_holds(in_four, 4) == pytest.approx(angle, abs=2e-4)


@given(n=classes, d=dims)
@example(n=20, d=3)  # where the table ends and the bound begins
@settings(deadline=None, max_examples=60)
def test_centres_never_stand_further_apart_when_there_are_more_of_them(n: int, d: int) -> None:
    assert nearest_centre_angle(n + 1, d)[0] <= nearest_centre_angle(n, d)[0] + 1e-12


@given(n=classes, d=dims)
@example(n=9, d=3)  # where the estimate alone would fall below what three dimensions already allow
@settings(deadline=None, max_examples=60)
def test_centres_never_stand_closer_when_there_are_more_dimensions(n: int, d: int) -> None:
    assert nearest_centre_angle(n, d + 1)[0] >= nearest_centre_angle(n, d)[0] - 2e-4


def test_the_published_numbers_for_ten_classes_come_out() -> None:
    scales = {dim: choose_scale(10, dim, ArcFace(0.5)).scale for dim in (128, 3, 2)}
    assert scales[128] == pytest.approx(6.9, abs=0.05)
    assert scales[3] == pytest.approx(12.6, abs=0.05)
    assert scales[2] == pytest.approx(77, abs=0.5)


@pytest.mark.parametrize("dim", [2, 3, 128])
@pytest.mark.parametrize("name", names())
def test_an_embedding_on_its_centre_reaches_the_posterior_under_the_margin(name: str, dim: int) -> None:
    choice = choose_scale(10, dim, build(name))
    phi, k = nearest_centre_angle(10, dim)
    if choice.margin.owns_scale:
        assert choice.scale == pytest.approx(math.sqrt(2) * math.log(9))
        return
    own = choice.scale * choice.margin.target_at_zero()
    other = choice.scale * choice.margin.negative_at(math.cos(phi), Facts(10, dim))
    if choice.margin.reduction == "softmax":
        assert 1 / (1 + k * math.exp(other - own)) == pytest.approx(0.99, abs=1e-9)
    else:
        # With the threshold where the own class is 99 % a yes, all other classes together are 1 % a yes, to first order.
        assert k * math.exp(other - (own - math.log(99))) == pytest.approx(1 / 99, rel=1e-6)


@given(n=classes, d=dims, name=st.sampled_from(names()))
@settings(deadline=None, max_examples=100)
def test_the_scale_is_finite_and_positive_for_any_number_of_classes_and_width(n: int, d: int, name: str) -> None:
    choice = choose_scale(n, d, build(name))
    assert math.isfinite(choice.scale)
    assert choice.scale > 0
    if not choice.margin.owns_scale:
        other = choice.margin.negative_at(math.cos(nearest_centre_angle(n, d)[0]), Facts(n, d))
        assert choice.margin.target_at_zero() > other


@given(n=classes, d=dims, low=st.floats(0.51, 0.9999), high=st.floats(0.51, 0.9999))
@settings(deadline=None, max_examples=30)
def test_a_higher_posterior_asks_for_a_larger_scale(n: int, d: int, low: float, high: float) -> None:
    low, high = sorted((low, high))
    smaller, larger = (choose_scale(n, d, ArcFace(0.5), posterior).scale for posterior in (low, high))
    assert smaller <= larger


@pytest.mark.parametrize("margin", [ArcFace(0.5), CosFace(0.35), CombinedMargin(1.0, 0.3, 0.2)])
def test_a_margin_that_cannot_be_met_is_reduced_and_it_is_said(margin: Margin) -> None:
    choice = choose_scale(100, 2, margin)
    assert type(choice.margin) is type(margin)
    assert choice.margin != margin
    # Half of the 3.6 degrees between neighbours on the ring is left to the embeddings.
    assert choice.margin.target_at_zero() == pytest.approx(math.cos(math.radians(1.8)), abs=1e-9)
    assert f"% of {margin}" in choice.reasoning
    assert "The margin was reduced to" in choice.reasoning
    assert "3.6° apart, which leaves no room for it." in choice.reasoning


def test_a_margin_is_reduced_to_half_the_angle_between_centres_once_it_takes_more_than_four_fifths_of_it() -> None:
    phi, _ = nearest_centre_angle(10, 2)
    assert choose_scale(10, 2, ArcFace(0.79 * phi)).margin == ArcFace(0.79 * phi)
    reduced = choose_scale(10, 2, ArcFace(0.81 * phi)).margin
    assert isinstance(reduced, ArcFace)
    assert reduced.m == pytest.approx(phi / 2, abs=1e-6)


def test_a_margin_that_can_be_met_is_left_as_it_is_and_the_reasoning_gives_the_numbers() -> None:
    choice = choose_scale(10, 3, ArcFace(0.5))
    assert choice.margin == ArcFace(0.5)
    assert choice.reasoning == (
        "scale 12.6: 10 centres in 3 dimensions can stand 66.2° apart, with 4 nearest neighbours;"
        " an embedding on its own centre then gets the probability 0.99 under the margin."
    )


def test_two_classes_have_one_neighbour_each() -> None:
    choice = choose_scale(2, 128, ArcFace(0.5))
    assert choice.scale == pytest.approx(math.log(99) / (math.cos(0.5) + 1))
    assert "with 1 nearest neighbour;" in choice.reasoning


def test_a_margin_of_zero_angle_is_never_reduced() -> None:
    assert choose_scale(10**7, 2, NormSoftmax()).margin == NormSoftmax()


@pytest.mark.parametrize(("n", "message"), [(1, "there must be at least 2 classes; got 1."), (0, None), (-3, None)])
def test_fewer_than_two_classes_are_refused(n: int, message: str | None) -> None:
    with pytest.raises(ConfigError) as error:
        nearest_centre_angle(n, 3)
    assert str(error.value) == (message or f"there must be at least 2 classes; got {n}.")


def test_fewer_than_two_dimensions_are_refused() -> None:
    with pytest.raises(ConfigError) as error:
        nearest_centre_angle(10, 1)
    assert str(error.value) == "an angle needs at least 2 dimensions; got 1."


@pytest.mark.parametrize("posterior", [0.5, 1.0, 0.0, -1.0, math.nan])
def test_a_posterior_that_cannot_be_aimed_at_is_refused(posterior: float) -> None:
    with pytest.raises(ConfigError) as error:
        choose_scale(10, 3, ArcFace(0.5), posterior)
    assert str(error.value) == f"posterior must be between 0.5 and 1, a probability to reach; got {posterior:g}."

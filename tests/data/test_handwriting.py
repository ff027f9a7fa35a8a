from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from arcwise.data import handwriting
from arcwise.data.handwriting import BEND_SHARE, INK_SHARE, SHEAR, SHIFT_SHARE, TURN_RADIANS, ZOOM_SHARE, other_hand

STRENGTHS = ("TURN_RADIANS", "SHEAR", "ZOOM_SHARE", "SHIFT_SHARE", "BEND_SHARE", "INK_SHARE")
NUM = 400


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(num: int = 4, channels: int = 1, height: int = 28, width: int = 28, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, (num, channels, height, width), generator=seeded(seed), dtype=torch.uint8)


def only(monkeypatch: pytest.MonkeyPatch, kept: str = "") -> None:
    """Switch every change off but one."""
    for name in STRENGTHS:
        if name != kept:
            monkeypatch.setattr(handwriting, name, 0.0)


def looked_up(side: int = 33) -> tuple[Tensor, Tensor]:
    """(P, 2) places around the middle, and (B, P, 2) where each of many changed pictures shows the old one there.

    The middle is 0 and the sides are at ±1. A picture that holds its own coordinates is interpolated without error.
    """
    line = (torch.arange(side) * 2 + 1) / side - 1
    ramps = torch.stack([line.expand(side, side), line[:, None].expand(side, side)])
    found = other_hand(ramps.expand(NUM, 2, side, side), seeded())
    inside = slice(side // 4, side - side // 4)
    place, seen = ramps[:, inside, inside].flatten(1).T, found[:, :, inside, inside].flatten(2).mT
    return place, seen


def affine() -> tuple[Tensor, Tensor]:
    """(B, 2, 2) and (B, 2): the map of each picture, which must be one."""
    place, seen = looked_up()
    ones = torch.cat([place, torch.ones(len(place), 1)], dim=1).double()
    solution = torch.linalg.lstsq(ones.expand(NUM, -1, -1), seen.double()).solution
    torch.testing.assert_close(ones @ solution, seen.double(), atol=1e-5, rtol=0)
    return solution[:, :2].mT, solution[:, 2]


def assert_spread(values: Tensor, limit: float) -> None:
    """Uniform over [−limit, limit], as far as the draws tell."""
    assert float(values.abs().max()) <= limit * (1 + 1e-4)
    assert float(values.min()) < -0.9 * limit
    assert float(values.max()) > 0.9 * limit
    assert abs(float(values.mean())) < 0.15 * limit


def test_without_any_change_a_picture_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    for size in ((28, 28), (9, 14)):
        images = pictures(6, 3, *size)
        assert torch.equal(other_hand(images, seeded()), images)


def test_turning_is_by_fifteen_degrees_at_most_to_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "TURN_RADIANS")
    matrix, shift = affine()
    angle = torch.atan2(matrix[:, 1, 0], matrix[:, 0, 0])
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).view(-1, 2, 2)
    torch.testing.assert_close(matrix, turn, atol=1e-5, rtol=0)
    assert math.degrees(TURN_RADIANS) == pytest.approx(15)
    assert_spread(angle, TURN_RADIANS)
    assert float(shift.abs().max()) < 1e-5


def test_slanting_moves_each_row_along_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "SHEAR")
    matrix, _ = affine()
    slant = torch.eye(2, dtype=torch.float64).repeat(NUM, 1, 1)
    slant[:, 0, 1] = matrix[:, 0, 1]
    torch.testing.assert_close(matrix, slant, atol=1e-5, rtol=0)
    assert_spread(matrix[:, 0, 1], SHEAR)


def test_stretching_is_along_each_side_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "ZOOM_SHARE")
    matrix, _ = affine()
    torch.testing.assert_close(matrix, torch.diag_embed(matrix.diagonal(dim1=1, dim2=2)), atol=1e-5, rtol=0)
    growth_x, growth_y = matrix.diagonal(dim1=1, dim2=2).reciprocal().T - 1
    assert_spread(growth_x, ZOOM_SHARE)
    assert_spread(growth_y, ZOOM_SHARE)
    assert abs(float(torch.corrcoef(torch.stack([growth_x, growth_y]))[0, 1])) < 0.2


def test_moving_is_by_a_share_of_the_side(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "SHIFT_SHARE")
    matrix, shift = affine()
    torch.testing.assert_close(matrix, torch.eye(2, dtype=torch.float64).expand(NUM, 2, 2), atol=1e-5, rtol=0)
    for moved in shift.T:
        assert_spread(moved / 2, SHIFT_SHARE)  # a side is 2 long


def test_bending_is_smooth_and_a_few_percent_of_the_side(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "BEND_SHARE")
    place, seen = looked_up()
    bend = (seen - place) / 2
    assert float(bend.std()) == pytest.approx(BEND_SHARE, rel=0.4)
    rows = bend.view(NUM, 17, 17, 2)
    assert float(rows.diff(dim=2).std()) < 0.15 * float(bend.std())
    flat = bend - bend.mean(dim=1, keepdim=True)
    assert float(flat.std()) > 0.3 * float(bend.std())


def test_ink_gets_thicker_or_thinner_by_less_than_a_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "INK_SHARE")
    image = torch.zeros(1, 1, 16, 16)
    image[..., 5:11, 5:11] = 1
    found = other_hand(image.expand(NUM, 1, 16, 16), seeded())
    thick, thin = functional.max_pool2d(image, 3, 1, 1), -functional.max_pool2d(-image, 3, 1, 1)
    assert bool(((thin <= found) & (found <= thick)).all())
    around, rim = found[:, 0, 4, 7], found[:, 0, 5, 7]
    assert bool(((around == 0) | (rim == 1)).all())
    assert_spread(around + rim - 1, INK_SHARE)
    assert bool((found[:, 0, 6:10, 6:10] == 1).all())


def test_ink_reaches_the_edge_of_the_picture_like_any_other_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "INK_SHARE")
    image = torch.zeros(1, 1, 8, 8)
    image[..., 0, 0] = 1
    found = other_hand(image.expand(NUM, 1, 8, 8), seeded())
    assert torch.equal(found[:, 0, 0, 1], found[:, 0, 1, 1])
    assert float(found[:, 0, 0, 1].max()) > 0.9 * INK_SHARE
    assert float(found[:, 0, 2:, :].max()) == 0


def test_small_and_large_pictures_are_changed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handwriting, "INK_SHARE", 0.0)

    def blobs(side: int) -> Tensor:
        line = (torch.arange(side) * 2 + 1) / side - 1
        x, y = line.expand(side, side), line[:, None].expand(side, side)
        both = torch.exp(-20 * ((x - 0.3) ** 2 + y**2)) + torch.exp(-20 * ((x + 0.3) ** 2 + (y - 0.2) ** 2))
        return both.expand(20, 1, side, side)

    small, large = other_hand(blobs(32), seeded()), other_hand(blobs(96), seeded())
    assert float((functional.avg_pool2d(large, 3) - small).abs().max()) < 0.05
    assert float((small - blobs(32)).abs().max()) > 0.3


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000), num=st.integers(0, 4), channels=st.integers(1, 3),
    height=st.integers(2, 20), width=st.integers(2, 20),
)  # fmt: skip
def test_shape_is_kept_and_no_pixel_is_brighter_than_the_brightest(
    seed: int, num: int, channels: int, height: int, width: int
) -> None:
    images = pictures(num, channels, height, width, seed)
    before = images.clone()
    found = other_hand(images, seeded(seed))
    assert (found.shape, found.dtype) == (images.shape, torch.uint8)
    assert torch.equal(images, before)
    assert bool((found.flatten(1).amax(dim=1) <= images.flatten(1).amax(dim=1)).all() if num else True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_the_dtype_is_kept_and_bytes_are_rounded(dtype: torch.dtype) -> None:
    images = pictures()
    found = other_hand(images.to(dtype), seeded())
    assert found.dtype == dtype
    exact = other_hand(images.float(), seeded())
    assert torch.equal(found, (exact + 0.5).floor().to(dtype) if dtype == torch.uint8 else exact.to(dtype))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_an_empty_batch_stays_empty(dtype: torch.dtype) -> None:
    found = other_hand(torch.empty(0, 1, 28, 28, dtype=dtype), seeded())
    assert (found.shape, found.dtype) == ((0, 1, 28, 28), dtype)


def test_the_same_state_of_the_generator_gives_the_same_batch() -> None:
    images, generator = pictures(), seeded(7)
    first, second = other_hand(images, generator), other_hand(images, generator)
    assert torch.equal(first, other_hand(images, seeded(7)))
    assert not torch.equal(first, second)
    generator.set_state(seeded(7).get_state())
    assert torch.equal(other_hand(images, generator), first)


def test_what_is_drawn_from_torchs_own_generator_has_no_say_and_is_not_moved_on() -> None:
    images = pictures()
    torch.manual_seed(1)
    first, state = other_hand(images, seeded()), torch.get_rng_state()
    torch.manual_seed(2)
    second = other_hand(images, seeded())
    assert torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)


def test_each_picture_of_a_batch_is_changed_in_its_own_way() -> None:
    found = other_hand(pictures(1).expand(5, 1, 28, 28), seeded())
    assert len({tuple(image.flatten().tolist()) for image in found}) == 5


def test_all_channels_of_a_picture_are_changed_alike() -> None:
    images = pictures(3)
    found = other_hand(images.expand(3, 3, 28, 28), seeded())
    assert torch.equal(found, other_hand(images, seeded()).expand(3, 3, 28, 28))


def test_an_empty_sheet_stays_empty() -> None:
    assert int(other_hand(torch.zeros(5, 1, 28, 28, dtype=torch.uint8), seeded()).max()) == 0

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.data import AUGMENTATIONS, augment, prepare
from arcwise.errors import ConfigError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(num: int = 8, channels: int = 3, height: int = 32, width: int = 32) -> Tensor:
    return torch.randint(0, 256, (num, channels, height, width), dtype=torch.uint8, generator=generator(9))


def blob(size: int = 28) -> Tensor:
    """A soft spot in the middle: its place and width show what was done to it."""
    axis = torch.arange(size) - (size - 1) / 2
    return (255 * torch.exp(-(axis[:, None] ** 2 + axis**2) / 18)).round().to(torch.uint8).expand(200, 1, size, size)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(AUGMENTATIONS), st.integers(1, 4), st.sampled_from([1, 3]), st.integers(1, 14), st.integers(1, 14),
    st.booleans(),
)  # fmt: skip
def test_shape_type_and_input_stay_and_the_same_state_gives_the_same_bits(
    kind: str, num: int, channels: int, height: int, width: int, floats: bool
) -> None:
    images = pictures(num, channels, height, width)
    images = images.float() / 255 if floats else images
    before = images.clone()
    first, second = augment(images, kind, generator(3)), augment(images, kind, generator(3))
    assert first.shape == images.shape
    assert first.dtype == images.dtype
    assert torch.equal(first, second)
    assert torch.equal(images, before)


@pytest.mark.parametrize("kind", [kind for kind in AUGMENTATIONS if kind != "none"])
def test_another_state_gives_another_batch_and_the_global_generator_is_left_alone(kind: str) -> None:
    state = torch.get_rng_state()
    assert not torch.equal(augment(pictures(), kind, generator(1)), augment(pictures(), kind, generator(2)))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("kind", AUGMENTATIONS)
def test_channels_last_batches_give_the_same_pictures(kind: str) -> None:
    images = pictures()
    other = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(augment(images, kind, generator()), augment(other, kind, generator()))


def test_none_changes_nothing() -> None:
    assert torch.equal(augment(pictures(), "none", generator()), pictures())


def test_crop_flip_only_moves_pixels_that_are_there_and_flips_about_half() -> None:
    images = torch.arange(32).mul(7).to(torch.uint8).expand(400, 1, 32, 32)
    changed = augment(images, "crop-flip", generator())
    rising = (changed[:, 0, 0, 16].int() > changed[:, 0, 0, 15].int()).float().mean()
    assert 0.4 < rising < 0.6
    assert set(changed.unique().tolist()) <= set(images.unique().tolist())


def test_crop_flip_is_a_shift_of_at_most_four_with_a_mirrored_border() -> None:
    images = pictures(64)
    changed = augment(images, "crop-flip", generator())
    padded = torch.nn.functional.pad(images.float(), (4, 4, 4, 4), mode="reflect").to(torch.uint8)
    for image, wide in zip(changed, padded, strict=True):
        crops = [wide[:, y : y + 32, x : x + 32] for y in range(9) for x in range(9)]
        assert any(torch.equal(image, crop) or torch.equal(image, crop.flip(2)) for crop in crops)


def test_cutout_greys_one_square_of_eight_beside_the_crop() -> None:
    images = pictures(50, channels=1)
    plain, cut = augment(images, "crop-flip", generator(5)), augment(images, "crop-flip-cutout", generator(5))
    for before, after in zip(plain, cut, strict=True):
        rows, columns = (before != after)[0].nonzero(as_tuple=True)
        assert rows.max() - rows.min() < 8
        assert columns.max() - columns.min() < 8
        assert len(rows) > 55
        square = after[0, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert len(square.unique()) == 1
        assert square[0, 0] == int(before.float().mean())


def test_affine_moves_the_middle_by_at_most_two_pixels_in_every_direction() -> None:
    changed = augment(blob(), "affine", generator()).double()[:, 0]
    axis = torch.arange(28).double() - 13.5
    mass = changed.sum(dim=(1, 2))
    for centre in ((changed.sum(dim=1) * axis).sum(dim=1) / mass, (changed.sum(dim=2) * axis).sum(dim=1) / mass):
        assert centre.abs().max() < 2.3
        assert centre.min() < -1.5
        assert centre.max() > 1.5


def test_affine_changes_the_size_by_at_most_a_tenth() -> None:
    before = blob()[:1].double().sum()
    area = augment(blob(), "affine", generator()).double().sum(dim=(1, 2, 3)) / before
    assert 0.9**2 * 0.97 < area.min() < 0.88
    assert 1.14 < area.max() < 1.1**2 * 1.03


def test_affine_of_wide_pictures_turns_without_shearing() -> None:
    spot = torch.zeros(100, 1, 20, 60, dtype=torch.uint8)
    spot[:, :, 8:12, 26:34] = 200
    area = augment(spot, "affine", generator()).double().sum(dim=(1, 2, 3)) / spot[0].double().sum()
    assert area.min() > 0.9**2 * 0.95
    assert area.max() < 1.1**2 * 1.05


def test_an_unknown_kind_says_what_was_meant() -> None:
    with pytest.raises(ConfigError, match=r'no augmentation called "crop-flp"\. Did you mean crop-flip'):
        augment(pictures(), "crop-flp", generator())


def test_features_cannot_be_cropped() -> None:
    with pytest.raises(ConfigError, match=r'needs images .* shape \(4, 7\)\. Use "none"'):
        augment(torch.zeros(4, 7), "affine", generator())


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([1, 3]), st.integers(1, 9))
def test_prepare_is_the_textbook_normalisation(channels: int, size: int) -> None:
    images = pictures(5, channels, size, size)
    mean, std = torch.rand(channels, generator=generator()), torch.rand(channels, generator=generator()) + 0.1
    expected = (images.double() / 255 - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)
    result = prepare(images, mean, std)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, expected.float(), atol=1e-5, rtol=1e-5)


def test_prepare_keeps_channels_last_and_does_not_write_into_its_input() -> None:
    images = pictures().contiguous(memory_format=torch.channels_last)
    assert prepare(images, torch.zeros(3), torch.ones(3)).is_contiguous(memory_format=torch.channels_last)
    features = torch.tensor([[1e6 + 1.0], [1e6 - 1.0]])
    torch.testing.assert_close(
        prepare(features, torch.tensor([1e6]), torch.tensor([0.5])), torch.tensor([[2.0], [-2.0]])
    )
    assert features[0, 0] == 1e6 + 1.0

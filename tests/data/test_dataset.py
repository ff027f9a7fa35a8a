from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data import Dataset, Split


def dataset_of(images: torch.Tensor) -> Dataset:
    split = Split(images, torch.zeros(len(images), dtype=torch.int64))
    return Dataset("some", "image", split, split, ("a", "b"), "here", "none")


def test_mean_and_deviation_are_those_of_pixels_between_zero_and_one() -> None:
    images = torch.randint(0, 256, (5000, 3, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    dataset = dataset_of(images)
    channels = images.double().div(255).transpose(0, 1).flatten(1)
    torch.testing.assert_close(dataset.mean, channels.mean(dim=1).float())
    torch.testing.assert_close(dataset.std, channels.std(dim=1, correction=0).float())


def test_a_channel_that_never_changes_has_the_deviation_one() -> None:
    images = torch.full((10, 2, 3, 3), 7, dtype=torch.uint8)
    images[:5, 1] = 9
    std = dataset_of(images).std
    assert std[0] == 1
    assert 0 < std[1] < 1


@settings(max_examples=25, deadline=None)
@given(st.floats(-1e6, 1e6, width=32), st.integers(1, 3))
def test_a_constant_column_of_features_has_the_deviation_one(value: float, columns: int) -> None:
    assert dataset_of(torch.full((50, columns), value)).std.tolist() == [1.0] * columns


def test_a_column_of_large_numbers_keeps_its_small_deviation() -> None:
    column = torch.arange(1000, dtype=torch.float32).remainder(2) + 1e6
    torch.testing.assert_close(dataset_of(column[:, None]).std, torch.tensor([0.5]))


def test_shape_and_classes_are_read_from_the_training_part() -> None:
    dataset = dataset_of(torch.zeros(4, 3, 8, 9, dtype=torch.uint8))
    assert dataset.shape == (3, 8, 9)
    assert dataset.num_classes == 2
    assert len(dataset.train) == 4

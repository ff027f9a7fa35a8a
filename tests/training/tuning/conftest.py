"""Data that trains in no time."""

from __future__ import annotations

import pytest
import torch

from arcwise.data import Dataset, Split


def blobs(num_classes: int, each: int, seed: int) -> Split:
    generator = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(num_classes, 6, generator=torch.Generator().manual_seed(99))
    labels = torch.arange(num_classes).repeat_interleave(each)
    return Split(centres[labels] + torch.randn(len(labels), 6, generator=generator), labels)


@pytest.fixture
def features() -> Dataset:
    """Five classes of 24 rows."""
    return Dataset("blobs", "features", blobs(5, 24, 0), blobs(5, 6, 1), tuple("abcde"), "a test", "none")


@pytest.fixture
def unseen() -> Dataset:
    """Twelve classes in four groups, and two others in the test part."""
    names = tuple(f"group{number // 3}/{number}" for number in range(12))
    return Dataset(
        "strangers", "features", blobs(12, 10, 0), blobs(2, 6, 1), names, "a test", "none", test_classes=("x/0", "x/1")
    )

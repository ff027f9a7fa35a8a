from __future__ import annotations

import pytest
import torch
from torch import Tensor

from arcwise.evaluation.noise import feature_noise, picture_noise

GREY = torch.full((40, 3, 20, 30), 128, dtype=torch.uint8)


def noisy(name: str, samples: Tensor, seed: int = 0) -> Tensor:
    kinds = picture_noise() if samples.ndim == 4 else feature_noise(samples)
    (kind,) = (kind for kind in kinds if kind.name == name)
    return kind.apply(samples, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", picture_noise(), ids=lambda kind: kind.name)
def test_pictures_keep_their_type_and_the_original_is_not_touched(kind: object) -> None:
    from arcwise.evaluation.noise import Noise

    assert isinstance(kind, Noise)
    before = GREY.clone()
    found = kind.apply(GREY, torch.Generator().manual_seed(0))
    assert (found.dtype, found.shape) == (torch.uint8, GREY.shape)
    assert torch.equal(GREY, before)
    assert not torch.equal(found, GREY)
    assert torch.equal(found, kind.apply(GREY, torch.Generator().manual_seed(0)))


def test_gaussian_noise_has_the_stated_spread_in_units_of_white() -> None:
    assert noisy("gaussian 0.1", GREY).float().std().item() / 255 == pytest.approx(0.1, rel=0.02)


def test_a_patch_covers_a_quarter_and_leaves_the_rest() -> None:
    changed = (noisy("patch 25 %", GREY) != GREY).any(dim=1)
    rows, columns = changed.any(dim=2).sum(dim=1), changed.any(dim=1).sum(dim=1)
    assert rows.unique().tolist() == [10]
    assert columns.unique().tolist() == [15]
    assert len(changed.any(dim=2).int().argmax(dim=1).unique()) > 3


def test_salt_and_pepper_are_a_tenth_of_the_pixels_half_black_half_white() -> None:
    found = noisy("salt and pepper 10 %", GREY)
    assert (found == 0).all(dim=1).float().mean().item() == pytest.approx(0.05, abs=0.005)
    assert (found == 255).all(dim=1).float().mean().item() == pytest.approx(0.05, abs=0.005)
    assert ((found == 128) | (found == 0) | (found == 255)).all()


def test_noise_on_features_is_relative_to_the_spread_of_each_column() -> None:
    spread = torch.tensor([1.0, 100.0, 0.0])
    features = torch.randn(4000, 3, generator=torch.Generator().manual_seed(1)) * spread
    added = noisy("gaussian 0.3", features) - features
    torch.testing.assert_close(added.std(dim=0), 0.3 * spread, rtol=0.06, atol=1e-6)


def test_a_quarter_of_the_columns_take_values_seen_in_that_column() -> None:
    features = torch.arange(80.0).view(10, 8) + 1000 * torch.arange(8)
    found = noisy("columns replaced 25 %", features)
    changed = found != features
    assert 0 < changed.sum(dim=1).max() <= 2
    for column in range(8):
        assert set(found[:, column].tolist()) <= set(features[:, column].tolist())

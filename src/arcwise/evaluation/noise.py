"""What is done to pictures and features to see how much of it a model stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

PATCH_SHARE = 0.25
SALT_AND_PEPPER_SHARE = 0.10
REPLACED_SHARE = 0.25
SIGMAS = (0.1, 0.3, 0.5)


@dataclass(frozen=True)
class Noise:
    """A kind of noise: `apply(samples, generator)` gives a noisy copy of the same dtype and shape."""

    name: str
    apply: Callable[[Tensor, Generator], Tensor]


def picture_noise() -> tuple[Noise, ...]:
    """For uint8 pictures (B, C, H, W). Strengths are in units where black is 0 and white is 1; values past either end are cut off."""
    return (
        *(Noise(f"gaussian {sigma}", _gaussian(sigma)) for sigma in SIGMAS),
        Noise("patch 25 %", _patch),
        Noise("salt and pepper 10 %", _salt_and_pepper),
    )


def feature_noise(features: Tensor) -> tuple[Noise, ...]:
    """For float features (B, F). Gaussian strengths are relative to the standard deviation of each column of `features`."""
    spread = features.double().std(dim=0, correction=0).to(features.dtype)
    return (
        *(Noise(f"gaussian {sigma}", _relative_gaussian(sigma, spread)) for sigma in SIGMAS),
        Noise("columns replaced 25 %", _replace_columns(features)),
    )


def _gaussian(sigma: float) -> Callable[[Tensor, Generator], Tensor]:
    def apply(pictures: Tensor, generator: Generator) -> Tensor:
        noise = torch.randn(pictures.shape, generator=generator).mul_(255 * sigma)
        return noise.add_(pictures).round_().clamp_(0, 255).to(torch.uint8)

    return apply


def _patch(pictures: Tensor, generator: Generator) -> Tensor:
    """A rectangle of half the height and half the width, somewhere in each picture, becomes uniform noise."""
    count, _, height, width = pictures.shape
    side = PATCH_SHARE**0.5
    inside = (
        _span(count, height, round(side * height), generator)[:, :, None]
        & _span(count, width, round(side * width), generator)[:, None, :]
    )
    noise = torch.randint(0, 256, pictures.shape, generator=generator, dtype=torch.uint8)
    return torch.where(inside[:, None], noise, pictures)


def _span(count: int, size: int, length: int, generator: Generator) -> Tensor:
    """(count, size) bool: in each row a run of `length` trues at a random place."""
    start = torch.randint(0, size - length + 1, (count, 1), generator=generator)
    position = torch.arange(size)
    return (position >= start) & (position < start + length)


def _salt_and_pepper(pictures: Tensor, generator: Generator) -> Tensor:
    """A tenth of the pixels become black or white, in all channels."""
    count, _, height, width = pictures.shape
    chance = torch.rand((count, 1, height, width), generator=generator)
    pepper = chance < SALT_AND_PEPPER_SHARE / 2
    salt = (chance >= SALT_AND_PEPPER_SHARE / 2) & (chance < SALT_AND_PEPPER_SHARE)
    return pictures.masked_fill(pepper, 0).masked_fill(salt, 255)


def _relative_gaussian(sigma: float, spread: Tensor) -> Callable[[Tensor, Generator], Tensor]:
    def apply(features: Tensor, generator: Generator) -> Tensor:
        return features + torch.randn(features.shape, generator=generator, dtype=features.dtype) * (sigma * spread)

    return apply


def _replace_columns(known: Tensor) -> Callable[[Tensor, Generator], Tensor]:
    """A quarter of each row's columns take the value that a random other row has there."""

    def apply(features: Tensor, generator: Generator) -> Tensor:
        count, columns = features.shape
        num_replaced = max(1, round(REPLACED_SHARE * columns))
        order = torch.rand((count, columns), generator=generator).argsort(dim=1)
        donors = torch.randint(0, len(known), (count, columns), generator=generator)
        return torch.where(order < num_replaced, known.gather(0, donors), features)

    return apply

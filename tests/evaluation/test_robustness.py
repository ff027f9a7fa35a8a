from __future__ import annotations

import pytest
import torch
from torch import Tensor

from arcwise.evaluation import class_means, robustness

LABELS = torch.arange(1100) % 2


def halves() -> Tensor:
    """Pictures whose left half is bright for class 0 and whose right half is for class 1."""
    pictures = torch.zeros(1100, 1, 8, 8, dtype=torch.uint8)
    pictures[0::2, :, :, :4] = 100
    pictures[1::2, :, :, 4:] = 100
    return pictures


def brightness_of_halves(pictures: Tensor) -> Tensor:
    assert pictures.dtype == torch.uint8
    pictures = pictures.float()
    return torch.stack([pictures[..., :4].mean(dim=(1, 2, 3)), pictures[..., 4:].mean(dim=(1, 2, 3))], dim=1)


def test_every_kind_of_noise_is_measured_in_both_ways_by_the_same_model() -> None:
    pictures = halves()
    means = class_means(brightness_of_halves(pictures), LABELS, 2)
    found = robustness(brightness_of_halves, pictures, LABELS, means.directions, means.raw, seed=0)
    assert [result.noise for result in found] == [
        "gaussian 0.1",
        "gaussian 0.3",
        "gaussian 0.5",
        "patch 25 %",
        "salt and pepper 10 %",
    ]
    assert found[0].angle == found[0].distance == 1.0
    assert all(result.angle > 0.6 for result in found)
    assert found[0].to_dict() == {"noise": "gaussian 0.1", "angle": 1.0, "distance": 1.0}


def test_the_noise_is_a_function_of_the_seed() -> None:
    seen: dict[int, list[Tensor]] = {0: [], 1: []}

    def record(seed: int, times: int) -> None:
        def embed(pictures: Tensor) -> Tensor:
            seen[seed].append(pictures)
            return brightness_of_halves(pictures)

        for _ in range(times):
            robustness(embed, halves()[:20], LABELS[:20], torch.eye(2), torch.eye(2), seed=seed)

    record(0, 2)
    record(1, 1)
    first, again, other = seen[0][:5], seen[0][5:], seen[1]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_model_that_only_sees_length_fails_by_angle() -> None:
    features = torch.cat([torch.randn(100, 4) + 10, torch.randn(100, 4) + 30])
    labels = torch.arange(200) // 100

    def embed(rows: Tensor) -> Tensor:
        return rows.mean(dim=1, keepdim=True) * torch.tensor([[1.0, 1.0]])

    means = class_means(embed(features), labels, 2)
    for result in robustness(embed, features, labels, means.directions, means.raw):
        assert result.distance > 0.9
        assert result.angle == pytest.approx(0.5, abs=0.05)


def test_samples_without_a_label_are_not_even_embedded() -> None:
    labels = LABELS[:20].clone()
    labels[5:] = -1
    sizes = []

    def embed(pictures: Tensor) -> Tensor:
        sizes.append(len(pictures))
        return brightness_of_halves(pictures)

    robustness(embed, halves()[:20], labels, torch.eye(2), torch.eye(2))
    assert sizes == [5] * 5

"""How a model's accuracy holds under noise, by the nearest angle and by the nearest distance: do angles stand it better?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from arcwise.evaluation.nearest_centre import accuracy, nearest_by_angle, nearest_by_distance
from arcwise.evaluation.noise import Noise, feature_noise, picture_noise
from arcwise.progress import Reporter

BATCH = 500


@dataclass(frozen=True)
class NoiseResult:
    """Accuracy of one model under one kind of noise: by the nearest mean direction, and by the nearest plain mean."""

    noise: str
    angle: float
    distance: float

    def to_dict(self) -> dict[str, str | float]:
        return {"noise": self.noise, "angle": self.angle, "distance": self.distance}


def robustness(
    embed: Callable[[Tensor], Tensor],
    samples: Tensor,
    labels: Tensor,
    directions: Tensor,
    raw_means: Tensor,
    *,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> list[NoiseResult]:
    """Embed the same test samples once for each kind of noise, and classify them by the nearest class mean in both ways.

    The noise is a function of the seed alone: two models that are given the same samples and seed see the same noisy pictures.

    Args:
        embed: maps a batch of samples, as `samples` has them, to embeddings (B, D).
        samples: uint8 pictures (M, C, H, W), or float features (M, F).
        labels: (M,) int64; −1 is ignored.
        directions: (N, D) mean directions of the classes on clean training samples.
        raw_means: (N, D) their plain means.
        seed: of the noise.
        reporter: told of every batch.
    """
    keep = labels >= 0
    samples, labels = samples[keep].cpu(), labels[keep].cpu()
    kinds = picture_noise() if samples.ndim == 4 else feature_noise(samples)
    results = []
    with (reporter or Reporter()).stage("accuracy under noise", len(kinds) * len(samples)) as stage:
        for position, noise in enumerate(kinds):
            stage.update(noise.name)
            generator = torch.Generator().manual_seed(1000 * seed + position)
            embeddings = _embed_noisy(embed, samples, noise, generator, stage.advance)
            results.append(
                NoiseResult(
                    noise.name,
                    angle=accuracy(nearest_by_angle(embeddings, directions), labels),
                    distance=accuracy(nearest_by_distance(embeddings, raw_means), labels),
                )
            )
    return results


def _embed_noisy(
    embed: Callable[[Tensor], Tensor],
    samples: Tensor,
    noise: Noise,
    generator: torch.Generator,
    advance: Callable[[int], None],
) -> Tensor:
    parts = []
    with torch.no_grad():
        for batch in samples.split(BATCH):
            parts.append(embed(noise.apply(batch, generator)).float().cpu())
            advance(len(batch))
    return torch.cat(parts)

"""AdaFace: an embedding's length says how good its image is, and the margin listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins.base import Facts, Margin, Samples, check_angle, register
from arcwise.margins.continuation import combined_curve

MOMENTUM = 0.99
SHORTEST, LONGEST, EPSILON = 1e-3, 100.0, 1e-3  # as in the paper's own code


@register("adaface")
@dataclass(frozen=True)
class AdaFace(Margin):
    """A margin between ArcFace's and CosFace's, chosen by the embedding's length.  Kim et al. 2022.

    Long embeddings come from clear images and short ones from blurred images, so for long ones the hard samples count more, and for short
    ones, which may be beyond recognition, the easy ones. The length is compared with the running mean and deviation over training.

    Prefer `ArcFace` where images are of one quality, or where the network normalises lengths away. It does not depend on anything
    but the angle.

    Asks for: winning by more where the image is good.
    Take it when: image quality varies widely, as in surveillance or on the web.

    Formula:
        ẑ = clip((‖x‖ − μ)·h/σ, −1, 1), without gradient; μ and σ are running values (0.99)
        target: s·(cos(θ_y − m·ẑ) − (m·ẑ + m))
        other classes: s·cos θ_j
        while θ_y < m·ẑ the target stays at its top, and past θ_y − m·ẑ = π it goes on falling as in ArcFace

    Args:
        m: the margin in radians and as a difference of cosines at once, 0 ≤ m < π/2.
        h: how strongly lengths count: at h = 0.333 99.7 % of them lie within the clip if they are normally distributed, 0 < h ≤ 10.

    Paper:
        Minchul Kim, Anil K. Jain, Xiaoming Liu. AdaFace: Quality Adaptive Margin for Face Recognition. CVPR 2022. arXiv:2204.00964
    """

    reads_norm: ClassVar[bool] = True
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.6), "h": (0.1, 1.0)}

    m: float = 0.4
    h: float = 0.333

    def __post_init__(self) -> None:
        check_angle("m", self.m)
        if not 0 < self.h <= 10:
            raise ConfigError(
                f"h must be in (0, 10], how strongly lengths count; got {self.h:g}. The paper's is 0.333."
            )

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return self._curve(cos_B, torch.zeros_like(cos_B))

    def psi(self, samples: Samples) -> Tensor:
        with torch.no_grad():
            z_B = self.quality(samples)
        return self._differentiable(samples.cos_B, lambda cos_B: self._curve(cos_B, z_B))

    def quality(self, samples: Samples) -> Tensor:
        """(B,) ẑ, from −1 for short embeddings to 1 for long ones."""
        state, norm_B = samples.state, samples.norm_B.clamp(SHORTEST, LONGEST)
        z_B = (self.h * (norm_B - state["norm_mean"]) / (state["norm_deviation"] + EPSILON)).clamp(-1.0, 1.0)
        return torch.where(state["norm_batches"] > 0, z_B, 0.0).to(samples.cos_B.dtype)

    def initial_state(self, facts: Facts) -> dict[str, Tensor]:
        """The first batch sets both values; until then every length is an average one."""
        return {
            "norm_mean": torch.tensor(0.0),
            "norm_deviation": torch.tensor(1.0),
            "norm_batches": torch.tensor(0),
        }

    def observe(self, samples: Samples) -> dict[str, Tensor]:
        state, norm_B = samples.state, samples.norm_B.clamp(SHORTEST, LONGEST)
        count = samples.valid_B.sum()
        mean = samples.mean(norm_B)
        deviation = (samples.mean((norm_B - mean).square()) * count / (count - 1).clamp_min(1)).sqrt()
        # A deviation takes two samples.
        enough = count >= 2
        share = torch.where(state["norm_batches"] > 0, 1 - MOMENTUM, torch.ones_like(mean)) * enough
        return {
            "norm_mean": (1 - share) * state["norm_mean"] + share * mean,
            "norm_deviation": (1 - share) * state["norm_deviation"] + share * deviation,
            "norm_batches": state["norm_batches"] + enough,
        }

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m)

    def _curve(self, cos_B: Tensor, z_B: Tensor) -> tuple[Tensor, Tensor]:
        return combined_curve(cos_B, 1.0, -self.m * z_B, self.m * z_B + self.m, "continuous")

"""MagFace: the margin grows with the embedding's length, and the length becomes a measure of quality."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.margins.base import Margin, Samples, check_angle, check_range, register, with_slope
from arcwise.margins.continuation import combined_curve


@register("magface")
@dataclass(frozen=True)
class MagFace(Margin):
    """ArcFace with a margin that grows with the embedding's length, and a reward for length.  Meng et al. 2021.

    An easy sample can afford a larger margin and is allowed to grow long; one that is hard to recognise stays short. After training
    ‖x‖ is the quality of an image: `stats.quality`, or `MagFace.quality(embeddings)`.

    Prefer `ArcFace` where the network normalises lengths away, and `AdaFace` where a quality is to steer training and is not wanted
    afterwards.

    Asks for: winning by more the longer the embedding is.
    Take it when: a quality score is wanted with every embedding.

    Formula:
        a = ‖x‖ and m(a) = l_m + (u_m − l_m)·(a − l_a)/(u_a − l_a), with a kept within [l_a, u_a]
        target: s·cos(θ_y + m(a)), continued as in ArcFace
        other classes: s·cos θ_j
        added to the loss: penalty_weight·(1/a + a/u_a²); below l_a its tangent there, so that short embeddings are pulled alike

    Args:
        l_m: the margin at the length l_a, in radians, 0 ≤ l_m < π/2.
        u_m: the margin at the length u_a, in radians, l_m ≤ u_m < π/2.
        l_a: the length from which the margin grows, 0 < l_a < u_a. The paper's 10 and 110 are for 512 dimensions; lengths go with √D.
        u_a: the length at which it stops growing.
        penalty_weight: how much the reward for length weighs, λ of the paper, 0 to 1000.

    Paper:
        Qiang Meng, Shichao Zhao, Zhida Huang, Feng Zhou. MagFace: A Universal Representation for Face Recognition and Quality Assessment.
        CVPR 2021. arXiv:2103.06627
    """

    reads_norm: ClassVar[bool] = True
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"l_m": (0.1, 0.5), "penalty_weight": (1.0, 50.0)}

    l_m: float = 0.45
    u_m: float = 0.8
    l_a: float = 10.0
    u_a: float = 110.0
    penalty_weight: float = 35.0

    def __post_init__(self) -> None:
        check_angle("l_m", self.l_m)
        check_angle("u_m", self.u_m)
        if self.u_m < self.l_m:
            raise ConfigError(f"u_m must be in [l_m, π/2); got u_m = {self.u_m:g} and l_m = {self.l_m:g}.")
        if not 0 < self.l_a < 1e6:
            raise ConfigError(f"l_a must be in (0, 1e6), a length; got {self.l_a:g}.")
        if not self.l_a < self.u_a <= 1e6:
            raise ConfigError(f"u_a must be in (l_a, 1e6], a length; got {self.u_a:g} and l_a = {self.l_a:g}.")
        check_range("penalty_weight", self.penalty_weight, 0, 1000, "a weight in the loss")

    @staticmethod
    def quality(embeddings: Tensor) -> Tensor:
        """(B,) the quality of each embedding: its length."""
        length_B: Tensor = torch.linalg.vector_norm(embeddings.detach().float(), dim=1)
        return length_B

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        """At a length half-way between l_a and u_a."""
        return combined_curve(cos_B, 1.0, torch.full_like(cos_B, (self.l_m + self.u_m) / 2), 0.0, "continuous")

    def psi(self, samples: Samples) -> Tensor:
        norm_B = samples.norm_B.to(samples.cos_B.dtype)
        with torch.no_grad():
            within_B = (norm_B > self.l_a) & (norm_B < self.u_a)
            steepness = (self.u_m - self.l_m) / (self.u_a - self.l_a)
            m_B = self.l_m + steepness * (norm_B.clamp(self.l_a, self.u_a) - self.l_a)
            theta_B = samples.cos_B.clamp(-1.0, 1.0).acos()
            # dψ/dm: −sin(θ + m), and past the turning point that of −(1 − cos m).
            slope_B = -torch.where(theta_B + m_B > math.pi, torch.sin(m_B), torch.sin(theta_B + m_B))
            slope_B = torch.where(within_B, steepness * slope_B, 0.0)
        psi_B = self._differentiable(samples.cos_B, lambda cos_B: combined_curve(cos_B, 1.0, m_B, 0.0, "continuous"))
        return with_slope(psi_B, slope_B, norm_B)

    def penalty(self, samples: Samples) -> Tensor:
        norm_B = samples.norm_B.to(samples.cos_B.dtype)
        long_B = norm_B.clamp_min(self.l_a)
        short_B = norm_B.clamp_max(self.l_a) - self.l_a
        slope = 1 / self.u_a**2 - 1 / self.l_a**2
        return self.penalty_weight * (1 / long_B + long_B / self.u_a**2 + slope * short_B)

    def at(self, fraction: float) -> Self:
        return replace(
            self, l_m=fraction * self.l_m, u_m=fraction * self.u_m, penalty_weight=fraction * self.penalty_weight
        )

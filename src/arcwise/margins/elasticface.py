"""ElasticFace: a margin drawn anew for every sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, get_args

import torch
from torch import Tensor

from arcwise.margins.base import (
    Margin,
    Samples,
    check_angle,
    check_cosine,
    check_range,
    check_word,
    register,
)
from arcwise.margins.continuation import combined_curve

Kind = Literal["arc", "cos"]


@register("elasticface")
@dataclass(frozen=True)
class ElasticFace(Margin):
    """ArcFace's or CosFace's margin, drawn for every sample from a normal distribution.  Boutros et al. 2022.

    One margin for all assumes that all classes vary alike; drawn margins let classes come together more or less tightly. With `plus`
    the larger draws of a batch go to its harder samples.

    Prefer `ArcFace` when a run has to be repeated sample by sample, or when the embedding is too narrow for a margin that varies.

    Asks for: winning by about m, now more, now less.
    Take it when: classes differ in how much they vary.

    Formula:
        target: s·cos(θ_y + m_i), or s·(cos θ_y − m_i) for kind "cos", with m_i ~ N(m, sigma)
        other classes: s·cos θ_j
        plus: the draws are sorted, so that a smaller cos θ_y gets a larger m_i

    Args:
        m: the mean of the margins: radians, 0 ≤ m < π/2, or a difference of cosines, 0 ≤ m < 2, for kind "cos".
        sigma: their standard deviation, 0 to 1. Draws outside the margin's range are moved to its end.
        kind: "arc" for a margin on the angle, "cos" for one on the cosine.
        plus: give the larger draws to the harder samples.

    Paper:
        Fadi Boutros, Naser Damer, Florian Kirchbuchner, Arjan Kuijper. ElasticFace: Elastic Margin Loss for Deep Face Recognition. CVPR
        Workshops 2022. arXiv:2109.09416
    """

    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.7), "sigma": (0.01, 0.15)}

    m: float = 0.5
    sigma: float = 0.05
    kind: Kind = "arc"
    plus: bool = False

    def __post_init__(self) -> None:
        check_word("kind of ElasticFace", self.kind, get_args(Kind))
        (check_angle if self.kind == "arc" else check_cosine)("m", self.m)
        check_range("sigma", self.sigma, 0, 1, "a standard deviation")

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return self._curve(cos_B, torch.full_like(cos_B, self.m))

    def psi(self, samples: Samples) -> Tensor:
        if not samples.training:
            return self.target(samples.cos_B)
        with torch.no_grad():
            m_B = self.draw(samples)
        return self._differentiable(samples.cos_B, lambda cos_B: self._curve(cos_B, m_B))

    def draw(self, samples: Samples) -> Tensor:
        """(B,) a margin for each sample."""
        largest = math.pi / 2 if self.kind == "arc" else 2.0
        m_B = (self.m + self.sigma * torch.randn_like(samples.cos_B)).clamp(0.0, largest)
        if not self.plus:
            return m_B
        # Ignored samples are last on both sides, so that those that count share their draws among themselves.
        ascending_B = m_B.masked_fill(~samples.valid_B, torch.inf).sort().values
        easiest_first_B = samples.cos_B.masked_fill(~samples.valid_B, -torch.inf).argsort(descending=True)
        return torch.empty_like(m_B).scatter_(0, easiest_first_B, ascending_B).clamp_max(largest)

    def at(self, fraction: float) -> Self:
        return replace(self, m=fraction * self.m, sigma=fraction * self.sigma)

    def _curve(self, cos_B: Tensor, m_B: Tensor) -> tuple[Tensor, Tensor]:
        if self.kind == "cos":
            return cos_B - m_B, torch.ones_like(cos_B)
        return combined_curve(cos_B, 1.0, m_B, 0.0, "continuous")

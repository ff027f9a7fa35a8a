"""CircleLoss: each pair pulled or pushed the harder the further it is from where it should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.errors import ConfigError, did_you_mean
from arcwise.losses.pairs import all_pairs
from arcwise.losses.registry import register
from arcwise.losses.term import Term, mean_where
from arcwise.margins.base import Gradient


@register("circle")
class CircleLoss(Term):
    """All positives and negatives of a sample in one softmax, each with a weight for how far off it is.  Sun et al. 2020, eq. 6.

    Every other sample of the batch is compared with: those of the same class should reach a cosine of 1 + m, those of others −m, and the
    pull α grows with what is missing. So an easy pair is left in peace, where a triplet would treat both of its pairs alike. A batch
    needs several samples of each class.

    Prefer `AngularTripletLoss` when the margin should be a plain angle, and `ProxyAnchorLoss` when batches seldom hold two samples of
    a class.

    Asks for: positives near 1 and negatives near 0 in the cosine, the worst ones first.
    Take it when: batches hold several samples of a class and the order of neighbours counts.

    Formula:
        mean over samples of log(1 + Σ_n exp(γ·α_n·(s_n − m)) · Σ_p exp(−γ·α_p·(s_p − (1 − m))))
        with α_p = max(0, 1 + m − s_p) and α_n = max(0, s_n + m)

    Args:
        gamma: γ, by which cosines become exponents: 80 for fine-grained retrieval, 256 for faces.
        m: the relaxation of both ends, 0 ≤ m < 1: s_p should pass 1 − m and s_n stay below m.
        gradient: "detached" treats the weights α as constants, as eq. 10 of the paper does; "exact" follows the formula as it stands.

    Paper:
        Yifan Sun, Changmao Cheng, Yuhan Zhang, Chi Zhang, Liang Zheng, Zhongdao Wang, Yichen Wei. Circle Loss: A Unified Perspective of
        Pair Similarity Optimization. CVPR 2020. arXiv:2002.10857
    """

    default_weight: ClassVar[float] = 0.05
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.5), "gamma": (20.0, 256.0)}

    def __init__(self, gamma: float = 80.0, m: float = 0.25, gradient: Gradient = "detached") -> None:
        super().__init__()
        if not 0 < gamma < math.inf:
            raise ConfigError(f"gamma must be a positive number; got {gamma:g}. The paper uses 80 to 256.")
        if not 0 <= m < 1:
            raise ConfigError(f"m must be in [0, 1), a difference of cosines; got {m:g}. The paper uses 0.25.")
        if gradient not in get_args(Gradient):
            raise ConfigError(f"gradient cannot be {gradient!r}. {did_you_mean(str(gradient), get_args(Gradient))}")
        self.gamma, self.m, self.gradient = gamma, m, gradient

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        pairs, m = all_pairs(x_BD, labels_B), self.m
        s_BB = pairs.cosines
        weighed_BB = s_BB.detach() if self.gradient == "detached" else s_BB
        positive_BB = -self.gamma * F.relu(1 + m - weighed_BB) * (s_BB - (1 - m))
        negative_BB = self.gamma * F.relu(weighed_BB + m) * (s_BB - m)
        # Low enough to vanish in the sum, and finite: an anchor with no pair at all would otherwise have NaN for a gradient.
        nothing = torch.finfo(s_BB.dtype).min / 4
        z_B = torch.logsumexp(positive_BB.masked_fill(~pairs.positive, nothing), dim=1)
        z_B = z_B + torch.logsumexp(negative_BB.masked_fill(~pairs.negative, nothing), dim=1)
        return mean_where(pairs.comparable, torch.logaddexp(z_B, torch.zeros_like(z_B)))

    def extra_repr(self) -> str:
        return f"gamma={self.gamma:g}, m={self.m:g}, gradient={self.gradient!r}"

"""ProxyAnchorLoss: a proxy for each class, compared with all samples of the batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from arcwise.engines.unit_rows import unit_rows
from arcwise.errors import ConfigError
from arcwise.heads.inputs import check_size
from arcwise.losses.registry import register
from arcwise.losses.term import Term, working_dtype


@register("proxy-anchor")
class ProxyAnchorLoss(Term):
    """Each class has a proxy that is the anchor: samples of the class are drawn to it, all others pushed away.  Kim et al. 2020, eq. 4.

    A head asks which class a sample belongs to; this asks which samples belong to a class, so within a batch the hardest samples
    of each class get the strongest pull, as in losses on pairs, at the cost of B·N cosines instead of B². The proxies are the term's own
    and are learnt like all parameters; the paper lets them learn faster than the network.

    Prefer a margin head when there are very many classes: here the whole (B, N) is kept for the gradient.

    Asks for: samples near the proxy of their class and far from all others, the hardest ones first.
    Take it when: there are few classes with much variety in each, and batches hold several samples of a class.

    Formula:
        mean over proxies p with a sample in the batch of log(1 + Σ_{x of p} exp(−α(s(x, p) − δ)))
        + mean over all proxies p of log(1 + Σ_{x not of p} exp(α(s(x, p) + δ)))

    Args:
        dim: the width D of the embeddings.
        num_classes: the number of classes N, and of proxies.
        alpha: α, by which cosines become exponents.
        delta: δ, the margin as a difference of cosines, 0 ≤ δ < 1.

    Paper:
        Sungyeon Kim, Dongwon Kim, Minsu Cho, Suha Kwak. Proxy Anchor Loss for Deep Metric Learning. CVPR 2020. arXiv:2003.13911
    """

    default_weight: ClassVar[float] = 0.1
    owns_centers: ClassVar[bool] = True
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"alpha": (8.0, 64.0), "delta": (0.0, 0.4)}

    def __init__(self, dim: int, num_classes: int, alpha: float = 32.0, delta: float = 0.1) -> None:
        super().__init__()
        check_size(dim, num_classes)
        if not 0 < alpha < math.inf:
            raise ConfigError(f"alpha must be a positive number; got {alpha:g}. The paper uses 32.")
        if not 0 <= delta < 1:
            raise ConfigError(f"delta must be in [0, 1), a difference of cosines; got {delta:g}. The paper uses 0.1.")
        self.dim, self.num_classes, self.alpha, self.delta = dim, num_classes, alpha, delta
        self.proxies = nn.Parameter(torch.empty(num_classes, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the proxies anew, in all directions, with a norm around 1."""
        nn.init.normal_(self.proxies, std=self.proxies.shape[1] ** -0.5)

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        dtype, N = working_dtype(x_BD, self.proxies), len(self.proxies)
        s_BN = unit_rows(x_BD, dtype) @ unit_rows(self.proxies, dtype).T
        own_BN = labels_B.unsqueeze(1) == torch.arange(N, device=labels_B.device)
        other_BN = ~own_BN & (labels_B >= 0).unsqueeze(1)
        pull_N = _log_one_plus_sum(-self.alpha * (s_BN - self.delta), own_BN)
        push_N = _log_one_plus_sum(self.alpha * (s_BN + self.delta), other_BN)
        num_with_samples = own_BN.any(dim=0).sum().clamp_min(1)
        return pull_N.sum() / num_with_samples + push_N.sum() / N

    def extra_repr(self) -> str:
        return f"dim={self.dim}, num_classes={self.num_classes}, alpha={self.alpha:g}, delta={self.delta:g}"


def _log_one_plus_sum(z_BN: Tensor, mask_BN: Tensor) -> Tensor:
    """(N,) log(1 + Σ exp z) over the samples that the mask picks: 0 where it picks none."""
    one_1N = z_BN.new_zeros(1, z_BN.shape[1])
    return torch.logsumexp(torch.cat([one_1N, z_BN.masked_fill(~mask_BN, -torch.inf)]), dim=0)

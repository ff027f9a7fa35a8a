"""Several centres a class: an embedding belongs to the nearest of them, for its own class and for every other.  Deng et al. 2020.

A class that falls into groups may keep a centre for each. On noisy labels the samples that do not belong gather at a centre of their own
and no longer pull at the main one; `head.dominant_centers()` are the main ones, and the samples furthest from them are likely mislabelled.

Prefer a single centre on clean labels: several centres allow a class to stay scattered.

Asks for: being near one of the class's centres.
Take it when: labels are noisy, or classes fall into groups.

Formula:
    cos θ_j = max over k of cos θ_jk, for every class j with the centres k = 1 … K
    then any margin as usual: s·ψ(θ_y) against s·cos θ_j
    filter_above: other classes with cos θ_j > filter_above are left out of the sum

Args:
    centers_per_class: K, from 1 to 100; 3 is usual.
    filter_above: a cosine in (−1, 1]. On noisy labels another class that is nearer than this is often the true one, and pushing it away
        does harm. 1 leaves out none; sensible values are 0.3 to 0.7.

Example:
    import torch
    import arcwise
    from arcwise.evaluation import likely_mislabelled

    head = arcwise.MarginHead(dim=64, num_classes=100, centers_per_class=3, filter_above=0.6)
    embeddings = torch.randn(32, 64, requires_grad=True)  # what a network makes of 32 images
    labels = torch.randint(0, 100, (32,))
    head(embeddings, labels).backward()

    centers = head.dominant_centers()  # (100, 64)
    ranking = likely_mislabelled(embeddings.detach(), labels, centers)

Paper:
    Jiankang Deng, Jia Guo, Tongliang Liu, Mingming Gong, Stefanos Zafeiriou. Sub-center ArcFace: Boosting Face Recognition by
    Large-Scale Noisy Web Faces. ECCV 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# A class remembers about its last fifty samples: centres move, and early assignments mean nothing later.
MEMORY = 0.98


class SubCenterCounts(nn.Module):
    """A fading count of the samples that lay nearest to each centre of their class.

    Attributes:
        counts: (N, K).
    """

    counts: Tensor

    def __init__(self, num_classes: int, centers_per_class: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(num_classes, centers_per_class))

    def add(self, labels_B: Tensor, center_B: Tensor) -> None:
        """Count a batch in; samples labelled −1 do not count."""
        valid_B = (labels_B >= 0).to(self.counts.dtype)
        rows_B = labels_B.clamp_min(0)
        fade_N = torch.zeros_like(self.counts[:, 0]).index_add_(0, rows_B, valid_B)
        self.counts.mul_(MEMORY ** fade_N.unsqueeze(1))
        self.counts.index_put_((rows_B, center_B), valid_B, accumulate=True)

    def dominant(self) -> Tensor:
        """(N,) the centre with the highest count; the first for a class that was never seen."""
        return self.counts.argmax(dim=1)

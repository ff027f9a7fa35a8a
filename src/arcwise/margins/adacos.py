"""AdaCos: no margin, and a scale that follows the training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from arcwise.margins.base import Facts, Margin, Samples, register

# The paper's formulas give 0 for two classes and can fall below 0 for few; a scale has to stay positive.
SMALLEST_SCALE = 1.0
# The new scale is made of the old one: where the centres lie together it grows by √2 each step, past all numbers. The fixed scale of
# ten million classes is 23, and 64 is the field's habit for as many.
LARGEST_SCALE = 64.0


@register("adacos")
@dataclass(frozen=True)
class AdaCos(Margin):
    """A scale that is computed instead of tuned: s = √2·ln(N − 1), then from the batch.  Zhang et al. 2019.

    The softmax is most sensitive where its curve is steepest; AdaCos keeps the median sample of each batch there. The scale shrinks as
    the angles do.

    Prefer `NormSoftmax` with a tuned scale, or `ArcFace`, once there is time to tune: with few classes this scale is so small that no
    sample can reach a high probability.

    Asks for: winning by angle, at a scale that it chooses itself.
    Take it when: nothing may be tuned and there are many classes.

    Formula:
        logits: s·cos θ_j
        fixed: s = √2·ln(N − 1)
        dynamic: s_t = ln(B) / cos(min(π/4, median θ_y)), where B is the batch's mean of Σ_{j≠y} exp(s_{t−1}·cos θ_j)
        s is kept from 1 to 64: where all centres lie together the paper's formula grows without end

    Args:
        dynamic: whether the scale follows each training batch, or stays as it began.

    Paper:
        Xiao Zhang, Rui Zhao, Yu Qiao, Xiaogang Wang, Hongsheng Li. AdaCos: Adaptively Scaling Cosine Logits for Effectively Learning Deep
        Face Representations. CVPR 2019. arXiv:1905.00292
    """

    owns_scale: ClassVar[bool] = True

    dynamic: bool = True

    def curve(self, cos_B: Tensor) -> tuple[Tensor, Tensor]:
        return cos_B, torch.ones_like(cos_B)

    def at(self, fraction: float) -> Self:
        return self

    def initial_state(self, facts: Facts) -> dict[str, Tensor]:
        scale = math.sqrt(2) * math.log(facts.num_classes - 1) if facts.num_classes > 2 else SMALLEST_SCALE
        return {"scale": torch.tensor(max(scale, SMALLEST_SCALE))}

    def observe(self, samples: Samples) -> dict[str, Tensor]:
        if not self.dynamic:
            return {}
        scale, valid_B = samples.state["scale"], samples.valid_B
        summed_B = samples.log_negatives(scale).masked_fill(~valid_B, -torch.inf)
        log_mean = torch.logsumexp(summed_B, 0) - valid_B.sum().clamp_min(1).to(summed_B.dtype).log()
        angle = samples.cos_B.clamp(-1, 1).acos().masked_fill(~valid_B, torch.nan).nanmedian()
        new = log_mean / torch.cos(angle.clamp_max(math.pi / 4))
        return {"scale": torch.where(valid_B.any(), new.clamp(SMALLEST_SCALE, LARGEST_SCALE), scale)}

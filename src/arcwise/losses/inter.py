"""InterLoss: class centres further apart."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from arcwise.engines.unit_rows import unit_rows
from arcwise.errors import ConfigError, did_you_mean
from arcwise.losses.centre_angles import mean_angle_to_others
from arcwise.losses.registry import register
from arcwise.losses.term import Term, working_dtype

Over = Literal["classes", "batch"]


@register("inter")
class InterLoss(Term):
    """Minus the mean angle between class centres, as a share of π.  Deng et al. 2019, eq. 6.

    It drives the centres apart: at best the mean angle is a little over 90°, and then no direction is left unused. Embeddings feel it
    only through their centres. The centres are taken tile by tile, so that memory grows with N and not with N².

    Prefer `IntraLoss` when classes already stand apart: with more dimensions than classes they do so by themselves.

    Asks for: large angles between centres.
    Take it when: classes crowd together, as in two or three dimensions.

    Formula:
        − mean over classes j of the mean over other classes k of θ(w_j, w_k) / π

    Args:
        over: "classes" takes the mean over all N classes, at a cost of N² angles a step. "batch" takes it over the samples of the batch,
            each standing for its class, as the paper writes it: the same on average where classes are equally frequent, at the cost of
            the head itself. Take it for tens of thousands of classes.

    Paper:
        Jiankang Deng, Jia Guo, Niannan Xue, Stefanos Zafeiriou. ArcFace: Additive Angular Margin Loss for Deep Face Recognition.
        CVPR 2019. arXiv:1801.07698
    """

    default_weight: ClassVar[float] = 0.1
    needs_centers: ClassVar[bool] = True

    def __init__(self, over: Over = "classes") -> None:
        super().__init__()
        if over not in get_args(Over):
            raise ConfigError(f"over cannot be {over!r}. {did_you_mean(str(over), get_args(Over))}")
        self.over = over

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        assert w_ND is not None
        w_hat_ND = unit_rows(w_ND, working_dtype(x_BD, w_ND))
        valid_B = labels_B >= 0
        if self.over == "batch":
            share_B = valid_B.to(w_hat_ND.dtype) / valid_B.sum().clamp_min(1)
            return -mean_angle_to_others(w_hat_ND, labels_B.clamp_min(0), share_B) / torch.pi
        classes_N = torch.arange(len(w_ND), device=w_ND.device)
        # A batch without a single label asks for nothing.
        share_N = (valid_B.any().to(w_hat_ND.dtype) / len(w_ND)).expand(len(w_ND))
        return -mean_angle_to_others(w_hat_ND, classes_N, share_N) / torch.pi

    def extra_repr(self) -> str:
        return f"over={self.over!r}"

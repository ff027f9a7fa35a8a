"""IntraLoss: each embedding closer to its own centre."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from arcwise.losses.angles import angle_between_rows
from arcwise.losses.registry import register
from arcwise.losses.term import Term, mean_where, working_dtype


@register("intra")
class IntraLoss(Term):
    """The mean angle between embeddings and the centres of their own classes, as a share of π.  Deng et al. 2019, eq. 5.

    It draws each class together on the sphere, at the same pace from near and from far: the slope of an angle is 1 wherever it
    stands, where that of a cosine vanishes on the centre. Other classes have no part in it.

    Prefer a larger margin when classes also stand too close to each other: this term alone makes them narrow and moves none apart.

    Asks for: a small angle to the own centre.
    Take it when: classes are to be narrower than the margin makes them.

    Formula:
        mean over samples of θ_y / π

    Paper:
        Jiankang Deng, Jia Guo, Niannan Xue, Stefanos Zafeiriou. ArcFace: Additive Angular Margin Loss for Deep Face Recognition.
        CVPR 2019. arXiv:1801.07698
    """

    default_weight: ClassVar[float] = 0.1
    needs_centers: ClassVar[bool] = True

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        assert w_ND is not None
        own_BD = w_ND[labels_B.clamp_min(0)]
        theta_B = angle_between_rows(x_BD, own_BD, working_dtype(x_BD, w_ND))
        return mean_where(labels_B >= 0, theta_B) / torch.pi

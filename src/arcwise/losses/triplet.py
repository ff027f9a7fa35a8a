"""AngularTripletLoss: a positive nearer than a negative, by a margin in angle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.errors import ConfigError, did_you_mean
from arcwise.losses.angles import angle
from arcwise.losses.pairs import Pairs, all_pairs
from arcwise.losses.registry import register
from arcwise.losses.term import Term, mean_where
from arcwise.margins.base import check_angle

Mining = Literal["hard", "semi-hard", "all"]


@register("triplet")
class AngularTripletLoss(Term):
    """A sample of the same class has to be nearer than one of another class, by m radians.  Deng et al. 2019, eq. 7.

    It compares samples with each other and knows no centres, so it also serves classes that are too many or too short-lived to have
    one. A batch needs several samples of each class: a sample without a companion says nothing. The value is the mean over the
    triplets (a, p, n) that the mining picks.

    Prefer `CircleLoss` when there is more than one pair worth learning from for each sample, and a head alone when batches
    seldom hold two samples of a class.

    Asks for: a positive nearer than a negative, by m radians.
    Take it when: what counts in the end is the order of neighbours, and batches hold several samples of a class.

    Formula:
        mean over picked triplets of max(0, θ_ap − θ_an + m)

    Args:
        m: the margin in radians, 0 ≤ m < π/2.
        mining: which triplets count. "hard": for each anchor its furthest positive with its nearest negative (Hermans et al. 2017).
            "semi-hard": for each anchor and positive the nearest of the negatives that are further away than that positive, if there is
            any; gentler, and less easily misled by wrong labels (Schroff et al. 2015). "all": every triplet of the batch.

    Paper:
        Jiankang Deng, Jia Guo, Niannan Xue, Stefanos Zafeiriou. ArcFace: Additive Angular Margin Loss for Deep Face Recognition.
        CVPR 2019. arXiv:1801.07698
        Florian Schroff, Dmitry Kalenichenko, James Philbin. FaceNet: A Unified Embedding for Face Recognition and Clustering.
        CVPR 2015. arXiv:1503.03832
        Alexander Hermans, Lucas Beyer, Bastian Leibe. In Defense of the Triplet Loss for Person Re-Identification. 2017.
        arXiv:1703.07737
    """

    default_weight: ClassVar[float] = 0.5
    search: ClassVar[Mapping[str, tuple[float, float]]] = {"m": (0.1, 0.8)}

    def __init__(self, m: float = 0.35, mining: Mining = "hard") -> None:
        super().__init__()
        check_angle("m", m)
        if mining not in get_args(Mining):
            raise ConfigError(f"mining cannot be {mining!r}. {did_you_mean(str(mining), get_args(Mining))}")
        self.m = m
        self.mining = mining

    def loss(self, x_BD: Tensor, labels_B: Tensor, w_ND: Tensor | None) -> Tensor:
        pairs = all_pairs(x_BD, labels_B)
        theta_BB = angle(pairs.cosines)
        if self.mining == "hard":
            return self._hardest(theta_BB, pairs)
        if self.mining == "semi-hard":
            return self._semi_hard(theta_BB, pairs)
        return self._all(theta_BB, pairs)

    def _hardest(self, theta_BB: Tensor, pairs: Pairs) -> Tensor:
        if not len(theta_BB):  # there is no largest of none
            return theta_BB.sum()
        furthest_B = theta_BB.masked_fill(~pairs.positive, 0.0).amax(dim=1)
        nearest_B = theta_BB.masked_fill(~pairs.negative, torch.pi).amin(dim=1)
        return mean_where(pairs.comparable, F.relu(furthest_B - nearest_B + self.m))

    def _semi_hard(self, theta_BB: Tensor, pairs: Pairs) -> Tensor:
        negatives_BB = _sorted_negatives(theta_BB, pairs)
        # For each pair the first negative that is further away: a column of the sorted ones.
        first_BB = torch.searchsorted(negatives_BB.detach(), theta_BB.detach(), right=True)
        exists_BB = pairs.positive & (first_BB < pairs.negative.sum(dim=1, keepdim=True))
        theta_an_BB = negatives_BB.gather(1, first_BB.clamp_max(max(len(theta_BB) - 1, 0)))
        return mean_where(exists_BB, F.relu(theta_BB - theta_an_BB + self.m))

    def _all(self, theta_BB: Tensor, pairs: Pairs) -> Tensor:
        """In O(B² log B): of the sorted negatives the first k lie within the margin, and Σ (θ_ap + m − θ_an) = k(θ_ap + m) − Σ θ_an."""
        negatives_BB = _sorted_negatives(theta_BB, pairs)
        reach_BB = theta_BB + self.m
        within_BB = torch.searchsorted(negatives_BB.detach(), reach_BB.detach())
        sums_BB = F.pad(torch.where(negatives_BB.isinf(), 0.0, negatives_BB).cumsum(dim=1), (1, 0))
        hinge_BB = within_BB * reach_BB - sums_BB.gather(1, within_BB)
        num_triplets = (pairs.positive.sum(dim=1) * pairs.negative.sum(dim=1)).sum()
        return torch.where(pairs.positive, hinge_BB, 0.0).sum() / num_triplets.clamp_min(1)

    def extra_repr(self) -> str:
        return f"m={self.m:g}, mining={self.mining!r}"


def _sorted_negatives(theta_BB: Tensor, pairs: Pairs) -> Tensor:
    """The angles to each anchor's negatives in rising order, and then infinity."""
    return theta_BB.masked_fill(~pairs.negative, torch.inf).sort(dim=1).values

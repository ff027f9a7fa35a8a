"""Margin losses written down once more from their papers, sample by sample and class by class, in float64.

Nothing here asks the margins of arcwise for anything. A formula gets the cosines of one sample as scalars and returns its loss; the
gradients are what automatic differentiation makes of that, which is right in float64 and away from θ = 0 and θ = π.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Sample:
    """One labelled sample: its place in the batch and its class, and what it may be judged by.

    Attributes:
        own: the cosine to the nearest centre of its class.
        others: the cosines to the nearest centre of every other class, without those that are filtered.
        length: ‖x‖.
    """

    place: int
    label: int
    own: Tensor
    others: list[Tensor]
    length: Tensor


Formula = Callable[[Sample], Tensor]


@dataclass(frozen=True)
class Gradients:
    """A loss, and its gradients in embeddings, centres and whatever else is learnt."""

    loss: Tensor
    dx: Tensor
    dw: Tensor
    learnt: tuple[Tensor, ...] = ()


def naive(
    x_BD: Tensor,
    w_MD: Tensor,
    labels_B: Tensor,
    formula: Formula,
    centers_per_class: int = 1,
    filter_above: float = 1.0,
    learnt: tuple[Tensor, ...] = (),
) -> Gradients:
    """The mean of a formula over the labelled samples, and its gradients."""
    x, w = (rows.detach().double().clone().requires_grad_() for rows in (x_BD, w_MD))
    samples = samples_of(x, w, labels_B, centers_per_class, filter_above)
    loss = torch.stack([formula(sample) for sample in samples]).mean()
    dx, dw, *dl = torch.autograd.grad(loss, (x, w, *learnt))
    return Gradients(loss.detach(), dx, dw, tuple(dl))


def samples_of(
    x_BD: Tensor, w_MD: Tensor, labels_B: Tensor, centers_per_class: int = 1, filter_above: float = 1.0
) -> list[Sample]:
    """What there is to know about every labelled sample."""
    length_B = x_BD.norm(dim=1)
    cos_BM = (x_BD / length_B[:, None]) @ (w_MD / w_MD.norm(dim=1, keepdim=True)).T
    samples = []
    for i, y in enumerate(labels_B.tolist()):
        if y < 0:
            continue
        cos = cos_BM[i].unbind()
        centers = [cos[j : j + centers_per_class] for j in range(0, len(cos), centers_per_class)]
        nearest = [max(of_one_class, key=number) for of_one_class in centers]
        others = [c for j, c in enumerate(nearest) if j != y and not number(c) > filter_above]
        samples.append(Sample(i, y, nearest[y], others, length_B[i]))
    return samples


def number(value: Tensor) -> float:
    return value.detach().item()


def cross_entropy(own: Tensor, others: Sequence[Tensor]) -> Tensor:
    """−log of the own class's share."""
    return torch.logsumexp(torch.stack([own, *others]), dim=0) - own


def angular(c: Tensor, m: float | Tensor) -> Tensor:
    """cos(θ + m), and past θ = π − m the continuation cos θ − (1 − cos m) that meets it there."""
    theta, m = torch.acos(c), torch.as_tensor(m, dtype=torch.float64)
    return torch.cos(theta + m) if number(theta + m) <= math.pi else c - 1 + torch.cos(m)


def adacos(s: float) -> Formula:
    """Zhang et al. 2019: softmax over s·cos θ."""
    return lambda q: cross_entropy(s * q.own, [s * c for c in q.others])


def adacos_scale(s: float, batch: list[Sample]) -> float:
    """Zhang et al. 2019: the scale after a batch, from the one before it."""
    average = sum(sum(math.exp(s * number(c)) for c in q.others) for q in batch) / len(batch)
    angles = sorted(math.acos(number(q.own)) for q in batch)
    median = angles[(len(angles) - 1) // 2]
    return max(1.0, math.log(average) / math.cos(min(math.pi / 4, median)))


def li_arcface(s: float, m: float) -> Formula:
    """Li et al. 2019: every logit is a straight line in its angle."""

    def formula(q: Sample) -> Tensor:
        own = s * (math.pi - 2 * (torch.acos(q.own) + m)) / math.pi
        return cross_entropy(own, [s * (math.pi - 2 * torch.acos(c)) / math.pi for c in q.others])

    return formula


def elasticface(s: float, margins: Mapping[int, float], kind: str) -> Formula:
    """Boutros et al. 2022, for the margins that were drawn for the batch."""

    def formula(q: Sample) -> Tensor:
        m = margins[q.place]
        own = angular(q.own, m) if kind == "arc" else q.own - m
        return cross_entropy(s * own, [s * c for c in q.others])

    return formula


def adaface(s: float, m: float, h: float, mean: float, deviation: float) -> Formula:
    """Kim et al. 2022; the quality is a number, so that no gradient flows through it."""

    def formula(q: Sample) -> Tensor:
        quality = min(1.0, max(-1.0, h * (number(q.length) - mean) / (deviation + 1e-3)))
        g_angle, g_add = -m * quality, m * quality + m
        own = torch.ones_like(q.own) if number(torch.acos(q.own)) + g_angle < 0 else angular(q.own, g_angle)
        return cross_entropy(s * (own - g_add), [s * c for c in q.others])

    return formula


def adaface_statistics(mean: float, deviation: float, batches: int, batch: list[Sample]) -> tuple[float, float, int]:
    """Kim et al. 2022: running mean and deviation of the lengths, which the first batch sets."""
    lengths = [number(q.length) for q in batch]
    new_mean = sum(lengths) / len(lengths)
    new_deviation = math.sqrt(sum((a - new_mean) ** 2 for a in lengths) / (len(lengths) - 1))
    kept = 0.99 if batches else 0.0
    return kept * mean + (1 - kept) * new_mean, kept * deviation + (1 - kept) * new_deviation, batches + 1


def magface(s: float, l_m: float, u_m: float, l_a: float, u_a: float, weight: float) -> Formula:
    """Meng et al. 2021, with gradients through the length; below l_a the penalty's tangent there."""

    def formula(q: Sample) -> Tensor:
        a = q.length
        m = l_m + (u_m - l_m) * (a.clamp(l_a, u_a) - l_a) / (u_a - l_a)
        penalty = 1 / a + a / u_a**2
        if number(a) < l_a:
            penalty = 1 / l_a + l_a / u_a**2 + (1 / u_a**2 - 1 / l_a**2) * (a - l_a)
        return cross_entropy(s * angular(q.own, m), [s * c for c in q.others]) + weight * penalty

    return formula


def curricularface(s: float, m: float, t: float) -> Formula:
    """Huang et al. 2020."""

    def formula(q: Sample) -> Tensor:
        own = angular(q.own, m)
        return cross_entropy(s * own, [s * (c * (t + c) if number(c) > number(own) else c) for c in q.others])

    return formula


def curricularface_t(t: float, batch: list[Sample]) -> float:
    """Huang et al. 2020."""
    return 0.99 * t + 0.01 * sum(number(q.own) for q in batch) / len(batch)


def mv_softmax(s: float, m: float, t: float, kind: str) -> Formula:
    """Wang et al. 2020: h(t, θ)·exp(s·cos θ) with the adaptive h is exp(s((1 + t) cos θ + t))."""

    def formula(q: Sample) -> Tensor:
        own = angular(q.own, m) if kind == "arc" else q.own - m
        return cross_entropy(s * own, [s * ((1 + t) * c + t if number(c) > number(own) else c) for c in q.others])

    return formula


def sphereface2(s: float, m: float, lam: float, t: float, b: Tensor) -> Formula:
    """Wen et al. 2022."""

    def g(c: Tensor) -> Tensor:
        return 2 * ((c + 1) / 2) ** t - 1

    def formula(q: Sample) -> Tensor:
        own = lam / s * F.softplus(-s * (g(q.own) - m) - b)
        others = [(1 - lam) / s * F.softplus(s * (g(c) + m) + b) for c in q.others]
        return own + sum(others, torch.zeros((), dtype=torch.float64))

    return formula


def uniface(s: float, m: float, b: Tensor) -> Formula:
    """Zhou et al. 2023: one threshold for all."""

    def formula(q: Sample) -> Tensor:
        others = [F.softplus(s * c - b) for c in q.others]
        return F.softplus(-s * (q.own - m) + b) + sum(others, torch.zeros((), dtype=torch.float64))

    return formula


def long_tail(s: float, m: float, power: float, counts: Sequence[float], kind: str) -> Formula:
    """Cao et al. 2019, with the constant chosen so that the rarest class gets m."""
    at_least_one = [max(count, 1.0) for count in counts]

    def formula(q: Sample) -> Tensor:
        margin = m * (min(at_least_one) / at_least_one[q.label]) ** power
        own = angular(q.own, margin) if kind == "arc" else q.own - margin
        return cross_entropy(s * own, [s * c for c in q.others])

    return formula


def arcface(s: float, m: float) -> Formula:
    """Deng et al. 2019."""
    return lambda q: cross_entropy(s * angular(q.own, m), [s * c for c in q.others])


def cosface(s: float, m: float) -> Formula:
    """Wang et al. 2018; with m = 0 norm-softmax."""
    return lambda q: cross_entropy(s * (q.own - m), [s * c for c in q.others])


def sphereface(s: float, m: float) -> Formula:
    """Liu et al. 2017: ψ(θ) = (−1)^k cos(mθ) − 2k for θ in [kπ/m, (k + 1)π/m]."""

    def formula(q: Sample) -> Tensor:
        theta = torch.acos(q.own)
        k = math.floor(m * number(theta) / math.pi)
        return cross_entropy(s * ((-1) ** k * torch.cos(m * theta) - 2 * k), [s * c for c in q.others])

    return formula


def combined(s: float, m1: float, m2: float, m3: float) -> Formula:
    """Deng et al. 2019: cos(m1·θ + m2) − m3; past θ* = (π − m2)/m1 it goes on as cos θ from where it is."""

    def formula(q: Sample) -> Tensor:
        theta, turning = torch.acos(q.own), (math.pi - m2) / m1
        past = number(theta) > turning
        own = q.own - math.cos(turning) - 1 if past else torch.cos(m1 * theta + m2)
        return cross_entropy(s * (own - m3), [s * c for c in q.others])

    return formula

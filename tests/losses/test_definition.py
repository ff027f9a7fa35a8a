"""Every term and its gradients against a loop in float64, pair by pair, written from its paper and differentiated automatically."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.losses import (
    AngularTripletLoss,
    CenterLoss,
    CircleLoss,
    InterLoss,
    ProxyAnchorLoss,
    Term,
    build,
    names,
)

# How far a gradient g may be from the float64 one: ‖g − g64‖/‖g64‖.
CLOSE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 5e-3}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in names()),
    ("inter", {"over": "batch"}),
    ("triplet", {"mining": "semi-hard"}),
    ("triplet", {"mining": "all"}),
    ("triplet", {"mining": "all", "m": 0.0}),
    ("circle", {"gradient": "exact"}),
    ("circle", {"gamma": 10.0, "m": 0.4}),
    ("proxy-anchor", {"alpha": 8.0, "delta": 0.3}),
]
every_variant = pytest.mark.parametrize(
    ("name", "parameters"), VARIANTS, ids=[f"{name}-{parameters}" for name, parameters in VARIANTS]
)
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.square().sum().sqrt() * b.square().sum().sqrt())


def theta(a: Tensor, b: Tensor) -> Tensor:
    return torch.acos(cosine(a, b))


def number(value: Tensor) -> float:
    return float(value.detach())


def mean(values: list[Tensor], like: Tensor) -> Tensor:
    return torch.stack(values).mean() if values else 0 * like.sum()


def intra(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    return mean([theta(x[i], w[y]) / math.pi for i, y in enumerate(labels) if y >= 0], x)


def inter(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    assert isinstance(term, InterLoss)
    valid = [y for y in labels if y >= 0]
    if not valid:
        return 0 * w.sum()
    looked_from = range(len(w)) if term.over == "classes" else valid
    return -mean([theta(w[j], w[k]) / math.pi for j, k in product(looked_from, range(len(w))) if j != k], w)


def triplet(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    assert isinstance(term, AngularTripletLoss)
    rows = [i for i, y in enumerate(labels) if y >= 0]
    picked: list[Tensor] = []
    for a in rows:
        positives = [theta(x[a], x[i]) for i in rows if i != a and labels[i] == labels[a]]
        negatives = [theta(x[a], x[i]) for i in rows if labels[i] != labels[a]]
        if not (positives and negatives):
            continue
        if term.mining == "hard":
            picked.append(max(positives, key=number) - min(negatives, key=number))
        elif term.mining == "semi-hard":
            for p in positives:
                further = [n for n in negatives if n > p]
                picked += [p - min(further, key=number)] if further else []
        else:
            picked += [p - n for p in positives for n in negatives]
    return mean([(gap + term.m).clamp_min(0) for gap in picked], x)


def center(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    assert isinstance(term, CenterLoss)
    c = term.centers.double()
    return mean([(x[i] - c[y]).square().sum() / 2 for i, y in enumerate(labels) if y >= 0], x)


def circle(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    assert isinstance(term, CircleLoss)
    rows, m, gamma = [i for i, y in enumerate(labels) if y >= 0], term.m, term.gamma
    values = []
    for a in rows:
        within = [cosine(x[a], x[i]) for i in rows if i != a and labels[i] == labels[a]]
        between = [cosine(x[a], x[i]) for i in rows if labels[i] != labels[a]]
        if not (within and between):
            continue
        pull = [-gamma * _weight(term, 1 + m - s) * (s - (1 - m)) for s in within]
        push = [gamma * _weight(term, s + m) * (s - m) for s in between]
        every = torch.stack([p + q for p, q in product(pull, push)])
        values.append(torch.logsumexp(torch.cat([every.new_zeros(1), every]), dim=0))
    return mean(values, x)


def _weight(term: CircleLoss, alpha: Tensor) -> Tensor:
    alpha = alpha.clamp_min(0)
    return alpha.detach() if term.gradient == "detached" else alpha


def proxy_anchor(term: Term, x: Tensor, labels: list[int], w: Tensor) -> Tensor:
    assert isinstance(term, ProxyAnchorLoss)
    p, alpha, delta = term.proxies.double(), term.alpha, term.delta
    pull, push = [], []
    for k in range(len(p)):
        own = [torch.exp(-alpha * (cosine(x[i], p[k]) - delta)) for i, y in enumerate(labels) if y == k]
        others = [torch.exp(alpha * (cosine(x[i], p[k]) + delta)) for i, y in enumerate(labels) if y not in (k, -1)]
        pull += [torch.log1p(torch.stack(own).sum())] if own else []
        push.append(torch.log1p(torch.stack(others).sum()) if others else 0 * p.sum())
    return mean(pull, x) + mean(push, x)


NAIVE: dict[str, Callable[[Term, Tensor, list[int], Tensor], Tensor]] = {
    "intra": intra,
    "inter": inter,
    "triplet": triplet,
    "center": center,
    "circle": circle,
    "proxy-anchor": proxy_anchor,
}


def gradients(value: Tensor, *wanted: Tensor) -> list[Tensor]:
    """Zeros where the value does not depend on something."""
    found = torch.autograd.grad(value, wanted, allow_unused=True)
    return [g if g is not None else torch.zeros_like(t) for g, t in zip(found, wanted, strict=True)]


def off_by(given: Tensor, truth: Tensor) -> float:
    return float((given.double() - truth).norm() / truth.norm().clamp_min(1e-300))


def problem(batch: int, num_classes: int, dim: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, labels with some of −1, and centres."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, dim, dtype=torch.float64, generator=generator)
    w = torch.randn(num_classes, dim, dtype=torch.float64, generator=generator)
    return x, torch.randint(-1, num_classes, (batch,), generator=generator), w


def test_every_term_has_a_definition_to_be_held_to() -> None:
    assert set(NAIVE) == set(names())


@every_variant
@every_dtype
def test_value_and_gradients_are_those_of_a_naive_loop(
    name: str, parameters: dict[str, Any], dtype: torch.dtype
) -> None:
    x, labels, w = problem(14, 4, 5)
    x = (3 * x).to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    w = w.to(wide)
    term = build(name, 5, 4, parameters).to(wide).eval()
    if isinstance(term, CenterLoss):
        term.centers.normal_()
    own = list(term.parameters())
    x, w = x.requires_grad_(), w.requires_grad_()
    ours = term(x, labels, w)
    truth = NAIVE[name](term, x.double(), labels.tolist(), w.double())
    assert ours.dtype == wide
    assert off_by(ours.detach(), truth.detach()) <= CLOSE[wide]
    ours_g, truth_g = gradients(ours, x, w, *own), gradients(truth, x, w, *own)
    for gradient, wanted in zip(ours_g, truth_g, strict=True):
        assert gradient.dtype == wanted.dtype
        assert off_by(gradient, wanted.double()) <= CLOSE[gradient.dtype]
    assert ours_g[0].norm() + ours_g[1].norm() > 0


@every_variant
@given(
    seed=st.integers(0, 2**31),
    batch=st.integers(0, 9),
    num_classes=st.integers(2, 5),
    dim=st.integers(2, 6),
)
@settings(deadline=None, max_examples=25)
def test_any_batch_has_the_value_of_the_naive_loop(
    name: str, parameters: dict[str, Any], seed: int, batch: int, num_classes: int, dim: int
) -> None:
    x, labels, w = problem(batch, num_classes, dim, seed)
    term = build(name, dim, num_classes, parameters).double().eval()
    with torch.no_grad():
        truth = NAIVE[name](term, x, labels.tolist(), w)
    torch.testing.assert_close(term(x, labels, w).detach(), truth.detach(), rtol=1e-9, atol=1e-9)

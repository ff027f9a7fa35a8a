"""Every margin beside the formula of its paper, and the comparison of the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import naive_losses as paper
import torch
from margin_cases import head_of
from naive_losses import Formula, Gradients, Sample
from torch import Tensor

import arcwise
from arcwise.heads import MarginHead
from arcwise.margins import Margin

NUM_CLASSES, DIM, BATCH, SCALE = 5, 4, 12, 10.0
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
# How far a gradient g may be from the float64 one: ‖g − g64‖/‖g64‖.
CLOSE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 5e-3}


@dataclass(frozen=True)
class Seen:
    """What a formula may know beside the sample.

    Attributes:
        history: the training batches so far; the last one is the one that is judged.
        labels: those of all batches.
        normal_B: what a standard normal distribution gave for each sample of the last batch.
        b: the learnt threshold, where there is one.
    """

    history: list[list[Sample]]
    labels: list[list[int]]
    normal_B: list[float]
    b: Tensor


@dataclass(frozen=True)
class Case:
    """A margin, its formula, the state that it begins with where that is not the usual one, and options of the head."""

    margin: Margin
    formula: Callable[[Seen], Formula]
    begin: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def adacos(seen: Seen) -> Formula:
    s = float(torch.tensor(math.sqrt(2) * math.log(NUM_CLASSES - 1)))  # kept in float32
    for batch in seen.history:
        s = paper.adacos_scale(s, batch)
    return paper.adacos(s)


def elasticface(m: float, sigma: float, kind: str, plus: bool) -> Callable[[Seen], Formula]:
    def formula(seen: Seen) -> Formula:
        drawn = {q.place: m + sigma * seen.normal_B[q.place] for q in seen.history[-1]}
        if plus:
            easiest_first = sorted(seen.history[-1], key=lambda q: -paper.number(q.own))
            drawn = dict(zip([q.place for q in easiest_first], sorted(drawn.values()), strict=True))
        return paper.elasticface(SCALE, drawn, kind)

    return formula


def adaface(m: float, h: float) -> Callable[[Seen], Formula]:
    def formula(seen: Seen) -> Formula:
        statistics = (0.0, 1.0, 0)
        for batch in seen.history:
            statistics = paper.adaface_statistics(*statistics, batch)
        return paper.adaface(SCALE, m, h, statistics[0], statistics[1])

    return formula


def curricularface(m: float, t: float) -> Callable[[Seen], Formula]:
    def formula(seen: Seen) -> Formula:
        now = t
        for batch in seen.history:
            now = paper.curricularface_t(now, batch)
        return paper.curricularface(SCALE, m, now)

    return formula


def counted(seen: Seen) -> Formula:
    labels = [y for batch in seen.labels for y in batch]
    return paper.long_tail(SCALE, 0.5, 0.25, [labels.count(j) for j in range(NUM_CLASSES)], "cos")


COUNTS = [7, 500, 31, 2, 90]
given_counts: Mapping[str, Any] = {"class_counts": torch.tensor(COUNTS)}

CASES: dict[str, Case] = {
    "norm-softmax": Case(arcwise.NormSoftmax(), lambda _: paper.cosface(SCALE, 0.0)),
    "cosface": Case(arcwise.CosFace(0.3), lambda _: paper.cosface(SCALE, 0.3)),
    "arcface": Case(arcwise.ArcFace(0.4), lambda _: paper.arcface(SCALE, 0.4)),
    "sphereface": Case(arcwise.SphereFace(1.7), lambda _: paper.sphereface(SCALE, 1.7)),
    "combined": Case(arcwise.CombinedMargin(1.2, 0.3, 0.2), lambda _: paper.combined(SCALE, 1.2, 0.3, 0.2)),
    "adacos": Case(arcwise.AdaCos(), adacos),
    "adacos fixed": Case(arcwise.AdaCos(dynamic=False), lambda seen: adacos(replace(seen, history=[]))),
    "li-arcface": Case(arcwise.LiArcFace(0.45), lambda _: paper.li_arcface(SCALE, 0.45)),
    "elasticface arc": Case(arcwise.ElasticFace(0.5, 0.1), elasticface(0.5, 0.1, "arc", False)),
    "elasticface cos": Case(arcwise.ElasticFace(0.35, 0.1, "cos"), elasticface(0.35, 0.1, "cos", False)),
    "elasticface arc+": Case(arcwise.ElasticFace(0.5, 0.1, plus=True), elasticface(0.5, 0.1, "arc", True)),
    "elasticface cos+": Case(arcwise.ElasticFace(0.35, 0.1, "cos", True), elasticface(0.35, 0.1, "cos", True)),
    "adaface": Case(arcwise.AdaFace(), adaface(0.4, 0.333)),
    "adaface steep": Case(arcwise.AdaFace(0.25, 1.5), adaface(0.25, 1.5)),
    "magface": Case(arcwise.MagFace(0.3, 0.7, 3.0, 8.0, 5.0), lambda _: paper.magface(SCALE, 0.3, 0.7, 3.0, 8.0, 5.0)),
    "curricularface": Case(arcwise.CurricularFace(), curricularface(0.5, 0.0)),
    "curricularface late": Case(arcwise.CurricularFace(0.3), curricularface(0.3, 0.8125), begin={"t": 0.8125}),
    "mv-softmax am": Case(arcwise.MVSoftmax(), lambda _: paper.mv_softmax(SCALE, 0.35, 0.2, "am")),
    "mv-softmax arc": Case(arcwise.MVSoftmax(0.5, 0.3, "arc"), lambda _: paper.mv_softmax(SCALE, 0.5, 0.3, "arc")),
    "sphereface2": Case(arcwise.SphereFace2(), lambda seen: paper.sphereface2(SCALE, 0.4, 0.7, 3.0, seen.b)),
    "sphereface2 straight": Case(
        arcwise.SphereFace2(0.2, 0.4, 1.0), lambda seen: paper.sphereface2(SCALE, 0.2, 0.4, 1.0, seen.b)
    ),
    "uniface": Case(arcwise.UniFace(), lambda seen: paper.uniface(SCALE, 0.4, seen.b), begin={"b": 1.25}),
    "long-tail cos": Case(
        arcwise.LongTail(), lambda _: paper.long_tail(SCALE, 0.5, 0.25, COUNTS, "cos"), options=given_counts
    ),
    "long-tail arc": Case(
        arcwise.LongTail(0.8, 0.5, "arc"),
        lambda _: paper.long_tail(SCALE, 0.8, 0.5, COUNTS, "arc"),
        options=given_counts,
    ),
    "long-tail counted": Case(arcwise.LongTail(), counted),
}


def case_head(case: Case, engine: str, dtype: torch.dtype = torch.float32, **options: Any) -> MarginHead:
    """A head in float32, or float64 for such embeddings, at the beginning of its training."""
    torch.manual_seed(0)
    head = head_of(case.margin, DIM, NUM_CLASSES, SCALE, engine=engine, **case.options, **options)
    with torch.no_grad():
        for name, value in case.begin.items():
            head.margin_state[name].fill_(value)
    return head.double() if dtype == torch.float64 else head


def batch_for(head: MarginHead, seed: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Embeddings of various lengths, some near a centre of another class, of their own or opposite to it; two are labelled −1."""
    generator = torch.Generator().manual_seed(seed)
    labels_B = torch.arange(BATCH) % NUM_CLASSES
    x_BD = 3 * torch.randn(BATCH, DIM, generator=generator, dtype=torch.float64)
    w_hat_MD = torch.nn.functional.normalize(head.weight.detach().double())
    mistaken_for = (labels_B[:4] + 1) % NUM_CLASSES
    x_BD[:4] = 5 * w_hat_MD[mistaken_for * head.centers_per_class] + 0.2 * x_BD[:4]
    lengths_31 = torch.tensor([[11.0], [2.0], [-9.0]], dtype=torch.float64)
    x_BD[6:9] = lengths_31 * (w_hat_MD[labels_B[6:9] * head.centers_per_class] + 0.03 * x_BD[6:9])
    labels_B[[5, 9]] = -1
    return x_BD.to(dtype), labels_B


def gradients(head: MarginHead, x_BD: Tensor, labels_B: Tensor) -> Gradients:
    """A head's loss, and its gradients in embeddings, centres and what the margin learns."""
    x_BD = x_BD.detach().clone().requires_grad_()
    learnt = [value for value in head.margin_state.values() if value.requires_grad]
    loss = head(x_BD, labels_B)
    dx, dw, *dl = torch.autograd.grad(loss, (x_BD, head.weight, *learnt))
    return Gradients(loss.detach(), dx, dw, tuple(dl))


def off_by(given: Tensor, truth: Tensor) -> float:
    return float((given.double() - truth).norm() / truth.norm())


def check_definition(
    case: Case, engine: str, dtype: torch.dtype, centers_per_class: int = 1, filter_above: float = 1.0
) -> None:
    """In the third batch of a training, loss and gradients are those of the formula."""
    head = case_head(case, engine, dtype, centers_per_class=centers_per_class, filter_above=filter_above)
    batches = [batch_for(head, seed, dtype) for seed in (1, 2, 3)]
    for x, labels in batches[:-1]:
        head(x, labels)
    x, labels = batches[-1]
    torch.manual_seed(11)
    normal_B = torch.randn(BATCH, dtype=head.weight.dtype).tolist()
    torch.manual_seed(11)
    ours = gradients(head, x, labels)

    w = head.weight.detach().double()
    history = [paper.samples_of(x.double(), w, labels, centers_per_class) for x, labels in batches]
    b = head.margin_state.get("b", torch.zeros(())).detach().double().requires_grad_()
    seen = Seen(history, [labels.tolist() for _, labels in batches], normal_B, b)
    learnt = (b,) if ours.learnt else ()
    truth = paper.naive(x, w, labels, case.formula(seen), centers_per_class, filter_above, learnt)

    assert ours.loss.dtype == torch.promote_types(dtype, torch.float32)
    assert ours.dx.dtype == dtype
    assert off_by(ours.loss, truth.loss) <= CLOSE[head.weight.dtype]
    assert off_by(ours.dx, truth.dx) <= CLOSE[dtype]
    assert off_by(ours.dw, truth.dw) <= CLOSE[head.weight.dtype]
    for given, expected in zip(ours.learnt, truth.learnt, strict=True):
        assert off_by(given, expected) <= CLOSE[head.weight.dtype]

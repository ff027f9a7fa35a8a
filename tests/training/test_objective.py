from __future__ import annotations

import pytest
import torch

import arcwise
from arcwise import losses
from arcwise.heads import Head, MarginHead, SoftmaxHead
from arcwise.training.objective import Objective


@pytest.fixture(params=["arcface", "softmax"])
def head(request: pytest.FixtureRequest) -> Head:
    torch.manual_seed(0)
    return MarginHead(4, 5, arcwise.ArcFace(0.3), 9.0) if request.param == "arcface" else SoftmaxHead(4, 5)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(12, 4), torch.arange(12) % 5


def test_without_terms_it_is_the_heads_loss_to_the_last_bit(head: Head) -> None:
    x, labels = batch()
    objective = Objective(head, {})
    loss, parts = objective(x, labels)
    assert torch.equal(loss, head(x, labels))
    assert parts.values == {}
    assert objective.part_names == ()
    assert [id(p) for p in objective.parameters()] == [id(p) for p in head.parameters()]


def test_it_is_the_sum_of_the_head_and_each_term_times_its_weight(head: Head) -> None:
    x, labels = batch()
    terms = {name: (losses.build(name, 4, 5).eval(), 0.1 * (k + 1)) for k, name in enumerate(losses.names())}
    objective = Objective(head, terms)
    loss, parts = objective(x, labels)
    expected = head(x, labels) + sum(weight * term(x, labels, head.weight) for term, weight in terms.values())
    torch.testing.assert_close(loss, expected)
    assert tuple(parts.values) == objective.part_names == ("head_loss", *losses.names())
    for name, (term, _) in terms.items():
        assert torch.equal(parts.values[name], term(x, labels, head.weight).detach())
        assert not parts.values[name].requires_grad
    assert torch.equal(parts.values["head_loss"], head(x, labels).detach())
    assert parts.stats.accuracy() == head(x, labels, return_stats=True)[1].accuracy()


def test_terms_reach_the_embeddings_and_the_centres_of_the_head(head: Head) -> None:
    x, labels = batch()
    x.requires_grad_()
    alone = torch.autograd.grad(head(x, labels), (x, head.weight))
    objective = Objective(head, {"intra": (losses.IntraLoss(), 0.5)})
    loss, _ = objective(x, labels)
    together = torch.autograd.grad(loss, (x, head.weight))
    of_term = torch.autograd.grad(losses.IntraLoss()(x, labels, head.weight), (x, head.weight))
    for whole, first, second in zip(together, alone, of_term, strict=True):
        torch.testing.assert_close(whole, first + 0.5 * second)


def test_half_precision_embeddings_are_compared_in_float32(head: Head) -> None:
    x, labels = batch()
    objective = Objective(head, {name: (losses.build(name, 4, 5), 1.0) for name in losses.names()})
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, parts = objective(x.bfloat16(), labels)
    assert loss.dtype == torch.float32
    assert all(value.dtype == torch.float32 for value in parts.values.values())
    loss.backward()
    assert all(p.dtype == torch.float32 for p in objective.parameters())

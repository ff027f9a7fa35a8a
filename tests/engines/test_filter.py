"""filter_above: other classes that are nearer than a cosine are left out, with every margin."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from definition_cases import CASES, Case, batch_for, case_head, check_definition, gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_cases import head_of, settled

from arcwise.heads.margin import ENGINES
from arcwise.margins import build, names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_margin = pytest.mark.parametrize("name", names())


@every_engine
@every_case
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("centers_per_class", "filter_above"), [(1, 0.3), (3, 0.6)])
def test_loss_and_gradients_are_those_of_the_formula_over_the_classes_that_are_left(
    engine: str, case: Case, dtype: torch.dtype, centers_per_class: int, filter_above: float
) -> None:
    check_definition(case, engine, dtype, centers_per_class, filter_above)


@every_engine
@every_case
@pytest.mark.parametrize("centers_per_class", [1, 3])
def test_a_filter_above_one_changes_nothing(engine: str, case: Case, centers_per_class: int) -> None:
    plain = case_head(case, engine, centers_per_class=centers_per_class)
    filtered = case_head(case, engine, centers_per_class=centers_per_class, filter_above=1.0)
    x, labels = batch_for(plain, 1)
    with torch.no_grad():
        x[0] = 3 * plain.weight[centers_per_class]  # on the centre of another class
    results = []
    for head in (plain, filtered):
        torch.manual_seed(3)
        results.append(gradients(head, x, labels))
    assert torch.equal(results[0].loss, results[1].loss)
    assert torch.equal(results[0].dx, results[1].dx)
    assert torch.equal(results[0].dw, results[1].dw)


@every_engine
@every_margin
@given(seed=st.integers(0, 2**31), filter_above=st.floats(-0.5, 0.9), num_centers=st.integers(1, 3))
@settings(deadline=None, max_examples=10)
def test_a_class_that_is_filtered_gets_no_gradient_at_all(
    engine: str, name: str, seed: int, filter_above: float, num_centers: int
) -> None:
    torch.manual_seed(seed)
    head = head_of(name, num_classes=8, engine=engine, centers_per_class=num_centers, filter_above=filter_above)
    x, labels = torch.randn(1, 4), torch.tensor([2])
    settled(head)
    dw = gradients(head, x, labels).dw.view(8, -1)
    cos_N = head.cosines(x)[0].detach()
    near_N = (cos_N - filter_above).abs() < 1e-5
    filtered_N = (cos_N > filter_above) & (torch.arange(8) != 2)
    assert torch.equal(dw[filtered_N & ~near_N], torch.zeros_like(dw[filtered_N & ~near_N]))


@every_engine
@every_margin
def test_the_own_class_is_never_filtered(engine: str, name: str) -> None:
    """Every cosine is above the filter, and what is left is the own class alone: a choice of one costs nothing, a question does."""
    head = settled(head_of(name, engine=engine, filter_above=-0.5))
    with torch.no_grad():
        head.weight.copy_(torch.ones(6, 4) + 0.3 * torch.randn(6, 4))
    x, labels = head.weight.detach() + 0.1, torch.arange(6)
    result = gradients(head, x, labels)
    if name == "magface":  # the penalty is left
        assert result.loss > 0
    elif build(name).reduction == "softmax":
        assert float(result.loss) == 0
        assert torch.equal(result.dw, torch.zeros(6, 4))
    else:
        assert result.loss > 0
        assert (result.dw.norm(dim=1) > 0).all()


@every_engine
@every_margin
def test_the_logits_of_filtered_classes_are_minus_infinity(engine: str, name: str) -> None:
    head = settled(head_of(name, engine=engine, filter_above=0.2))
    x, labels = torch.randn(9, 4), torch.arange(9) % 6
    filtered_BN = (head.cosines(x) > 0.2) & ~F.one_hot(labels, 6).bool()
    assert filtered_BN.any()
    assert torch.equal(head.logits(x, labels).isinf(), filtered_BN)
    assert head.logits(x).isfinite().all()


@every_engine
def test_a_cosine_that_is_just_at_the_filter_stays(engine: str) -> None:
    head = head_of("norm-softmax", dim=2, num_classes=2, scale=8.0, engine=engine, filter_above=0.0)
    with torch.no_grad():
        head.weight.copy_(torch.eye(2))
    loss = head(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert loss.item() == pytest.approx(math.log1p(math.exp(-8)), rel=1e-4)


@every_engine
def test_the_stats_count_filtered_classes_as_well(engine: str) -> None:
    head = head_of("arcface", engine=engine, filter_above=0.1)
    x, labels = torch.randn(9, 4), torch.arange(9) % 6
    _, stats = head(x, labels, return_stats=True)
    assert torch.equal(stats.predicted, head.cosines(x).argmax(dim=1))


@every_engine
@every_margin
def test_ignored_samples_whose_classes_are_all_filtered_do_no_harm(engine: str, name: str) -> None:
    head = settled(head_of(name, engine=engine, filter_above=-0.9))
    with torch.no_grad():
        head.weight.copy_(torch.ones(6, 4) + 0.1 * torch.randn(6, 4))
    x, labels = torch.ones(3, 4) + 0.1 * torch.randn(3, 4), torch.tensor([-1, 2, -1])
    result, alone = gradients(head, x, labels), gradients(head, x[1:2], labels[1:2])
    torch.testing.assert_close(result.loss, alone.loss)
    torch.testing.assert_close(result.dw, alone.dw)
    assert torch.equal(result.dx[[0, 2]], torch.zeros(2, 4))

"""Several centres a class, with every margin: the nearest one of each class stands for it."""

from __future__ import annotations

import math

import pytest
import torch
from definition_cases import CASES, DIM, DTYPES, NUM_CLASSES, Case, batch_for, case_head, check_definition, gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_cases import head_of, settled

import arcwise
from arcwise.heads.margin import ENGINES
from arcwise.margins import names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_margin = pytest.mark.parametrize("name", names())
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@every_engine
@every_case
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_loss_and_gradients_are_those_of_the_formula_at_the_nearest_centre_of_every_class(
    engine: str, case: Case, dtype: torch.dtype
) -> None:
    check_definition(case, engine, dtype, centers_per_class=3)


@every_engine
@every_case
def test_one_centre_a_class_is_no_sub_centres(engine: str, case: Case) -> None:
    """Three that coincide are one as well, wherever their gradient goes."""
    plain, tripled = case_head(case, engine), case_head(case, engine, centers_per_class=3)
    with torch.no_grad():
        tripled.weight.copy_(plain.weight.repeat_interleave(3, dim=0))
        for name, value in plain.margin_state.items():
            tripled.margin_state[name].copy_(value)
    one = case_head(case, engine, centers_per_class=1)
    assert one.sub_centers is None
    assert one.state_dict().keys() == plain.state_dict().keys()
    x, labels = batch_for(plain, 1)
    results = []
    for head in (plain, one, tripled):
        torch.manual_seed(3)
        results.append(gradients(head, x, labels))
    expected, same, thrice = results
    assert torch.equal(same.loss, expected.loss)
    assert torch.equal(same.dx, expected.dx)
    assert torch.equal(same.dw, expected.dw)
    torch.testing.assert_close(thrice.loss, expected.loss)
    torch.testing.assert_close(thrice.dx, expected.dx)
    torch.testing.assert_close(thrice.dw.view(NUM_CLASSES, 3, DIM).sum(dim=1), expected.dw)


@every_engine
@every_margin
@given(seed=st.integers(0, 2**31), num_centers=st.integers(2, 5))
@settings(deadline=None, max_examples=10)
def test_only_the_nearest_centres_have_a_gradient(engine: str, name: str, seed: int, num_centers: int) -> None:
    torch.manual_seed(seed)
    head = settled(head_of(name, num_classes=4, engine=engine, centers_per_class=num_centers))
    x, labels = torch.randn(1, 4), torch.tensor([2])
    dw = gradients(head, x, labels).dw.view(4, num_centers, 4)
    directions = torch.nn.functional.normalize(head.weight.detach()).view(4, num_centers, 4)
    nearest = (directions @ torch.nn.functional.normalize(x)[0]).argmax(dim=1)
    pulled = dw.abs().amax(dim=2) > 0
    assert pulled.any()
    assert not (pulled & ~torch.nn.functional.one_hot(nearest, num_centers).bool()).any()


@every_engine
@every_margin
def test_the_order_of_a_classs_centres_changes_nothing(engine: str, name: str) -> None:
    head = settled(head_of(name, engine=engine, centers_per_class=3))
    x, labels = torch.randn(9, 4), torch.arange(9) % 6
    before = gradients(head, x, labels)
    order = torch.cat([3 * j + torch.randperm(3) for j in range(6)])
    with torch.no_grad():
        head.weight.copy_(head.weight[order])
    after = gradients(head, x, labels)
    torch.testing.assert_close(after.loss, before.loss)
    torch.testing.assert_close(after.dx, before.dx)
    torch.testing.assert_close(after.dw, before.dw[order])


@every_engine
@every_margin
@every_dtype
def test_every_margin_trains_with_three_centres_in_every_dtype(engine: str, name: str, dtype: torch.dtype) -> None:
    """Embeddings, and the whole head as well."""
    for cast in (torch.float32, dtype):
        head = head_of(name, num_classes=9, dim=16, engine=engine, centers_per_class=3).to(cast)
        for _ in range(3):
            x, labels = (3 * torch.randn(20, 16)).to(dtype), torch.randint(-1, 9, (20,))
            result = gradients(head, x, labels)
            assert result.loss.isfinite()
            assert result.loss.dtype == torch.promote_types(torch.promote_types(dtype, cast), torch.float32)
            assert result.dx.isfinite().all()
            assert result.dw.isfinite().all()
            assert result.dw.abs().max() > 0
        assert all(value.isfinite().all() for value in head.margin_state.values())


@every_engine
def test_stats_are_those_of_the_nearest_centres(engine: str) -> None:
    head = head_of("arcface", engine=engine, centers_per_class=3)
    x, labels = torch.randn(20, 4), torch.arange(20) % 6
    labels[3] = -1
    _, stats = head(x, labels, return_stats=True)
    cos_BNK = torch.nn.functional.cosine_similarity(x[:, None], head.weight.detach()[None], dim=2).view(20, 6, 3)
    cos_BN = cos_BNK.amax(dim=2)
    torch.testing.assert_close(head.cosines(x).detach(), cos_BN)
    valid = labels >= 0
    torch.testing.assert_close(stats.target_cosine[valid], cos_BN[valid, labels[valid]])
    assert torch.equal(stats.predicted, cos_BN.argmax(dim=1))


@every_engine
@every_margin
def test_training_batches_tell_which_centre_is_the_dominant_one(engine: str, name: str) -> None:
    """Of class 0 most samples lie at the second centre, of class 1 at the third; class 2 is never seen."""
    head = head_of(name, num_classes=3, engine=engine, centers_per_class=3)
    with torch.no_grad():
        head.weight.copy_(torch.cat([torch.eye(4)[:3], -torch.eye(4)[:3], torch.ones(3, 4)]))
    places = torch.tensor([1, 1, 1, 0, 2, 5, 5, 4, 5, 3])
    x, labels = head.weight.detach()[places] + 0.05 * torch.randn(10, 4), places // 3
    for _ in range(4):
        order = torch.randperm(10)
        head(x[order], labels[order])
    assert torch.equal(head.dominant_centers(), head.weight[[1, 5, 6]])
    head.eval()
    head(x[3:4].repeat(100, 1), torch.zeros(100, dtype=torch.long))
    assert torch.equal(head.dominant_centers(), head.weight[[1, 5, 6]])


@every_engine
def test_samples_that_are_mistaken_gather_at_a_centre_of_their_own(engine: str) -> None:
    """A fifth of each class are wrongly labelled: with one centre they pull at it, with three the dominant one is left alone."""

    def angle_to_the_true_centre(num_centers: int) -> float:
        torch.manual_seed(1)
        truth = torch.nn.functional.normalize(torch.randn(4, 16))
        right = torch.arange(200) % 4
        given = torch.where(torch.arange(200) < 40, (right + 1) % 4, right)
        x = truth[right] + 0.05 * torch.randn(200, 16)
        head = head_of("arcface", 16, 4, 16.0, engine=engine, centers_per_class=num_centers)
        optimiser = torch.optim.Adam([head.weight], lr=0.2)
        for _ in range(60):
            optimiser.zero_grad()
            head(x, given).backward()
            optimiser.step()
        with torch.no_grad():
            cos_N = torch.nn.functional.cosine_similarity(head.dominant_centers(), truth)
        return math.degrees(cos_N.clamp(-1, 1).acos().mean().item())

    assert angle_to_the_true_centre(3) < 0.8 * angle_to_the_true_centre(1)


@every_engine
@every_margin
def test_a_label_is_a_class_not_a_centre(engine: str, name: str) -> None:
    head = head_of(name, engine=engine, centers_per_class=3)
    with pytest.raises(
        arcwise.ArcwiseError, match=r"^labels must be in 0 … 5, or −1 for a sample to ignore; got 6 … 6\.$"
    ):
        head(torch.randn(1, 4), torch.tensor([6]))

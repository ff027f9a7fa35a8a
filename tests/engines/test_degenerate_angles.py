"""The angles at which a margin's slope is infinite, jumps or vanishes, with one centre a class and with several, at every length."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from margin_cases import head_of
from torch import Tensor

from arcwise.heads import MarginHead
from arcwise.heads.margin import ENGINES
from arcwise.margins import Margin, build, names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_margin = pytest.mark.parametrize("name", names())
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
one_centre_or_three = pytest.mark.parametrize("centers_per_class", [1, 3])
# Lengths from the shortest that a dtype knows to all but the longest.
LENGTHS = {
    torch.float32: [1e-45, 1e-30, 1.0, 1e30, 3e38],
    torch.bfloat16: [1e-40, 1e-30, 1.0, 1e30, 3e38],
    torch.float16: [6e-8, 1e-4, 1.0, 1e3, 6e4],
}


def variants(name: str) -> list[Margin]:
    margin = build(name)
    words = {"elasticface": "cos", "mv-softmax": "arc", "long-tail": "arc"}
    return [margin, build(name, kind=words[name])] if name in words else [margin]


def angles_of(margin: Margin) -> list[float]:
    """The ends, all but the ends, and where the angle and a margin come to π; with SphereFace's factor it is π/1.35."""
    turning = [math.pi - value for key, value in margin.parameters().items() if key in {"m", "m2", "l_m", "u_m"}]
    return [0.0, 1e-6, *turning, math.pi / 1.35, math.pi - 1e-6, math.pi]


def embeddings_at(head: MarginHead, angles: list[float]) -> tuple[Tensor, Tensor]:
    """(A·N, D) in float64: at each of the angles to the first centre of each class; and the labels."""
    own_ND = F.normalize(head.weight.detach().double()[:: head.centers_per_class])
    across_ND = torch.randn_like(own_ND)
    across_ND -= (across_ND * own_ND).sum(dim=1, keepdim=True) * own_ND
    across_ND = F.normalize(across_ND)
    rows = [math.cos(theta) * own_ND + math.sin(theta) * across_ND for theta in angles]
    return torch.cat(rows), torch.arange(head.num_classes).repeat(len(angles))


def assert_finite(head: MarginHead, x_BD: Tensor, labels_B: Tensor) -> Tensor:
    """Loss, dx and dw are finite; returns dw."""
    x_BD = x_BD.detach().requires_grad_()
    loss = head(x_BD, labels_B)
    dx, dw, *learnt = torch.autograd.grad(loss, (x_BD, *head.parameters()))
    for value in (loss, dx, dw, *learnt):
        assert value.isfinite().all()
    return dw


@every_engine
@every_margin
@every_dtype
@one_centre_or_three
@pytest.mark.parametrize("coincide", [False, True], ids=["apart", "all in one place"])
def test_gradients_are_finite_where_the_slope_is_at_its_worst(
    engine: str, name: str, dtype: torch.dtype, centers_per_class: int, coincide: bool
) -> None:
    """Each embedding is tried as one of its own class and as one of the next, whose centres may be in the very same place."""
    for margin in variants(name):
        head = head_of(margin, 4, 4, 64.0, engine=engine, centers_per_class=centers_per_class)
        if coincide:
            with torch.no_grad():
                head.weight.copy_(head.weight[0].expand_as(head.weight))
        x, labels = embeddings_at(head, angles_of(margin))
        for _ in range(2):
            assert_finite(head, (5 * x).to(dtype), labels)
            assert_finite(head, (5 * x).to(dtype), (labels + 1) % 4)


@every_engine
@every_margin
@every_dtype
@one_centre_or_three
def test_lengths_of_all_kinds_in_one_batch_give_finite_gradients(
    engine: str, name: str, dtype: torch.dtype, centers_per_class: int
) -> None:
    lengths_L11 = torch.tensor(LENGTHS[dtype], dtype=torch.float64).view(-1, 1, 1)
    for margin in variants(name):
        head = head_of(margin, 4, 4, 12.0, engine=engine, centers_per_class=centers_per_class)
        x, labels = embeddings_at(head, [0.0, 1.0, math.pi])
        x /= x.abs().amax(dim=1, keepdim=True)
        x, labels = (lengths_L11 * x).flatten(0, 1).to(dtype), labels.repeat(len(LENGTHS[dtype]))
        for _ in range(2):
            assert assert_finite(head, x, labels).abs().max() > 1e-4


@every_engine
@every_margin
@every_dtype
def test_several_centres_and_a_filter_at_once_give_finite_gradients(engine: str, name: str, dtype: torch.dtype) -> None:
    head = head_of(name, 4, 4, 64.0, engine=engine, centers_per_class=3, filter_above=0.2)
    x, labels = embeddings_at(head, angles_of(build(name)))
    x = torch.cat([x, torch.zeros(1, 4, dtype=torch.float64)])
    for shift in (0, 1):
        assert_finite(head, (5 * x).to(dtype), torch.cat([(labels + shift) % 4, torch.tensor([2])]))


@every_engine
@every_margin
@every_dtype
def test_a_row_of_zeros_and_centres_of_zeros_have_no_gradient_among_several_centres(
    engine: str, name: str, dtype: torch.dtype
) -> None:
    head = head_of(name, 4, 5, engine=engine, centers_per_class=3)
    with torch.no_grad():
        head.weight[6:9] = 0
    x = torch.randn(4, 4).to(dtype)
    x[1] = 0
    dw = assert_finite(head, x, torch.tensor([0, 1, 2, 3]))
    assert torch.equal(dw[6:9], torch.zeros(3, 4))


@every_engine
@every_margin
@pytest.mark.parametrize("length", [1e-45, 1e-30, 1e30, 3e37])
def test_several_centres_of_any_length_give_the_same_loss_and_finite_gradients(
    engine: str, name: str, length: float
) -> None:
    head = head_of(name, engine=engine, centers_per_class=3)
    head.eval()
    x, labels = torch.randn(6, 4), torch.arange(6)
    before = head(x, labels)
    with torch.no_grad():
        longest = head.weight.abs().max()
        head.weight.copy_(head.weight / longest * length)
    assert_finite(head, x, labels)
    if length > 1e-40:  # the shortest numbers have no digits to keep a direction in
        torch.testing.assert_close(head(x, labels), before, rtol=1e-4, atol=1e-5)

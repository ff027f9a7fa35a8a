"""What no engine may stumble over: embeddings and centres in the worst places and of the worst lengths."""

from __future__ import annotations

import math

import pytest
import torch
from margin_cases import head_of
from torch import Tensor

import arcwise
from arcwise.heads import MarginHead
from arcwise.heads.margin import ENGINES
from arcwise.margins import Margin, build, names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_margin = pytest.mark.parametrize("name", names())
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)


def make_head(engine: str, margin: Margin, num_classes: int = 5, dim: int = 4, scale: float = 10.0) -> MarginHead:
    return head_of(margin, dim, num_classes, scale, engine=engine)


def finite_gradients(head: MarginHead, x_BD: Tensor, labels_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, dx and dw, once they have been seen to be finite."""
    x_BD = x_BD.detach().clone().requires_grad_()
    loss = head(x_BD, labels_B)
    dx, dw = torch.autograd.grad(loss, (x_BD, head.weight))
    assert loss.isfinite()
    assert dx.isfinite().all()
    assert dw.isfinite().all()
    return loss.detach(), dx, dw


@every_engine
@every_margin
@every_dtype
@pytest.mark.parametrize("side", [1.0, -1.0], ids=["equal to", "opposite to"])
def test_gradients_are_finite_for_embeddings_on_the_line_of_their_centre(
    engine: str, name: str, dtype: torch.dtype, side: float
) -> None:
    continuations: list[dict[str, str]] = [{}]
    if "continuation" in build(name).parameters():
        continuations += [{"continuation": c} for c in ("classic", "easy", "none")]
    for parameters in continuations:
        head = make_head(engine, build(name, **parameters), num_classes=64, dim=512, scale=64.0)
        x = (side * 3 * head.weight.detach()).to(dtype)
        finite_gradients(head, x, torch.arange(64))


@every_engine
@every_margin
@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        (torch.float64, 1e-300), (torch.float64, 1e300),
        (torch.float32, 1e-40), (torch.float32, 1e-30), (torch.float32, 1e30), (torch.float32, 3e38),
        (torch.bfloat16, 1e-40), (torch.bfloat16, 1e-30), (torch.bfloat16, 1e30),
        (torch.float16, 6e-8), (torch.float16, 1e-6), (torch.float16, 6e4),
    ],
    ids=str,
)  # fmt: skip
def test_embeddings_of_any_length_give_finite_gradients(
    engine: str, name: str, dtype: torch.dtype, length: float
) -> None:
    head = make_head(engine, build(name))
    direction = torch.randn(6, 4, dtype=torch.float64)
    direction /= direction.abs().amax(dim=1, keepdim=True)
    _, _, dw = finite_gradients(head, (length * direction).to(dtype), torch.arange(6) % 5)
    assert dw.abs().max() > 1e-3


@every_engine
@pytest.mark.parametrize("length", [1e-40, 1e-30, 1e30])
def test_centres_of_any_length_give_the_same_loss_and_finite_gradients(engine: str, length: float) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(6, 4), torch.arange(6) % 5
    before, _, _ = finite_gradients(head, x, labels)
    with torch.no_grad():
        head.weight.mul_(length)
    after, _, _ = finite_gradients(head, x, labels)
    torch.testing.assert_close(after, before, rtol=1e-3, atol=0)


@every_engine
@every_margin
@every_dtype
def test_a_row_of_zeros_has_a_finite_loss_and_no_gradient(engine: str, name: str, dtype: torch.dtype) -> None:
    head = make_head(engine, build(name))
    x = torch.randn(4, 4).to(dtype)
    x[1] = 0
    with torch.no_grad():
        head.weight[2] = 0
    _, dx, dw = finite_gradients(head, x, torch.tensor([0, 1, 2, 3]))
    assert torch.equal(dx[1], torch.zeros(4, dtype=dtype))
    assert torch.equal(dw[2], torch.zeros(4))


@every_engine
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_broken_embedding_shows_in_the_loss(engine: str, value: float) -> None:
    x = torch.randn(3, 4)
    x[1, 2] = value
    assert not make_head(engine, arcwise.ArcFace(0.5))(x, torch.tensor([0, 1, 2])).isfinite()


@every_engine
@every_margin
@pytest.mark.parametrize("broken", [math.nan, math.inf], ids=str)
@pytest.mark.parametrize("centers", [1, 3])
def test_an_ignored_row_that_is_not_finite_reaches_no_gradient(
    engine: str, name: str, broken: float, centers: int
) -> None:
    head = head_of(build(name), 4, 5, 10.0, engine=engine, centers_per_class=centers)
    x, labels = torch.randn(6, 4), torch.tensor([0, 1, 2, -1, 4, 4])
    spoilt = x.clone()
    spoilt[3, 1] = broken
    loss, dx, dw = finite_gradients(head, spoilt, labels)
    assert not dx[3].any()
    assert loss > 0
    assert dw.abs().sum() > 0

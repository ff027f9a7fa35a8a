"""Side by side with pytorch-metric-learning, where that library is right, and where it is known not to be."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import arcwise
from arcwise.heads import MarginHead

losses: Any = pytest.importorskip(
    "pytorch_metric_learning.losses",
    reason="pytorch-metric-learning is not installed, so there is no peer to compare with",
)


def problem(num_classes: int = 7, dim: int = 5, batch: int = 20) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, dim, dtype=torch.float64), torch.arange(batch) % num_classes


def compare(head: MarginHead, theirs: Any, x: Tensor, labels: Tensor) -> None:
    """Loss and both gradients agree. The peer keeps its centres as columns."""
    with torch.no_grad():
        theirs.W.data = head.weight.detach().T.clone()
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    ours, expected = head(mine, labels), theirs(other, labels)
    ours.backward()
    expected.backward()
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(mine.grad, other.grad)
    assert head.weight.grad is not None
    torch.testing.assert_close(head.weight.grad, theirs.W.grad.T)


@pytest.mark.parametrize("m", [0.1, 0.5, 1.2])
def test_arcface_agrees_in_value_and_gradients(m: float) -> None:
    """Its continuation is the classic one, its margin is in degrees."""
    head = MarginHead(5, 7, arcwise.ArcFace(m, continuation="classic"), 16.0).double()
    compare(head, losses.ArcFaceLoss(7, 5, margin=math.degrees(m), scale=16), *problem())


def test_our_default_agrees_as_long_as_no_angle_passes_the_turning_point() -> None:
    head = MarginHead(5, 7, arcwise.ArcFace(0.5), 16.0).double()
    labels = torch.arange(20) % 7
    x = (head.weight[labels] + 0.4 * torch.randn(20, 5, dtype=torch.float64)).detach()
    own = head.cosines(x).gather(1, labels.unsqueeze(1))
    assert own.min() > math.cos(math.pi - 0.5)
    compare(head, losses.ArcFaceLoss(7, 5, margin=math.degrees(0.5), scale=16), x, labels)


@pytest.mark.parametrize("m", [0.1, 0.35])
def test_cosface_agrees_in_value_and_gradients(m: float) -> None:
    head = MarginHead(5, 7, arcwise.CosFace(m), 16.0).double()
    compare(head, losses.CosFaceLoss(7, 5, margin=m, scale=16), *problem())


def test_norm_softmax_agrees_in_value_and_gradients() -> None:
    head = MarginHead(5, 7, arcwise.NormSoftmax(), 20.0).double()
    x, labels = problem()
    with torch.no_grad():
        head.weight.div_(head.weight.norm(dim=1, keepdim=True))
    peer = losses.NormalizedSoftmaxLoss(7, 5, temperature=1 / 20)
    with torch.no_grad():
        peer.W.data = head.weight.detach().T.clone()
    ours, expected = head(x, labels), peer(x, labels)
    torch.testing.assert_close(ours, expected)


# The peer hands torch tensors to scipy, which numpy 2 warns about.
@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_sphereface_agrees_for_whole_m_on_embeddings_of_length_one(m: int) -> None:
    """Its scale multiplies the length of the embedding back in, as the paper did; at length one that changes no value."""
    head = MarginHead(5, 7, arcwise.SphereFace(m), 8.0).double()
    x, labels = problem()
    x /= x.norm(dim=1, keepdim=True)
    peer = losses.SphereFaceLoss(7, 5, margin=m, scale=8)
    with torch.no_grad():
        peer.W.data = head.weight.detach().T.clone()
    ours, expected = head(x, labels), peer(x, labels)
    ours.backward()
    expected.backward()
    torch.testing.assert_close(ours, expected)
    assert head.weight.grad is not None
    torch.testing.assert_close(head.weight.grad, peer.W.grad.T)


def test_where_the_peer_has_gradients_that_are_not_finite_ours_are() -> None:
    """512 embeddings that equal their class centre, in float32."""
    head = MarginHead(512, 512, arcwise.ArcFace(0.5), 64.0)
    peer = losses.ArcFaceLoss(512, 512, margin=math.degrees(0.5), scale=64)
    peer.W.data = head.weight.detach().T.clone()
    mine, other = (head.weight.detach().clone().requires_grad_() for _ in range(2))
    head(mine, torch.arange(512)).backward()
    peer(other, torch.arange(512)).backward()
    assert mine.grad is not None
    assert other.grad is not None
    assert mine.grad.isfinite().all()
    assert not other.grad.isfinite().all()


def test_where_the_peer_casts_its_centres_for_good_ours_stay() -> None:
    head = MarginHead(5, 7, arcwise.ArcFace(0.5), 16.0)
    peer = losses.ArcFaceLoss(7, 5)
    x, labels = torch.randn(4, 5, dtype=torch.bfloat16), torch.arange(4)
    head(x, labels)
    peer(x, labels)
    assert peer.W.dtype == torch.bfloat16
    assert head.weight.dtype == torch.float32

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


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_sphereface_agrees_in_the_embeddings_gradient_across_their_direction(m: int) -> None:
    """Along the embedding only the peer has one, since its logits grow with the length."""
    head = MarginHead(5, 7, arcwise.SphereFace(m), 8.0).double()
    x, labels = problem()
    x /= x.norm(dim=1, keepdim=True)
    peer = losses.SphereFaceLoss(7, 5, margin=m, scale=8)
    peer.W.data = head.weight.detach().T.clone()
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    head(mine, labels).backward()
    peer(other, labels).backward()
    assert mine.grad is not None
    assert other.grad is not None
    along = (other.grad * x).sum(dim=1, keepdim=True)
    assert along.abs().max() > 1e-3
    torch.testing.assert_close(mine.grad, other.grad - along * x)


@pytest.mark.filterwarnings("ignore:__array_wrap__:DeprecationWarning")
def test_where_the_peer_drops_the_fraction_of_sphereface_s_factor_ours_keeps_it() -> None:
    """Its m = 1.35 is 1, which is no margin at all."""
    x, labels = problem()
    x /= x.norm(dim=1, keepdim=True)
    head = MarginHead(5, 7, arcwise.SphereFace(1.35), 8.0).double()
    without = MarginHead(5, 7, arcwise.NormSoftmax(), 8.0).double()
    peer = losses.SphereFaceLoss(7, 5, margin=1.35, scale=8)
    with torch.no_grad():
        without.weight.copy_(head.weight)
        peer.W.data = head.weight.detach().T.clone()
    torch.testing.assert_close(peer(x, labels), without(x, labels))
    assert head(x, labels) > 1.05 * without(x, labels)


def test_where_the_peers_sphereface_depends_on_the_length_ours_does_not() -> None:
    head = MarginHead(5, 7, arcwise.SphereFace(4), 8.0).double()
    x, labels = problem()
    torch.testing.assert_close(head(3 * x, labels), head(x, labels))


@pytest.mark.parametrize("sub_centres", [1, 2, 3])
@pytest.mark.parametrize("m", [0.1, 0.5, 1.2])
def test_sub_centre_arcface_agrees_in_value_and_gradients(m: float, sub_centres: int) -> None:
    """Both keep the centres of a class beside each other."""
    margin = arcwise.ArcFace(m, continuation="classic")
    head = MarginHead(5, 7, margin, 16.0, centers_per_class=sub_centres).double()
    peer = losses.SubCenterArcFaceLoss(
        num_classes=7, embedding_size=5, margin=math.degrees(m), scale=16, sub_centers=sub_centres
    )
    compare(head, peer, *problem())


def test_the_dominant_centres_agree() -> None:
    """Ours count batches as they come, the peer goes through the data once more afterwards."""
    head = MarginHead(5, 7, arcwise.ArcFace(0.5), 16.0, centers_per_class=3).double()
    x, labels = problem(batch=210)
    peer = losses.SubCenterArcFaceLoss(num_classes=7, embedding_size=5, sub_centers=3)
    peer.W.data = head.weight.detach().T.clone()
    for rows in torch.randperm(210).split(42):
        head(x[rows], labels[rows]).backward()
    _, theirs = peer.get_outliers(x, labels)
    cos = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(head.weight.detach()).T
    nearest = cos.view(210, 7, 3)[torch.arange(210), labels].argmax(dim=1)
    counts = torch.zeros(7, 3).index_put_((labels, nearest), torch.ones(210), accumulate=True)
    clear = counts.sort(dim=1).values[:, -1] > 1.5 * counts.sort(dim=1).values[:, -2]
    assert clear.any()
    torch.testing.assert_close(head.dominant_centers()[clear], theirs.T[clear])


def test_where_the_peer_has_sub_centre_gradients_that_are_not_finite_ours_are() -> None:
    """512 embeddings that equal the first centre of their class, in float32."""
    head = MarginHead(512, 512, arcwise.ArcFace(0.5), 64.0, centers_per_class=3)
    peer = losses.SubCenterArcFaceLoss(num_classes=512, embedding_size=512, sub_centers=3)
    peer.W.data = head.weight.detach().T.clone()
    mine, other = (head.weight.detach()[::3].clone().requires_grad_() for _ in range(2))
    head(mine, torch.arange(512)).backward()
    peer(other, torch.arange(512)).backward()
    assert mine.grad is not None
    assert head.weight.grad is not None
    assert other.grad is not None
    assert mine.grad.isfinite().all()
    assert head.weight.grad.isfinite().all()
    assert not other.grad.isfinite().all()
    assert not peer.W.grad.isfinite().all()


@pytest.mark.parametrize("length", [1e20, 1e-20])
def test_where_the_peer_loses_the_direction_of_huge_and_tiny_embeddings_ours_keeps_it(length: float) -> None:
    """Squares of such lengths leave float32's range, and a cosine of 0 is what is left."""
    head = MarginHead(5, 7, arcwise.CosFace(0.35), 16.0)
    peer = losses.CosFaceLoss(7, 5, margin=0.35, scale=16)
    peer.W.data = head.weight.detach().T.clone()
    x = torch.nn.functional.normalize(torch.randn(20, 5))
    labels = torch.arange(20) % 7
    expected = head(x, labels)
    torch.testing.assert_close(peer(x, labels), expected)
    torch.testing.assert_close(head(length * x, labels), expected)
    assert not torch.isclose(peer(length * x, labels), expected, rtol=0.01)


def test_where_the_peer_has_a_jump_at_the_turning_point_ours_has_none() -> None:
    """Its continuation falls from −1 to −1 − (m sin m − (1 − cos m)) there."""
    centre = torch.eye(3, dtype=torch.float64)[[0, 2]]
    head = MarginHead(3, 2, arcwise.ArcFace(0.5), 1.0).double()
    peer = losses.ArcFaceLoss(2, 3, margin=math.degrees(0.5), scale=1)
    with torch.no_grad():
        head.weight.copy_(centre)
        peer.W.data = centre.T.clone()
    turning = math.pi - 0.5
    x = torch.tensor([[math.cos(t), math.sin(t), 0.0] for t in (turning - 1e-9, turning + 1e-9)], dtype=torch.float64)

    def target_logit(loss: Tensor) -> float:
        return -math.log(math.expm1(float(loss.detach())))  # the other logit is 0

    label = torch.zeros(1, dtype=torch.long)
    ours = [target_logit(head(row.unsqueeze(0), label)) for row in x]
    theirs = [target_logit(peer(row.unsqueeze(0), label)) for row in x]
    assert ours[0] - ours[1] == pytest.approx(0, abs=1e-8)
    assert theirs[0] - theirs[1] == pytest.approx(0.5 * math.sin(0.5) - (1 - math.cos(0.5)), abs=1e-6)


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

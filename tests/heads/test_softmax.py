from __future__ import annotations

import io
import math

import pytest
import torch
import torch.nn.functional as F

from arcwise.heads import SoftmaxHead


@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients_are_those_of_a_naive_loop(bias: bool) -> None:
    """z_ij = w_j·x_i + b_j and −log softmax(z_i)[y_i], with dL/dz_ij = p_ij − [j = y_i]."""
    head = SoftmaxHead(4, 5, bias=bias).double()
    if head.bias is not None:
        torch.nn.init.normal_(head.bias)
    x_BD, labels = 2 * torch.randn(7, 4, dtype=torch.float64), [0, 1, 2, 3, 4, -1, 1]
    xs, ws = x_BD.tolist(), head.weight.tolist()
    bs = head.bias.tolist() if head.bias is not None else [0.0] * 5
    total, dxs, dws, dbs = 0.0, [[0.0] * 4 for _ in xs], [[0.0] * 4 for _ in ws], [0.0] * 5
    for x, y, dx in zip(xs, labels, dxs, strict=True):
        if y < 0:
            continue
        z = [sum(a * b for a, b in zip(x, w, strict=True)) + b_j for w, b_j in zip(ws, bs, strict=True)]
        shares = [math.exp(z_j) / sum(math.exp(z_k) for z_k in z) for z_j in z]
        total -= math.log(shares[y]) / 6
        for j, p in enumerate(shares):
            g = (p - (j == y)) / 6
            dbs[j] += g
            for d in range(4):
                dx[d] += g * ws[j][d]
                dws[j][d] += g * x[d]

    x_BD.requires_grad_()
    loss = head(x_BD, torch.tensor(labels))
    loss.backward()
    assert x_BD.grad is not None
    assert head.weight.grad is not None
    assert loss.item() == pytest.approx(total, rel=1e-12)
    torch.testing.assert_close(x_BD.grad, torch.tensor(dxs, dtype=torch.float64))
    torch.testing.assert_close(head.weight.grad, torch.tensor(dws, dtype=torch.float64))
    if head.bias is not None:
        assert head.bias.grad is not None
        torch.testing.assert_close(head.bias.grad, torch.tensor(dbs, dtype=torch.float64))


def test_logits_are_plain_and_labels_make_no_difference_to_them() -> None:
    head = SoftmaxHead(4, 5)
    assert head.bias is not None
    torch.nn.init.normal_(head.bias)
    x = torch.randn(6, 4)
    torch.testing.assert_close(head.logits(x), x @ head.weight.T + head.bias)
    assert torch.equal(head.logits(x), head.logits(x, torch.arange(6) % 5))


def test_a_longer_embedding_is_a_surer_one_and_a_longer_centre_wins_a_larger_region() -> None:
    head, x = SoftmaxHead(2, 2, bias=False), torch.tensor([[1.0, 0.9]])
    with torch.no_grad():
        head.weight.copy_(torch.eye(2))
        assert head(10 * x, torch.tensor([0])) < head(x, torch.tensor([0]))
        assert head.logits(x).argmax() == 0
        head.weight[1] *= 2
        assert head.logits(x).argmax() == 1


def test_predictions_are_by_logit_and_cosines_by_angle() -> None:
    head = SoftmaxHead(2, 2, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 100.0]]))
    x = torch.tensor([[1.0, 0.1], [1.0, 0.1]])
    _, stats = head(x, torch.tensor([0, 1]), return_stats=True)
    assert stats.predicted.tolist() == [1, 1]
    assert stats.correct.tolist() == [False, True]
    length = math.hypot(1.0, 0.1)
    assert stats.target_cosine.tolist() == pytest.approx([1 / length, 0.1 / length])
    assert head.cosines(x)[0].tolist() == pytest.approx([1 / length, 0.1 / length])


def test_ignored_samples_change_nothing() -> None:
    head, x, labels = SoftmaxHead(4, 5), torch.randn(6, 4), torch.tensor([0, -1, 2, 3, -1, 4])
    torch.testing.assert_close(head(x, labels), head(x[labels >= 0], labels[labels >= 0]))
    loss, stats = head(x, torch.full((6,), -1), return_stats=True)
    loss.backward()
    assert loss == 0
    assert head.weight.grad is not None
    assert torch.equal(head.weight.grad, torch.zeros(5, 4))
    assert math.isnan(stats.accuracy())
    assert head(x[:0], labels[:0]) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("autocast", [False, True])
def test_every_dtype_is_taken_and_the_parameters_stay_as_they_are(dtype: torch.dtype, autocast: bool) -> None:
    head = SoftmaxHead(4, 5)
    before = head.weight.detach().clone()
    x = torch.randn(6, 4).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = head(x, torch.arange(6) % 5)
    loss.backward()
    expected = F.cross_entropy(x.double() @ before.double().T, torch.arange(6) % 5)
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert head.weight.dtype == torch.float32
    assert torch.equal(head.weight, before)
    assert x.grad is not None
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("length", [0.0, 1e-40, 1e-30, 1e30])
def test_embeddings_of_any_length_give_finite_gradients(length: float) -> None:
    head = SoftmaxHead(4, 5)
    x = (length * torch.randn(6, 4)).requires_grad_()
    loss, stats = head(x, torch.arange(6) % 5, return_stats=True)
    loss.backward()
    assert loss.isfinite()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert head.weight.grad is not None
    assert head.weight.grad.isfinite().all()
    assert stats.target_cosine.isfinite().all()


def test_the_state_is_two_tensors_that_load_again() -> None:
    head, again = SoftmaxHead(4, 5), SoftmaxHead(4, 5)
    assert list(head.state_dict()) == ["weight", "bias"]
    assert list(SoftmaxHead(4, 5, bias=False).state_dict()) == ["weight"]
    buffer = io.BytesIO()
    torch.save(head.state_dict(), buffer)
    buffer.seek(0)
    again.load_state_dict(torch.load(buffer, weights_only=True))
    x = torch.randn(3, 4)
    assert torch.equal(head.logits(x), again.logits(x))


def test_a_head_describes_itself() -> None:
    assert repr(SoftmaxHead(4, 5, bias=False)) == "SoftmaxHead(dim=4, num_classes=5, bias=False)"

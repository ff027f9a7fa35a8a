from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.engines import reference
from arcwise.engines.task import Task
from arcwise.margins import ArcFace, Margin, NormSoftmax, build


def problem() -> tuple[Tensor, Tensor, Tensor]:
    x_BD = 3 * torch.randn(8, 4, dtype=torch.float64)
    w_ND = torch.randn(6, 4, dtype=torch.float64)
    return x_BD.requires_grad_(), w_ND.requires_grad_(), torch.arange(8) % 6


def logits(cos_BN: Tensor, labels_B: Tensor, margin: Margin, scale: float) -> Tensor:
    psi_B = margin.target(cos_BN.gather(1, labels_B.clamp_min(0).unsqueeze(1)).squeeze(1))
    return reference.margin_logits(cos_BN, psi_B, labels_B, Task(margin, scale))


def test_cosines_are_those_of_the_angles() -> None:
    x_BD, w_ND, _ = problem()
    cos_BN = reference.cosines(x_BD, w_ND)
    torch.testing.assert_close(cos_BN, F.cosine_similarity(x_BD.unsqueeze(1), w_ND.unsqueeze(0), dim=2))


def test_cosines_are_computed_in_float32_under_autocast() -> None:
    x_BD, w_ND = torch.randn(8, 64), torch.randn(6, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = reference.cosines(x_BD, w_ND)
    assert torch.equal(inside, reference.cosines(x_BD, w_ND))
    assert reference.cosines(x_BD.half(), w_ND.half()).dtype == torch.float32


def test_only_the_own_classs_logit_feels_the_margin() -> None:
    x_BD, w_ND, labels_B = problem()
    labels_B[3] = -1
    cos_BN = reference.cosines(x_BD, w_ND)
    logits_BN = logits(cos_BN, labels_B, ArcFace(0.5), 16.0)
    for i, y in enumerate(labels_B.tolist()):
        for j in range(6):
            c = cos_BN[i, j].item()
            own = math.cos(math.acos(c) + 0.5) if math.acos(c) + 0.5 < math.pi else c - 1 + math.cos(0.5)
            assert logits_BN[i, j].item() == pytest.approx(16 * (own if j == y else c), abs=1e-12)


def test_a_label_of_minus_one_does_not_put_a_margin_on_the_first_class() -> None:
    cos_BN = torch.rand(3, 4)
    logits_BN = logits(cos_BN, torch.full((3,), -1), ArcFace(0.5), 2.0)
    assert torch.equal(logits_BN, 2.0 * cos_BN)


@pytest.mark.parametrize("name", ["norm-softmax", "arcface", "cosface", "sphereface", "combined"])
def test_the_closed_form_of_the_backward_is_what_autograd_computes(name: str) -> None:
    """G_ij = g·s·p_ij, G_iy = −g·s·(1 − p_iy)·dψ/dc, and the Jacobians of the two normalisations.

    Written with the fixed shift, as a fused engine would: p_ij = exp(s(c_ij − 1) − lse_i) and 1 − p_iy = −expm1(z_y − lse_i).
    """
    margin: Margin = build(name)
    x_BD, w_ND, labels_B = problem()
    s, rows = 12.0, torch.arange(8)
    loss = reference.margin_loss(x_BD, w_ND, labels_B, Task(margin, s)).loss
    dx, dw = torch.autograd.grad(loss, (x_BD, w_ND))

    with torch.no_grad():
        x_norm, w_norm = x_BD.norm(dim=1, keepdim=True), w_ND.norm(dim=1, keepdim=True)
        x_hat, w_hat = x_BD / x_norm, w_ND / w_norm
        c_BN = x_hat @ w_hat.T
        psi_B, slope_B = margin.curve(c_BN[rows, labels_B])
        others_BN = (s * (c_BN - 1)).exp()
        others_BN[rows, labels_B] = 0
        z_B = s * (psi_B - 1)
        lse_B = torch.logaddexp(others_BN.sum(dim=1).log(), z_B)
        g = 1 / 8
        G_BN = g * s * others_BN / lse_B.exp().unsqueeze(1)
        G_BN[rows, labels_B] = g * s * torch.expm1(z_B - lse_B) * slope_B
        U, V = G_BN @ w_hat, G_BN.T @ x_hat
        closed_dx = (U - (U * x_hat).sum(dim=1, keepdim=True) * x_hat) / x_norm
        closed_dw = (V - (V * w_hat).sum(dim=1, keepdim=True) * w_hat) / w_norm
    torch.testing.assert_close(loss, (lse_B - z_B).mean(), rtol=1e-12, atol=0)
    torch.testing.assert_close(dx, closed_dx, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(dw, closed_dw, rtol=1e-10, atol=1e-13)


def test_norm_softmax_is_the_four_lines_of_the_derivation() -> None:
    x_BD, w_ND, labels_B = problem()
    logits = 16.0 * F.normalize(x_BD) @ F.normalize(w_ND).T
    ours = reference.margin_loss(x_BD, w_ND, labels_B, Task(NormSoftmax(), 16.0)).loss
    torch.testing.assert_close(ours, F.cross_entropy(logits, labels_B))


def test_the_worked_example_of_five_identities_comes_out() -> None:
    logits = torch.tensor([[1, -1, 0.5, -0.25, 3]], dtype=torch.float64)
    shares = [(-reference.mean_cross_entropy(logits, torch.tensor([j]))).exp().item() for j in range(5)]
    assert shares == pytest.approx([0.1062, 0.0144, 0.0644, 0.0304, 0.7846], abs=5e-5)


def test_the_mean_is_over_the_labelled_samples_only() -> None:
    logits = torch.randn(4, 3)
    labels = torch.tensor([0, -1, 2, -1])
    expected = F.cross_entropy(logits[[0, 2]], labels[[0, 2]])
    torch.testing.assert_close(reference.mean_cross_entropy(logits, labels), expected)
    assert reference.mean_cross_entropy(logits, torch.full((4,), -1)) == 0
    assert reference.mean_cross_entropy(logits[:0], labels[:0]) == 0

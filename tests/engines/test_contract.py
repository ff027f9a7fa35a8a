"""What every engine must compute, for every registered margin. A new engine or margin joins by being registered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from margin_cases import FUNCTIONS_OF_THE_ANGLE, head_of, settled
from torch import Tensor

import arcwise
from arcwise.heads import MarginHead
from arcwise.heads.margin import ENGINES
from arcwise.margins import Margin, build, names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_margin = pytest.mark.parametrize("name", names())
every_plain_margin = pytest.mark.parametrize("name", FUNCTIONS_OF_THE_ANGLE)
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
# How far a gradient g may be from the float64 one: ‖g − g64‖/‖g64‖.
CLOSE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 5e-3}


def make_head(
    engine: str,
    margin: Margin,
    num_classes: int = 5,
    dim: int = 4,
    scale: float = 10.0,
    dtype: torch.dtype = torch.float32,
) -> MarginHead:
    return head_of(margin, dim, num_classes, scale, engine=engine).to(dtype)


@dataclass(frozen=True)
class Result:
    loss: Tensor
    dx: Tensor
    dw: Tensor


def run(head: MarginHead, x_BD: Tensor, labels_B: Tensor) -> Result:
    head.zero_grad()
    x_BD = x_BD.detach().clone().requires_grad_()
    loss = head(x_BD, labels_B)
    loss.backward()
    assert x_BD.grad is not None
    assert head.weight.grad is not None
    return Result(loss.detach(), x_BD.grad, head.weight.grad.clone())


def naive(head: MarginHead, x_BD: Tensor, labels_B: Tensor) -> Result:
    """Loss and gradients in plain Python numbers, sample by sample and class by class, with the chain rule written out."""
    s, margin = head.scale, head.margin
    xs, ws, labels = x_BD.double().tolist(), head.weight.detach().double().tolist(), labels_B.tolist()
    dxs, dws = [[0.0] * head.dim for _ in xs], [[0.0] * head.dim for _ in ws]
    num_valid, total = sum(y >= 0 for y in labels), 0.0

    def norm(v: list[float]) -> float:
        return math.sqrt(sum(a * a for a in v))

    for x, y, dx in zip(xs, labels, dxs, strict=True):
        if y < 0:
            continue
        x_hat = [a / norm(x) for a in x]
        w_hats = [[a / norm(w) for a in w] for w in ws]
        c = [sum(a * b for a, b in zip(x_hat, w_hat, strict=True)) for w_hat in w_hats]
        z = [s * c_j for c_j in c]
        psi_B, slope_B = margin.curve(torch.tensor([c[y]], dtype=torch.float64))
        slope = 1.0 if margin.gradient == "detached" else float(slope_B)
        z[y] = s * float(psi_B)
        largest = max(z)
        lse = largest + math.log(sum(math.exp(z_j - largest) for z_j in z))
        total += lse - z[y]
        for j, (w, w_hat, dw) in enumerate(zip(ws, w_hats, dws, strict=True)):
            p = math.exp(z[j] - lse)
            g = s * (p - 1) * slope if j == y else s * p
            for d in range(head.dim):
                dx[d] += g / num_valid * (w_hat[d] - c[j] * x_hat[d]) / norm(x)
                dw[d] += g / num_valid * (x_hat[d] - c[j] * w_hat[d]) / norm(w)
    as_tensor = [torch.tensor(rows, dtype=torch.float64).view(-1, head.dim) for rows in (dxs, dws)]
    return Result(torch.tensor(total / max(num_valid, 1), dtype=torch.float64), *as_tensor)


def off_by(given: Tensor, truth: Tensor) -> float:
    return float((given.double() - truth).norm() / truth.norm())


def every_gradient(name: str) -> list[Margin]:
    return [build(name), *([build(name, gradient="detached")] if "gradient" in build(name).parameters() else [])]


@every_engine
@every_plain_margin
@every_dtype
def test_loss_and_both_gradients_are_those_of_a_naive_loop(engine: str, name: str, dtype: torch.dtype) -> None:
    for margin in every_gradient(name):
        head = make_head(engine, margin, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
        x, labels = 3 * torch.randn(12, 4, dtype=torch.float64).to(dtype), torch.arange(12) % 5
        labels[[2, 7]] = -1
        ours, truth = run(head, x, labels), naive(head, x, labels)
        assert off_by(ours.loss, truth.loss) <= CLOSE[torch.float64 if dtype == torch.float64 else torch.float32]
        assert off_by(ours.dx, truth.dx) <= CLOSE[dtype]
        assert off_by(ours.dw, truth.dw) <= CLOSE[head.weight.dtype]
        assert ours.loss.dtype == torch.promote_types(dtype, torch.float32)
        assert ours.dx.dtype == dtype
        assert ours.dw.dtype == head.weight.dtype


@every_engine
@every_margin
def test_gradcheck_passes_in_float64(engine: str, name: str) -> None:
    """On embeddings near their centres: past the turning point of a margin the slope jumps, and differences do not see it."""
    head = settled(make_head(engine, build(name), dtype=torch.float64))
    labels = torch.arange(5)
    x = (head.weight + 0.3 * torch.randn(5, 4, dtype=torch.float64)).detach().requires_grad_()
    w = head.weight.detach().clone().requires_grad_()

    def loss(x: Tensor, w: Tensor) -> Any:
        return torch.func.functional_call(head, {"weight": w}, (x, labels))

    if (
        name == "adaface"
    ):  # its margin depends on the embedding's length without a gradient, which differences would see
        x.requires_grad_(False)
    assert torch.autograd.gradcheck(loss, (x, w))


@every_engine
def test_a_target_far_behind_at_a_large_scale_is_not_lost_to_underflow(engine: str) -> None:
    """Two classes, s = 64, cosines −0.9 to the own centre and −0.7 to the other: exp(s(c − 1)) is 0 in float32 for both."""
    head = make_head(engine, arcwise.ArcFace(0.5), num_classes=2, dim=3, scale=64.0)
    others = math.sqrt(1 - 0.9**2 - 0.4**2)
    x = torch.tensor([[-0.9, 0.4, others]])
    with torch.no_grad():
        w = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        a, b = 0.4, others
        # A unit vector at cosine −0.7 to x.
        side = torch.tensor([0.0, b, -a]) / math.hypot(a, b)
        w[1] = -0.7 * x[0] + math.sqrt(1 - 0.49) * side
        head.weight.copy_(w)
    assert head.cosines(x).tolist()[0] == pytest.approx([-0.9, -0.7], abs=1e-6)
    ours, truth = run(head, x, torch.tensor([0])), naive(head, x, torch.tensor([0]))
    assert float(truth.loss) == pytest.approx(64 * (-0.7 - (-0.9 - (1 - math.cos(0.5)))), abs=1e-3)
    assert float(ours.loss) == pytest.approx(20.635, abs=1e-2)
    assert off_by(ours.dx, truth.dx) <= 1e-4


@every_engine
def test_a_sample_learnt_to_perfection_has_a_loss_of_zero_or_more(engine: str) -> None:
    head = make_head(engine, arcwise.NormSoftmax(), scale=1000.0)
    result = run(head, head.weight.detach(), torch.arange(5))
    assert 0 <= float(result.loss) < 1e-6


@every_engine
@every_margin
def test_ignored_samples_change_nothing(engine: str, name: str) -> None:
    head = settled(make_head(engine, build(name)))
    x, labels = torch.randn(9, 4), torch.tensor([0, -1, 2, 3, -1, 4, 0, 1, -1])
    with_ignored, without = run(head, x, labels), run(head, x[labels >= 0], labels[labels >= 0])
    torch.testing.assert_close(with_ignored.loss, without.loss)
    torch.testing.assert_close(with_ignored.dw, without.dw)
    torch.testing.assert_close(with_ignored.dx[labels >= 0], without.dx)
    assert torch.equal(with_ignored.dx[labels < 0], torch.zeros(3, 4))


@every_engine
@every_margin
@every_dtype
@pytest.mark.parametrize("batch", [0, 1, 6])
def test_without_a_single_label_loss_and_gradients_are_zero(
    engine: str, name: str, dtype: torch.dtype, batch: int
) -> None:
    head = make_head(engine, build(name))
    result = run(head, torch.randn(batch, 4).to(dtype), torch.full((batch,), -1))
    assert float(result.loss) == 0
    assert torch.equal(result.dx, torch.zeros(batch, 4, dtype=dtype))
    assert torch.equal(result.dw, torch.zeros(5, 4))


@every_engine
@every_plain_margin
def test_a_batch_of_one_is_a_batch(engine: str, name: str) -> None:
    head = make_head(engine, build(name))
    x, labels = torch.randn(1, 4), torch.tensor([3])
    ours, truth = run(head, x, labels), naive(head, x, labels)
    assert off_by(ours.loss, truth.loss) <= 1e-4
    assert off_by(ours.dx, truth.dx) <= 1e-4


@every_engine
@every_margin
@given(length=st.floats(1e-3, 1e3), seed=st.integers(0, 2**31), num_classes=st.integers(2, 9), dim=st.integers(2, 9))
@settings(deadline=None, max_examples=15)
def test_scaling_embeddings_or_centres_changes_no_loss(
    engine: str, name: str, length: float, seed: int, num_classes: int, dim: int
) -> None:
    torch.manual_seed(seed)
    head = settled(make_head(engine, build(name), num_classes, dim, dtype=torch.float64))
    x = torch.randn(7, dim, dtype=torch.float64)
    labels = torch.randint(0, num_classes, (7,))
    before = run(head, x, labels)
    if not head.margin.reads_norm:
        longer = run(head, length * x, labels)
        torch.testing.assert_close(longer.loss, before.loss, rtol=1e-6, atol=1e-6)
        # Where a cosine is all but 1 or −1, its last bit decides the direction of a gradient in the angle.
        plain_B = head.cosines(x).abs().amax(dim=1) < 1 - 1e-6
        torch.testing.assert_close(longer.dx[plain_B], before.dx[plain_B] / length, rtol=1e-5, atol=1e-9)
    with torch.no_grad():
        head.weight.mul_(length)
    torch.testing.assert_close(run(head, x, labels).loss, before.loss, rtol=1e-6, atol=1e-6)


@every_engine
@every_margin
@given(seed=st.integers(0, 2**31), dim=st.integers(2, 9))
@settings(deadline=None, max_examples=15)
def test_rotating_everything_changes_no_loss_and_rotates_the_gradients(
    engine: str, name: str, seed: int, dim: int
) -> None:
    torch.manual_seed(seed)
    head = settled(make_head(engine, build(name), 6, dim, dtype=torch.float64))
    x = torch.randn(7, dim, dtype=torch.float64)
    labels = torch.randint(0, 6, (7,))
    rotation, _ = torch.linalg.qr(torch.randn(dim, dim, dtype=torch.float64))
    before = run(head, x, labels)
    with torch.no_grad():
        head.weight.copy_(head.weight @ rotation)
    after = run(head, x @ rotation, labels)
    torch.testing.assert_close(after.loss, before.loss)
    torch.testing.assert_close(after.dx, before.dx @ rotation)
    torch.testing.assert_close(after.dw, before.dw @ rotation)


@every_engine
@every_margin
def test_no_margin_is_norm_softmax(engine: str, name: str) -> None:
    if not build(name).becomes_norm_softmax:
        pytest.skip(f"{name} without a margin is a loss of its own kind")
    head = settled(make_head(engine, build(name).at(0.0)))
    plain = MarginHead(head.dim, head.num_classes, arcwise.NormSoftmax(), head.scale, engine=engine)
    plain.weight = head.weight
    x, labels = torch.randn(8, 4), torch.arange(8) % 5
    x[0] = 2 * head.weight.detach()[0]
    ours, expected = run(head, x, labels), run(plain, x, labels)
    torch.testing.assert_close(ours.loss, expected.loss)
    torch.testing.assert_close(ours.dx, expected.dx)
    torch.testing.assert_close(ours.dw, expected.dw)


@every_engine
@every_margin
def test_a_margin_never_makes_the_loss_smaller(engine: str, name: str) -> None:
    margin = build(name)
    if margin.reduction != "softmax" or margin.reshapes_negatives:
        pytest.skip(f"{name} changes more than the own class's logit")
    head = settled(make_head(engine, margin))
    plain = MarginHead(head.dim, head.num_classes, arcwise.NormSoftmax(), head.scale, engine=engine)
    plain.weight = head.weight
    x, labels = torch.randn(64, 4), torch.arange(64) % 5
    assert head(x, labels) >= plain(x, labels)


@every_engine
@every_margin
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16], ids=str)
@every_dtype
def test_a_forward_changes_neither_dtype_nor_value_of_the_centres(
    engine: str, name: str, autocast: torch.dtype | None, dtype: torch.dtype
) -> None:
    head = make_head(engine, build(name))
    with torch.no_grad():
        head.weight.mul_(torch.tensor([[0.1], [1.0], [7.0], [1e3], [1e-3]]))
    before = head.weight.detach().clone()
    x = torch.randn(6, 4).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        loss = head(x, torch.arange(6) % 5)
        head.logits(x)
    loss.backward()
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    assert torch.equal(head.weight, before)
    assert head.weight.dtype == torch.float32
    assert x.grad is not None
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()


@every_engine
def test_autocast_costs_the_loss_no_precision_that_matters(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5), num_classes=32, dim=64, scale=64.0)
    x, labels = torch.randn(16, 64), torch.arange(16)
    truth = naive(head, x, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = run(head, x, labels)
    assert off_by(ours.loss, truth.loss) <= 2e-2
    assert off_by(ours.dx, truth.dx) <= 5e-2


@every_engine
@every_margin
def test_stats_are_measured_without_the_margin(engine: str, name: str) -> None:
    head = settled(make_head(engine, build(name)))
    x, labels = torch.randn(40, 4), torch.arange(40) % 5
    labels[[0, 9]] = -1
    loss, stats = head(x, labels, return_stats=True)
    assert torch.equal(loss, head(x, labels))
    cos_BN = head.cosines(x).detach()
    valid_B = labels >= 0
    torch.testing.assert_close(stats.target_cosine[valid_B], cos_BN[valid_B, labels[valid_B]])
    assert stats.target_cosine[~valid_B].isnan().all()
    assert torch.equal(stats.predicted, cos_BN.argmax(dim=1))
    assert torch.equal(stats.correct, (cos_BN.argmax(dim=1) == labels) & valid_B)
    assert torch.equal(stats.valid, valid_B)
    assert stats.dropped_mass == 0.0
    assert not stats.target_cosine.requires_grad


@every_engine
def test_perfect_embeddings_count_as_correct_even_under_a_margin_that_hides_it(engine: str) -> None:
    """Ten neighbours a few degrees apart: with the margin on the target every other class has a larger logit."""
    head = make_head(engine, arcwise.ArcFace(1.5), num_classes=10, dim=2, scale=16.0)
    with torch.no_grad():
        turn = torch.linspace(0, 0.5, 10)
        head.weight.copy_(torch.stack([turn.cos(), turn.sin()], dim=1))
    x, labels = 5 * head.weight.detach(), torch.arange(10)
    _, stats = head(x, labels, return_stats=True)
    assert stats.accuracy() == 1.0
    assert (head.logits(x, labels).argmax(dim=1) == labels).float().mean() == 0.0


@every_engine
@pytest.mark.parametrize("frozen", ["embeddings", "centres"])
def test_either_side_may_be_frozen(engine: str, frozen: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(6, 4), torch.arange(6) % 5
    expected = run(head, x, labels)
    head.zero_grad()
    x.requires_grad_(frozen == "centres")
    head.weight.requires_grad_(frozen == "embeddings")
    head(x, labels).backward()
    assert (x.grad is None) == (frozen == "embeddings")
    assert (head.weight.grad is None) == (frozen == "centres")
    if x.grad is not None:
        torch.testing.assert_close(x.grad, expected.dx)
    if head.weight.grad is not None:
        torch.testing.assert_close(head.weight.grad, expected.dw)


@every_engine
def test_a_gradient_from_above_multiplies_all_gradients(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(6, 4), torch.arange(6) % 5
    once = run(head, x, labels)
    head.zero_grad()
    x.requires_grad_()
    (3 * head(x, labels)).backward()
    assert x.grad is not None
    assert head.weight.grad is not None
    torch.testing.assert_close(x.grad, 3 * once.dx)
    torch.testing.assert_close(head.weight.grad, 3 * once.dw)


@every_engine
def test_gradients_accumulate_over_batches(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(6, 4), torch.arange(6) % 5
    parts = [run(head, x[:3], labels[:3]).dw, run(head, x[3:], labels[3:]).dw]
    head.zero_grad()
    for rows in (slice(0, 3), slice(3, 6)):
        head(x[rows], labels[rows]).backward()
    assert head.weight.grad is not None
    torch.testing.assert_close(head.weight.grad, parts[0] + parts[1])


@every_engine
def test_a_batch_that_is_not_contiguous_gives_the_same(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(4, 6).T, (torch.arange(12) % 5)[::2]
    ours, expected = run(head, x, labels), run(head, x.contiguous(), labels.contiguous())
    torch.testing.assert_close(ours.loss, expected.loss)
    torch.testing.assert_close(ours.dx, expected.dx)


@every_engine
def test_the_same_call_gives_the_same_bits(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5), num_classes=100, dim=32)
    x, labels = torch.randn(50, 32), torch.randint(0, 100, (50,))
    first, second = run(head, x, labels), run(head, x, labels)
    assert torch.equal(first.loss, second.loss)
    assert torch.equal(first.dx, second.dx)
    assert torch.equal(first.dw, second.dw)


@every_engine
def test_without_gradients_the_loss_is_the_same(engine: str) -> None:
    head = make_head(engine, arcwise.ArcFace(0.5))
    x, labels = torch.randn(6, 4), torch.arange(6) % 5
    expected = run(head, x, labels).loss
    with torch.no_grad():
        assert torch.equal(head(x, labels), expected)
    with torch.inference_mode():
        assert torch.equal(head(x, labels), expected)


@every_engine
def test_a_head_says_which_engine_it_uses(engine: str) -> None:
    assert make_head(engine, arcwise.ArcFace(0.5)).engine == engine
    assert MarginHead(4, 3, scale=8.0, engine="auto").engine in ENGINES[1:]

"""What margins keep and learn from batch to batch, and what heads count: when it changes, and that it comes back from a file."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
import torch
from definition_cases import CASES, NUM_CLASSES, batch_for, case_head
from margin_cases import head_of
from naive_losses import adacos_scale, adaface_statistics, curricularface_t, samples_of
from safetensors.torch import load_file, save_file
from torch import Tensor

from arcwise.heads import MarginHead
from arcwise.heads.margin import ENGINES
from arcwise.margins import names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_margin = pytest.mark.parametrize("name", names())
one_centre_or_three = pytest.mark.parametrize("centers_per_class", [1, 3])


def kept(head: MarginHead) -> dict[str, Tensor]:
    """Everything that a forward may change."""
    return {name: value.detach().clone() for name, value in head.named_buffers()}


def assert_unchanged(head: MarginHead, before: dict[str, Tensor]) -> None:
    for name, value in head.named_buffers():
        assert torch.equal(value, before[name]), name


def seen_a_batch(name: str, engine: str, centers_per_class: int) -> MarginHead:
    head = head_of(name, engine=engine, centers_per_class=centers_per_class)
    head(3 * torch.randn(9, 4), torch.arange(9) % 6)
    return head


@every_engine
@one_centre_or_three
@pytest.mark.parametrize("name", ["adacos", "adaface", "curricularface", "long-tail"])
def test_it_changes_over_batches_as_the_paper_says(engine: str, centers_per_class: int, name: str) -> None:
    head = case_head(CASES.get(name, CASES["long-tail counted"]), engine, centers_per_class=centers_per_class)
    s = math.sqrt(2) * math.log(NUM_CLASSES - 1)
    statistics, t, counts = (0.0, 1.0, 0), 0.0, [0] * NUM_CLASSES
    for seed in range(6):
        x, labels = batch_for(head, seed)
        head(x, labels)
        batch = samples_of(x.double(), head.weight.detach().double(), labels, centers_per_class)
        s, t, statistics = adacos_scale(s, batch), curricularface_t(t, batch), adaface_statistics(*statistics, batch)
        counts = [count + labels.tolist().count(j) for j, count in enumerate(counts)]
        expected: dict[str, list[object]] = {
            "adacos": [s],
            "adaface": [*statistics],
            "curricularface": [t],
            "long-tail": [counts, True],
        }
        ours = [value.tolist() for value in head.margin_state.values()]
        assert ours == [pytest.approx(value, rel=1e-4) for value in expected[name]]


@every_engine
@every_margin
@one_centre_or_three
def test_evaluation_and_no_grad_leave_it_alone(engine: str, name: str, centers_per_class: int) -> None:
    head = seen_a_batch(name, engine, centers_per_class)
    before = kept(head)
    x, labels = 9 * torch.randn(9, 4), torch.arange(9) % 6
    with torch.no_grad():
        head(x, labels)
    head.eval()
    head(x.requires_grad_(), labels).backward()
    head.train()
    head.logits(x, labels)
    head.cosines(x)
    assert_unchanged(head, before)


@every_engine
@every_margin
@one_centre_or_three
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_batch_that_is_not_finite_leaves_it_alone(
    engine: str, name: str, centers_per_class: int, value: float
) -> None:
    x, labels = torch.randn(9, 4), torch.arange(9) % 6
    x[4, 1] = value
    for head in (head_of(name, engine=engine, centers_per_class=centers_per_class), seen_a_batch(name, engine, 3)):
        before = kept(head)
        head(x, labels)
        assert_unchanged(head, before)
    with torch.no_grad():
        head.weight[3] = value
    head(torch.randn(9, 4), labels)
    assert_unchanged(head, before)


@every_engine
@every_margin
@one_centre_or_three
@pytest.mark.parametrize("batch", [0, 1, 5])
def test_a_batch_without_labels_leaves_it_alone(engine: str, name: str, centers_per_class: int, batch: int) -> None:
    for head in (head_of(name, engine=engine), seen_a_batch(name, engine, centers_per_class)):
        before = kept(head)
        head(torch.randn(batch, 4), torch.full((batch,), -1))
        assert_unchanged(head, before)


@every_engine
@every_margin
@one_centre_or_three
def test_ignored_samples_do_not_count(engine: str, name: str, centers_per_class: int) -> None:
    """Whatever they are: even NaN."""
    one = seen_a_batch(name, engine, centers_per_class)
    other = head_of(name, engine=engine, centers_per_class=centers_per_class)
    other.load_state_dict(one.state_dict())
    x, labels = 3 * torch.randn(7, 4), torch.arange(7) % 6
    torch.manual_seed(5)
    one(x, labels)
    torch.manual_seed(5)
    other(
        torch.cat([x, torch.full((2, 4), torch.nan), 99 * torch.ones(1, 4)]), torch.cat([labels, torch.full((3,), -1)])
    )
    for name, value in one.named_buffers():
        torch.testing.assert_close(value, other.get_buffer(name))


def train(head: MarginHead, seeds: range) -> list[Tensor]:
    """A few steps of gradient descent on batches and draws that the seed decides; the losses."""
    losses = []
    for seed in seeds:
        torch.manual_seed(seed)
        loss = head(3 * torch.randn(9, 4), torch.randint(-1, 6, (9,)))
        losses.append(loss.detach())
        gradients = torch.autograd.grad(loss, list(head.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(head.parameters(), gradients, strict=True):
                parameter.sub_(0.5 * gradient)
    return losses


@every_engine
@every_margin
@one_centre_or_three
def test_training_goes_on_from_a_file_bit_by_bit(
    engine: str, name: str, centers_per_class: int, tmp_path: Path
) -> None:
    head = head_of(name, engine=engine, centers_per_class=centers_per_class, warmup_steps=6)
    train(head, range(4))
    save_file(head.state_dict(), tmp_path / "head.safetensors")
    buffer = io.BytesIO()
    torch.save(head.state_dict(), buffer)
    buffer.seek(0)
    restored = []
    for state in (load_file(tmp_path / "head.safetensors"), torch.load(buffer, weights_only=True)):
        again = head_of(name, engine=engine, centers_per_class=centers_per_class, warmup_steps=6)
        train(again, range(20, 22))  # it has a past of its own, which must go
        again.load_state_dict(state)
        for key, value in head.named_buffers():
            assert torch.equal(again.get_buffer(key), value), key
        restored.append(again)
    expected = train(head, range(4, 9))
    for again in restored:
        assert all(torch.equal(a, b) for a, b in zip(train(again, range(4, 9)), expected, strict=True))
        for key, value in head.state_dict().items():
            assert torch.equal(again.state_dict()[key], value), key


@every_engine
@every_margin
@one_centre_or_three
def test_resetting_a_head_forgets_it(engine: str, name: str, centers_per_class: int) -> None:
    head = head_of(name, engine=engine, centers_per_class=centers_per_class)
    fresh = {key: value.detach().clone() for key, value in head.state_dict().items() if key != "weight"}
    train(head, range(3))
    head.reset_parameters()
    for key, value in fresh.items():
        assert torch.equal(head.state_dict()[key], value), key


@every_engine
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["adacos", "adaface", "curricularface", "long-tail"])
def test_it_stays_precise_in_a_head_of_half_precision(engine: str, name: str, dtype: torch.dtype) -> None:
    """A hundredth of a difference would be lost to bfloat16, and so would one sample among 256."""
    narrow = head_of(name, engine=engine, centers_per_class=3).to(dtype)
    wide = head_of(name, engine=engine, centers_per_class=3)
    with torch.no_grad():
        wide.weight.copy_(narrow.weight)
    for seed in range(20):
        torch.manual_seed(seed)
        x, labels = 3 * torch.randn(90, 4).to(dtype), torch.arange(90) % 6
        x += narrow.weight.detach()[3 * labels]
        narrow(x, labels)
        wide(x, labels)
    for key, value in wide.named_buffers():
        torch.testing.assert_close(narrow.get_buffer(key), value)
    assert narrow.weight.dtype == dtype
    assert all(value.dtype == torch.float64 for value in narrow.double().buffers() if value.is_floating_point())

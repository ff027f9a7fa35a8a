from __future__ import annotations

import pytest
import torch
from margin_cases import head_of

import arcwise
from arcwise.heads import MarginHead
from arcwise.margins import build, names

X, LABELS = torch.linspace(-1, 1, 28).sin().view(7, 4), torch.arange(7) % 6


def warming_head(steps: int = 4) -> MarginHead:
    return MarginHead(4, 6, arcwise.ArcFace(0.5), 12.0, warmup_steps=steps)


def without_warmup(head: MarginHead, margin: arcwise.Margin) -> MarginHead:
    other = MarginHead(4, 6, margin, head.scale)
    other.weight = head.weight
    return other


def test_the_margin_grows_from_none_to_full_over_the_steps() -> None:
    head = warming_head(4)
    for step in range(7):
        fraction = min(1.0, step / 4)
        assert head.margin_fraction == fraction
        expected = without_warmup(head, arcwise.ArcFace(0.5).at(fraction))(X, LABELS)
        assert torch.equal(head(X, LABELS), expected)


@pytest.mark.parametrize(
    "name", [name for name in names() if build(name).becomes_norm_softmax and not build(name).owns_scale]
)
def test_the_first_step_is_norm_softmax_whatever_the_margin(name: str) -> None:
    head = head_of(name, warmup_steps=10)
    expected = without_warmup(head, arcwise.NormSoftmax())(X, LABELS)
    torch.testing.assert_close(head(X, LABELS), expected)


def test_logits_show_the_margin_that_is_in_force() -> None:
    head = warming_head(4)
    torch.testing.assert_close(head.logits(X, LABELS), head.logits(X))
    for _ in range(4):
        head(X, LABELS)
    expected = without_warmup(head, arcwise.ArcFace(0.5)).logits(X, LABELS)
    assert torch.equal(head.logits(X, LABELS), expected)


def test_only_training_forwards_with_gradients_count() -> None:
    head = warming_head(4)
    head.eval()
    head(X, LABELS)
    head.train()
    with torch.no_grad():
        head(X, LABELS)
    with torch.inference_mode():
        head(X, LABELS)
    head.logits(X, LABELS)
    head.cosines(X)
    assert head.margin_fraction == 0
    head(X, LABELS)
    assert head.margin_fraction == 1 / 4


def test_a_refused_batch_does_not_count() -> None:
    head = warming_head(4)
    with pytest.raises(arcwise.ArcwiseError):
        head(X, LABELS + 6)
    assert head.margin_fraction == 0


def test_without_a_warm_up_the_margin_is_whole_from_the_start() -> None:
    head = MarginHead(4, 6, arcwise.ArcFace(0.5), 12.0)
    assert head.margin_fraction == 1
    head(X, LABELS)
    assert head.margin_fraction == 1


def test_a_resumed_warm_up_goes_on_where_it_stopped() -> None:
    straight, stopped = warming_head(6), warming_head(6)
    stopped.load_state_dict(straight.state_dict())
    for _ in range(3):
        straight(X, LABELS)
        stopped(X, LABELS)
    resumed = warming_head(6)
    resumed.load_state_dict(stopped.state_dict())
    for _ in range(5):
        assert torch.equal(straight(X, LABELS), resumed(X, LABELS))
    assert resumed.margin_fraction == 1


def test_a_finished_warm_up_loads_as_finished_and_a_fresh_one_as_fresh() -> None:
    done, fresh = warming_head(2), warming_head(2)
    for _ in range(2):
        done(X, LABELS)
    state = fresh.state_dict()
    fresh.load_state_dict(done.state_dict())
    assert fresh.margin_fraction == 1
    done.load_state_dict(state)
    assert done.margin_fraction == 0
    assert torch.equal(done(X, LABELS), without_warmup(done, arcwise.ArcFace(0.0))(X, LABELS))

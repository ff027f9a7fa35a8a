from __future__ import annotations

import copy
import io
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from margin_cases import FUNCTIONS_OF_THE_ANGLE, head_of, settled
from safetensors.torch import load_file, save_file

import arcwise
from arcwise.errors import ConfigError
from arcwise.heads import Head, MarginHead
from arcwise.margins import build, names

every_margin = pytest.mark.parametrize("name", names())


def is_softmax_alone(name: str) -> bool:
    """Whether the loss is a softmax and nothing is added to it."""
    return build(name).reduction == "softmax" and name != "magface"


def test_the_call_of_the_readme_works() -> None:
    head = arcwise.MarginHead(dim=8, num_classes=10, margin=arcwise.ArcFace(0.5), scale=16.0)
    loss = head(torch.randn(4, 8), torch.tensor([0, 3, 9, -1]))
    assert loss.shape == ()
    loss.backward()
    assert head.weight.grad is not None


def test_arcface_is_the_margin_where_none_is_named() -> None:
    assert MarginHead(8, 10, scale=16.0).margin == arcwise.ArcFace(0.5)


@pytest.mark.parametrize(
    ("num_classes", "scale", "norm"), [(5, 16.0, 8.0), (10, 9.0, 6.0), (1000, 16.0, 0.8), (40_000, 64.0, 0.506)]
)
def test_centres_start_longer_for_a_larger_scale_and_shorter_for_more_classes(
    num_classes: int, scale: float, norm: float
) -> None:
    head = MarginHead(64, num_classes, scale=scale)
    assert head.weight.norm(dim=1).mean().item() == pytest.approx(norm, rel=0.15)


def test_centres_start_in_all_directions_and_elsewhere_each_time() -> None:
    head = MarginHead(64, 500, scale=16.0)
    assert head.weight.shape == (500, 64)
    directions = torch.nn.functional.normalize(head.weight.detach())
    assert directions.mean(dim=0).norm().item() < 0.15
    before = head.weight.detach().clone()
    head.reset_parameters()
    assert not torch.equal(head.weight, before)


def test_a_step_turns_the_centres_of_many_classes_as_far_as_those_of_a_few() -> None:
    """Averaged over the classes, for batches that hold each class once, so that what is seen does not depend on their number."""
    turns = []
    for num_classes in (10, 1000):
        head = MarginHead(64, num_classes, arcwise.NormSoftmax(), scale=16.0)
        before = head.weight.detach().clone()
        labels = torch.arange(num_classes)
        head(torch.randn(num_classes, 64), labels).backward()
        assert head.weight.grad is not None
        after = before - head.weight.grad
        turns.append(torch.nn.functional.cosine_similarity(before, after).acos().mean().item())
    assert turns[0] == pytest.approx(turns[1], rel=0.25)


@pytest.mark.parametrize("name", FUNCTIONS_OF_THE_ANGLE)
def test_logits_are_the_scaled_cosines_and_feel_the_margin_only_where_labels_are_given(name: str) -> None:
    head = MarginHead(4, 6, build(name), 12.0)
    x, labels = torch.randn(7, 4), torch.tensor([0, 1, 2, 3, 4, 5, -1])
    cos_BN = head.cosines(x)
    torch.testing.assert_close(head.logits(x), 12.0 * cos_BN)
    expected = (12.0 * cos_BN).detach().clone()
    for i, y in enumerate(labels.tolist()):
        if y >= 0:
            expected[i, y] = 12.0 * head.margin.target(cos_BN[i, y].detach())
    torch.testing.assert_close(head.logits(x, labels).detach(), expected)


@every_margin
@pytest.mark.parametrize("filter_above", [1.0, -0.5])
def test_a_row_labelled_minus_one_keeps_its_plain_logits(name: str, filter_above: float) -> None:
    head = settled(head_of(name, filter_above=filter_above))
    x, labels = torch.randn(7, 4), torch.tensor([0, -1, 2, -1, 4, 5, -1])
    given, plain = head.logits(x, labels), head.logits(x) + head.margin.offset(head.margin_state)
    torch.testing.assert_close(given[labels < 0], plain[labels < 0])


@pytest.mark.parametrize("name", [name for name in names() if is_softmax_alone(name)])
def test_the_loss_is_the_cross_entropy_of_the_logits_with_the_margin(name: str) -> None:
    head = settled(head_of(name))
    x, labels = torch.randn(7, 4), torch.tensor([0, 1, 2, 3, 4, 5, -1])
    expected = torch.nn.functional.cross_entropy(head.logits(x, labels), labels, ignore_index=-1)
    torch.testing.assert_close(head(x, labels), expected)


def test_cosines_are_between_minus_one_and_one_and_exact_on_a_centre() -> None:
    head = MarginHead(16, 20, scale=8.0)
    cos = head.cosines(5 * head.weight)
    assert cos.abs().max() <= 1 + 1e-6
    torch.testing.assert_close(cos.diagonal(), torch.ones(20))


def test_auto_chooses_the_scale_and_prints_why(capsys: pytest.CaptureFixture[str]) -> None:
    head = MarginHead(3, 10, arcwise.ArcFace(0.5), "auto")
    printed = capsys.readouterr()
    assert head.scale == pytest.approx(12.6, abs=0.05)
    assert printed.out == ""
    assert printed.err == (
        "arcwise: scale 12.6: 10 centres in 3 dimensions can stand 66.2° apart, with 4 nearest neighbours;"
        " an embedding on its own centre then gets the probability 0.99 under the margin.\n"
    )


def test_auto_is_what_a_head_does_when_it_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert MarginHead(128, 10).scale == pytest.approx(6.9, abs=0.05)
    assert MarginHead(2, 10).scale == pytest.approx(77, abs=0.5)
    assert MarginHead(2, 2).scale == pytest.approx(math.log(99) / (1 + math.cos(0.5)))
    assert capsys.readouterr().err.count("arcwise: scale") == 3


def test_auto_reduces_a_margin_that_cannot_be_met_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    head = MarginHead(2, 100, arcwise.ArcFace(0.5))
    assert isinstance(head.margin, arcwise.ArcFace)
    assert head.margin.m == pytest.approx(math.radians(1.8), abs=1e-6)
    assert "The margin was reduced to 6 % of ArcFace(m=0.5" in capsys.readouterr().err


def test_a_scale_that_is_given_is_taken_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    head = MarginHead(2, 100, arcwise.ArcFace(0.5), 64)
    assert head.scale == 64.0
    assert head.margin == arcwise.ArcFace(0.5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 1}, "dim must be at least 2, since an angle needs two dimensions; got 1."),
        ({"num_classes": 1}, "num_classes must be at least 2; got 1."),
        ({"scale": 0.0}, 'scale must be a positive number or "auto"; got 0.0.'),
        ({"scale": -64}, 'scale must be a positive number or "auto"; got -64.'),
        ({"scale": math.nan}, 'scale must be a positive number or "auto"; got nan.'),
        ({"scale": math.inf}, 'scale must be a positive number or "auto"; got inf.'),
        ({"scale": "automatic"}, "scale must be a positive number or \"auto\"; got 'automatic'."),
        ({"margin": 0.5}, "margin must be an arcwise margin such as ArcFace(0.5); got 0.5."),
        ({"margin": "arcface"}, "margin must be an arcwise margin such as ArcFace(0.5); got 'arcface'."),
        ({"warmup_steps": -1}, "warmup_steps must be 0 or more; got -1."),
        ({"warmup_steps": 2.5}, "warmup_steps must be a whole number; got 2.5."),
        ({"dim": "8"}, "dim must be a whole number; got '8'."),
        ({"num_classes": 10.0}, "num_classes must be a whole number; got 10.0."),
        ({"centers_per_class": True}, "centers_per_class must be a whole number; got True."),
        ({"filter_above": None}, "filter_above must be a cosine in (−1, 1], where 1 filters nothing; got None."),
        ({"filter_above": True}, "filter_above must be a cosine in (−1, 1], where 1 filters nothing; got True."),
        ({"scale": True}, 'scale must be a positive number or "auto"; got True.'),
        ({"scale": 1e308}, 'scale must be a positive number or "auto"; got 1e+308.'),
        ({"margin": arcwise.ArcFace(True)}, "arcface's m must be a number, such as 0.5; got True."),
        ({"class_counts": [1, 1, 1]}, "class_counts must be a tensor; got list. Pass torch.as_tensor(class_counts)."),
        ({"class_counts": torch.full((3,), torch.nan)}, "class_counts must be 0 or more and finite; got nan."),
        ({"class_counts": torch.full((3,), -1.0)}, "class_counts must be 0 or more and finite; got -1."),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        MarginHead(**{"dim": 4, "num_classes": 3, "scale": 8.0, **arguments})
    assert str(error.value) == message


def test_an_unknown_engine_says_did_you_mean() -> None:
    with pytest.raises(ConfigError, match=r"^there is no engine 'referense'\. Did you mean reference\? Known: auto, "):
        MarginHead(4, 3, scale=8.0, engine="referense")


@every_margin
def test_the_state_survives_safetensors_and_a_load_that_unpickles_nothing(name: str, tmp_path: Path) -> None:
    head, x, labels = head_of(name, warmup_steps=9), torch.randn(7, 4), torch.arange(7) % 6
    for _ in range(4):
        head(x, labels)
    save_file(head.state_dict(), tmp_path / "head.safetensors")
    buffer = io.BytesIO()
    torch.save(head.state_dict(), buffer)
    buffer.seek(0)
    for state in (load_file(tmp_path / "head.safetensors"), torch.load(buffer, weights_only=True)):
        again = head_of(name, warmup_steps=9)
        again.load_state_dict(state)
        assert again.margin_fraction == head.margin_fraction == 4 / 9
        assert torch.equal(again.eval()(x, labels), copy.deepcopy(head).eval()(x, labels))


def test_a_copy_goes_its_own_way() -> None:
    head, x, labels = MarginHead(4, 6, scale=12.0, warmup_steps=3), torch.randn(7, 4), torch.arange(7) % 6
    twin = copy.deepcopy(head)
    for _ in range(3):
        head(x, labels).backward()
    with torch.no_grad():
        head.weight.zero_()
    assert head.margin_fraction == 1
    assert twin.margin_fraction == 0
    assert twin.weight.abs().min() > 0
    assert twin.weight.grad is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_a_head_may_be_moved_to_another_dtype(dtype: torch.dtype) -> None:
    head = MarginHead(4, 6, scale=12.0).to(dtype)
    x = torch.randn(7, 4).to(dtype).requires_grad_()
    loss = head(x, torch.arange(7) % 6)
    loss.backward()
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    assert head.weight.dtype == dtype
    assert head.weight.grad is not None
    assert head.weight.grad.dtype == dtype
    assert head.double()(x.double(), torch.arange(7) % 6).dtype == torch.float64


def test_a_head_can_be_built_without_memory_and_filled_later() -> None:
    with torch.device("meta"):
        head = MarginHead(4, 6, scale=12.0)
    assert head.weight.device.type == "meta"
    head.to_empty(device="cpu").reset_parameters()
    assert head(torch.randn(2, 4), torch.tensor([0, 5])).isfinite()


def test_a_head_describes_itself() -> None:
    text = repr(MarginHead(4, 6, arcwise.CosFace(0.2), 12.0, warmup_steps=5))
    assert text == "MarginHead(dim=4, num_classes=6, margin=CosFace(m=0.2), scale=12, warmup_steps=5, engine=reference)"
    assert "warmup" not in repr(MarginHead(4, 6, scale=12.0))


def gap_after_training(margin: arcwise.Margin) -> float:
    """How much nearer, in radians, free embeddings end up to their own centre than to any other: the smallest such gap."""
    torch.manual_seed(0)
    head = MarginHead(8, 4, margin, 16.0)
    x, labels = torch.nn.Parameter(torch.randn(40, 8)), torch.arange(40) % 4
    optimiser = torch.optim.Adam([x, head.weight], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        head(x, labels).backward()
        optimiser.step()
    angle_BN = head.cosines(x).detach().clamp(-1, 1).acos()
    own_B1 = angle_BN.gather(1, labels.unsqueeze(1))
    others_BN = angle_BN.scatter(1, labels.unsqueeze(1), torch.inf)
    return float((others_BN.amin(dim=1) - own_B1.squeeze(1)).min())


def test_training_leaves_the_gap_in_angle_that_the_margin_asks_for() -> None:
    gaps = [gap_after_training(arcwise.ArcFace(m)) for m in (0.0, 0.5, 1.0)]
    assert gaps[1] > 0.5
    assert gaps[2] > 1.0
    assert gaps[0] < gaps[1] < gaps[2]


def test_margin_heads_are_heads() -> None:
    assert issubclass(MarginHead, Head)
    with pytest.raises(TypeError, match="abstract"):
        Head(4, 3)  # type: ignore[abstract]

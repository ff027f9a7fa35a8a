from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from arcwise import ArcFace, MarginHead, SoftmaxHead, backbones
from arcwise.training.config import TrainConfig
from arcwise.training.optimiser import learning_rate, make_optimiser, set_learning_rate

shares = st.floats(0, 1)
totals = st.integers(1, 10_000)


@given(totals, shares, st.data())
def test_the_rate_is_positive_and_never_above_its_peak(total: int, share: float, data: st.DataObject) -> None:
    step = data.draw(st.integers(0, total - 1))
    assert 0 < learning_rate(step, total, TrainConfig(1, lr=0.3, warmup_share=share)) <= 0.3 * (1 + 1e-12)


@given(totals, shares)
def test_the_rate_rises_to_one_peak_and_falls_from_there(total: int, share: float) -> None:
    total = min(total, 300)
    rates = [learning_rate(step, total, TrainConfig(1, lr=1.0, warmup_share=share)) for step in range(total)]
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert abs(peak - share * total) <= 1


def test_the_rate_at_the_ends_and_at_the_peak() -> None:
    config = TrainConfig(1, lr=0.5, warmup_share=0.2)
    rates = [learning_rate(step, 100, config) for step in range(100)]
    assert rates[0] == pytest.approx(0.5 / 21)
    assert rates[20] == 0.5
    assert rates[99] == pytest.approx(0.5 / 80)
    assert learning_rate(100, 100, config) == 0
    assert learning_rate(0, 100, TrainConfig(1, lr=0.5, warmup_share=0.0)) == 0.5
    assert learning_rate(99, 100, TrainConfig(1, lr=0.5, warmup_share=1.0)) == pytest.approx(0.5 * 100 / 101)


@pytest.mark.parametrize("name", ["sgd", "adamw"])
@pytest.mark.parametrize("head", [SoftmaxHead(3, 10), MarginHead(3, 10, ArcFace(0.3), scale=8.0)])
def test_only_the_matrices_of_the_backbone_are_decayed(name: str, head: nn.Module) -> None:
    backbone = backbones.build("vgg8", shape=(1, 8, 8), dim=3)
    config = TrainConfig(1, optimiser="adamw" if name == "adamw" else "sgd", weight_decay=0.1)
    optimiser = make_optimiser((backbone, head), config)
    decay = {id(p): group["weight_decay"] for group in optimiser.param_groups for p in group["params"]}
    assert len(decay) == len([*backbone.parameters(), *head.parameters()])
    for parameter in head.parameters():
        assert decay[id(parameter)] == 0
    for module in backbone.modules():
        for key, parameter in module.named_parameters(recurse=False):
            is_matrix = isinstance(module, nn.Conv2d | nn.Linear) and key == "weight"
            assert decay[id(parameter)] == (0.1 if is_matrix else 0), (module, key)


def test_a_step_without_gradient_shrinks_the_matrices_and_nothing_else() -> None:
    backbone, head = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), SoftmaxHead(3, 5)
    optimiser = make_optimiser((backbone, head), TrainConfig(1, lr=0.1, weight_decay=0.5, momentum=0.0))
    parameters = {**dict(backbone.named_parameters()), "centres": head.weight, "bias": head.bias}
    before = {}
    for name, parameter in parameters.items():
        assert parameter is not None
        before[name] = parameter.detach().clone()
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    for name, parameter in parameters.items():
        assert parameter is not None
        expected = before[name] * 0.95 if name == "0.weight" else before[name]
        torch.testing.assert_close(parameter.detach(), expected)


def test_a_backbone_without_parameters_can_be_trained_under_a_head() -> None:
    optimiser = make_optimiser((nn.Identity(), SoftmaxHead(3, 5)), TrainConfig(1))
    set_learning_rate(optimiser, 0.25)
    assert [group["lr"] for group in optimiser.param_groups] == [0.25]

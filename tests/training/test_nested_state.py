from __future__ import annotations

import copy
import json
import math
from collections import Counter, OrderedDict
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from arcwise.errors import CheckpointError
from arcwise.training.nested_state import flatten_state, unflatten_state


def there_and_back(value: Any) -> Any:
    tensors, encoded = flatten_state("x", value)
    return unflatten_state(json.loads(json.dumps(encoded)), tensors)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.dictionaries(st.sampled_from(["tensor", "dict", "tuple", "counter", "strides"]), inner)
    ),
    max_leaves=20,
)


@given(values)
def test_any_nested_value_comes_back_exactly_through_json(value: Any) -> None:
    assert same(there_and_back(value), value)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last),
        torch.randn(4, 1, 3, 3).to(memory_format=torch.channels_last),
        torch.tensor(7),
        torch.empty(0, 3),
        torch.tensor([1.5, math.nan, -math.inf], dtype=torch.bfloat16).nan_to_num(),
        torch.tensor([True, False]),
        torch.get_rng_state(),
    ],
    ids=["rows", "transposed", "channels_last", "channels_last one channel", "0-d", "empty", "bf16", "bool", "rng"],
)
def test_a_tensor_comes_back_with_its_type_values_and_memory_layout(tensor: Tensor) -> None:
    assert same(there_and_back({"t": tensor})["t"], tensor)


def test_a_tensor_with_gaps_or_overlaps_comes_back_row_by_row() -> None:
    for tensor in (torch.arange(10)[::2], torch.ones(1).expand(4)):
        back = there_and_back(tensor)
        assert torch.equal(back, tensor)
        assert back.is_contiguous()


def test_what_comes_back_is_a_copy() -> None:
    tensors, encoded = flatten_state("x", [torch.zeros(2)])
    unflatten_state(encoded, tensors)[0].fill_(1)
    assert torch.equal(tensors["x.0"], torch.zeros(2))


def test_keys_that_would_give_two_tensors_one_name_are_kept_apart() -> None:
    value = {"a": {"b": torch.tensor(1), 0: torch.tensor(2), "0": torch.tensor(3)}, "a.b": torch.tensor(4)}
    assert same(there_and_back(value), value)


def test_without_a_prefix_tensors_are_named_by_their_keys() -> None:
    tensors, _ = flatten_state("", {"head": {"weight": torch.ones(1)}, "all": [torch.ones(1)]})
    assert set(tensors) == {"head.weight", "all.0"}


def test_a_counter_stays_a_counter_and_an_ordered_dict_becomes_a_dict() -> None:
    assert same(there_and_back(Counter({30: 1, 60: 2})), Counter({30: 1, 60: 2}))
    assert same(there_and_back(OrderedDict(b=1, a=2)), {"b": 1, "a": 2})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": {1.5: 0}}, r"x\.a has the key 1\.5"),
        ({True: 0}, "x has the key True"),
        ([print], r"x\.0 is of type builtin_function_or_method, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named_by_its_place(value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        flatten_state("x", value)


def test_a_missing_tensor_is_named() -> None:
    _, encoded = flatten_state("optimizer", {"momentum": torch.ones(1)})
    with pytest.raises(CheckpointError, match=r"lacks the tensor optimizer\.momentum"):
        unflatten_state(encoded, {})


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 2))
    return layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("schedule", ["cosine", "steps", "onecycle", "sequence"])
def test_training_resumed_from_a_flattened_state_gives_the_same_bits(kind: str, schedule: str) -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
        model = network()
        optimizer: torch.optim.Optimizer
        if kind == "sgd":
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        else:
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, amsgrad=True)
        lr: Any = torch.optim.lr_scheduler
        scheduler: Any = {
            "cosine": lambda: lr.CosineAnnealingLR(optimizer, 20),
            "steps": lambda: lr.MultiStepLR(optimizer, [3, 6]),
            "onecycle": lambda: lr.OneCycleLR(optimizer, 0.2, total_steps=20),
            "sequence": lambda: lr.SequentialLR(
                optimizer, [lr.LinearLR(optimizer, 0.1, 1.0, 4), lr.CosineAnnealingLR(optimizer, 10)], [4]
            ),
        }[schedule]()
        return model, optimizer, scheduler

    def go_on(model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, steps: range) -> None:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            x = torch.randn(8, 3, 4, 4, generator=generator).to(memory_format=torch.channels_last)
            optimizer.zero_grad()
            model(nn.functional.pad(x, (1, 1, 1, 1))).square().mean().backward()
            optimizer.step()
            scheduler.step()

    straight = make()
    go_on(*straight, range(5))
    pieces = [copy.deepcopy(flatten_state(f"part{i}", part.state_dict())) for i, part in enumerate(straight)]
    go_on(*straight, range(5, 9))

    resumed = make()
    for part, (tensors, encoded) in zip(resumed, pieces, strict=True):
        part.load_state_dict(unflatten_state(json.loads(json.dumps(encoded)), tensors))
    go_on(*resumed, range(5, 9))
    for left, right in zip(straight, resumed, strict=True):
        assert same(flatten_state("x", left.state_dict())[0], flatten_state("x", right.state_dict())[0])
        assert flatten_state("x", left.state_dict())[1] == flatten_state("x", right.state_dict())[1]
    assert straight[0].get_parameter("0.weight").is_contiguous(memory_format=torch.channels_last)

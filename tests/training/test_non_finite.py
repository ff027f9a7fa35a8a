from __future__ import annotations

import copy
import math
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

from arcwise.heads import MarginHead, SoftmaxHead
from arcwise.margins import ArcFace
from arcwise.training.non_finite import first_non_finite


def network() -> nn.Sequential:
    torch.manual_seed(0)
    block = OrderedDict(
        conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), act=nn.ReLU(inplace=True), drop=nn.Dropout(0.5)
    )
    return nn.Sequential(
        OrderedDict(blocks=nn.Sequential(nn.Sequential(block)), pool=nn.Flatten(), out=nn.Linear(4 * 36, 5))
    )


def pictures() -> Tensor:
    return torch.randn(32, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_the_pictures_are_named_with_their_rows() -> None:
    inputs = pictures()
    inputs[3, 0, 0, 0], inputs[17, 2, 5, 5] = math.nan, -math.inf
    assert first_non_finite(network(), inputs) == "the pictures themselves (rows 3, 17 of the batch)"
    inputs[:] = math.nan
    assert (
        first_non_finite(network(), inputs) == "the pictures themselves (rows 0, 1, 2, 3, 4 and 27 more of the batch)"
    )


def test_rows_of_features_are_not_called_pictures() -> None:
    inputs = torch.randn(4, 6)
    inputs[1, 1] = math.nan
    assert first_non_finite(nn.Linear(6, 2), inputs) == "the inputs themselves (row 1 of the batch)"


def test_a_parameter_is_named_even_where_its_layer_hides_it() -> None:
    broken = network()
    with torch.no_grad():
        broken.get_parameter("blocks.0.norm.weight")[2] = math.nan
    assert first_non_finite(broken, pictures()) == "the parameter blocks.0.norm.weight"


def test_a_parameter_of_the_head_is_named_as_such() -> None:
    head = SoftmaxHead(5, 10)
    with torch.no_grad():
        head.weight[0, 0] = math.inf
    labels = torch.zeros(32, dtype=torch.long)
    assert first_non_finite(network(), pictures(), head=head, labels=labels) == "the parameter head.weight"


def test_the_layer_whose_output_overflows_first_is_named() -> None:
    broken = network()
    with torch.no_grad():
        broken.get_parameter("blocks.0.conv.weight").fill_(3e38)
    assert first_non_finite(broken, pictures()) == "the output of blocks.0.conv"


def test_running_statistics_are_named_in_eval_mode() -> None:
    broken = network().eval()
    broken.get_buffer("blocks.0.norm.running_mean")[1] = math.nan
    assert first_non_finite(broken, pictures()) == "the running statistics blocks.0.norm.running_mean"


def test_an_operation_between_layers_is_found_at_the_next_layer() -> None:
    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.second(torch.log(-self.first(inputs).abs()))  # type: ignore[no-any-return]

    assert first_non_finite(Between(), torch.ones(3, 4)) == "the input of second"


def test_an_operation_after_the_last_layer_is_the_networks_own_output() -> None:
    class After(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.only = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.only(inputs) / 0  # type: ignore[no-any-return]

    assert first_non_finite(After(), torch.ones(3, 4)) == "the output of the network"


def test_a_gradient_that_is_not_finite_under_a_finite_loss_is_named() -> None:
    class InfiniteSlope(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            zero: Tensor = self.layer(inputs) * 0
            return zero.sqrt() + 1

    where = first_non_finite(
        InfiniteSlope(), torch.ones(3, 4), head=SoftmaxHead(2, 2), labels=torch.zeros(3, dtype=torch.long)
    )
    assert where == "the gradient of layer.bias, while the loss is still finite"


def test_a_batch_that_is_fine_is_said_to_be_fine() -> None:
    labels = torch.arange(32) % 10
    where = first_non_finite(network(), pictures(), head=SoftmaxHead(5, 10), labels=labels)
    assert where == "a place that a second run of the same batch does not show (all its values are finite)"


@pytest.mark.parametrize("bad", [False, True])
def test_looking_changes_neither_weights_nor_statistics_nor_gradients_nor_randomness(bad: bool) -> None:
    model, head = network(), MarginHead(5, 10, ArcFace(0.5), scale=10.0, warmup_steps=100)
    inputs, labels = pictures(), torch.arange(32) % 10
    head(model(inputs), labels).backward()
    if bad:
        with torch.no_grad():
            model.get_parameter("blocks.0.conv.weight").fill_(3e38)
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    before = copy.deepcopy([model.state_dict(), head.state_dict()])
    random = torch.get_rng_state()
    first_non_finite(model, inputs, head=head, labels=labels)
    for saved, module in zip(before, (model, head), strict=True):
        assert all(torch.equal(saved[name], value) for name, value in module.state_dict().items())
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters(), strict=True) if p.grad is not None)
    assert torch.equal(random, torch.get_rng_state())
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in model.modules())

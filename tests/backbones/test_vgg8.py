from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from arcwise.backbones import VGG8


def plain(model: VGG8) -> nn.Sequential:
    """The same network layer by layer, as a tutorial writes it, sharing the layers of `model`."""
    layers: list[nn.Module] = []
    for block in model.blocks:
        conv1, norm1, conv2, norm2 = block.children()
        layers += [conv1, norm1, nn.ReLU(), conv2, norm2, nn.ReLU(), nn.MaxPool2d(2)]
    embedding = model.embedding
    return nn.Sequential(*layers, model.norm, model.dropout, nn.Flatten(), embedding.linear, embedding.norm)


def outcome(forward: nn.Module, model: VGG8, pictures: Tensor) -> tuple[Tensor, list[Tensor]]:
    model.zero_grad()
    torch.manual_seed(1)
    embeddings = forward(pictures)
    embeddings.square().mul(torch.arange(embeddings.numel()).view_as(embeddings)).sum().backward()
    return embeddings.detach(), [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 19, 16)])
def test_it_computes_what_the_plain_layers_compute(training: bool, shape: tuple[int, ...]) -> None:
    model = VGG8(shape, 3).train(training)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            # Negative scales too, as training may reach.
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    # A black border, as digits have, makes ties for the max-pool.
    pictures = nn.functional.pad(torch.randn(8, shape[0], shape[1] - 8, shape[2] - 8), (4, 4, 4, 4))
    found, found_gradients = outcome(model, model, pictures)
    expected, expected_gradients = outcome(plain(model), model, pictures)
    assert torch.equal(found, expected)
    assert len(found_gradients) == len(expected_gradients) == len(list(model.parameters()))
    for mine, theirs in zip(found_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5 * theirs.abs().max().item())


def test_it_has_the_widths_of_the_known_network() -> None:
    convolutions = [module for module in VGG8((1, 28, 28), 3).modules() if isinstance(module, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [
        (1, 16),
        (16, 16),
        (16, 32),
        (32, 32),
        (32, 64),
        (64, 64),
    ]

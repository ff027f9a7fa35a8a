from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from arcwise.backbones import VGG8, build, build_plain_vgg8


def outcome(model: nn.Module, pictures: Tensor) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Embeddings, gradients by name and running statistics by name, after one step forward and back with the same dropout."""
    torch.manual_seed(1)
    embeddings = model(pictures)
    (embeddings.square() * torch.arange(embeddings.numel()).view_as(embeddings)).sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return embeddings.detach(), gradients, dict(model.named_buffers())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 19, 16)])
def test_vgg8_computes_what_the_plain_order_of_its_layers_computes(training: bool, shape: tuple[int, ...]) -> None:
    plain = build_plain_vgg8(shape=shape, dim=3).train(training)
    for module in plain.modules():
        if isinstance(module, nn.BatchNorm2d):
            # Negative scales too, as training may reach.
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    model = build("vgg8", shape=shape, dim=3).train(training)
    model.load_state_dict(plain.state_dict())
    # An empty border, as digits have, makes ties for the max-pool.
    pictures = nn.functional.pad(torch.randn(8, shape[0], shape[1] - 8, shape[2] - 8), (4, 4, 4, 4))
    embeddings, gradients, buffers = outcome(model, pictures)
    expected, expected_gradients, expected_buffers = outcome(plain, pictures)
    assert torch.equal(embeddings, expected)
    assert gradients.keys() == expected_gradients.keys() == dict(model.named_parameters()).keys()
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-5, atol=1e-5 * gradient.abs().max().item())
    for name, buffer in expected_buffers.items():
        assert torch.equal(buffers[name], buffer)


def test_the_plain_form_is_no_backbone_of_its_own() -> None:
    assert isinstance(build_plain_vgg8(shape=(1, 28, 28), dim=2), VGG8)

from __future__ import annotations

import pytest
import torch
from torch import nn

from arcwise import backbones
from arcwise.errors import ConfigError

SHAPES: dict[str, list[tuple[int, ...]]] = {
    "vgg8": [(1, 28, 28), (1, 8, 8), (3, 32, 20)],
    "resnet18": [(3, 32, 32), (1, 16, 16), (4, 17, 24)],
    "small": [(3, 32, 32), (1, 8, 8), (2, 9, 13), (3, 64, 64)],
    "conv4": [(1, 28, 28), (1, 8, 8), (3, 56, 40), (2, 9, 64)],
    "iresnet18": [(1, 16, 16), (3, 44, 48), (2, 17, 20)],
    "mlp": [(1,), (20,), (3000,)],
}
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


def test_every_backbone_is_exercised_here() -> None:
    assert backbones.names() == tuple(sorted(SHAPES))


@pytest.mark.parametrize(("name", "shape"), CASES)
@pytest.mark.parametrize("dim", [2, 5])
def test_a_batch_becomes_embeddings_of_the_asked_width(name: str, shape: tuple[int, ...], dim: int) -> None:
    embeddings = backbones.build(name, shape=shape, dim=dim)(torch.randn(3, *shape))
    assert embeddings.shape == (3, dim)
    assert embeddings.dtype == torch.float32
    assert torch.isfinite(embeddings).all()


@pytest.mark.parametrize(("name", "shape"), [(name, shapes[0]) for name, shapes in SHAPES.items()])
def test_every_parameter_that_can_move_the_loss_gets_a_finite_gradient(name: str, shape: tuple[int, ...]) -> None:
    model = backbones.build(name, shape=shape, dim=4)
    target = torch.randn(4, 4)
    (model(torch.randn(4, *shape)) - target).square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
    first = next(model.parameters())
    assert first.grad is not None
    assert first.grad.abs().sum() > 0


@pytest.mark.parametrize(("name", "shape"), [(name, shapes[0]) for name, shapes in SHAPES.items()])
def test_embeddings_stay_float32_under_bfloat16_autocast(name: str, shape: tuple[int, ...]) -> None:
    model = backbones.build(name, shape=shape, dim=3)
    samples = torch.randn(8, *shape)
    with torch.autocast("cpu", torch.bfloat16):
        embeddings = model(samples)
    assert embeddings.dtype == torch.float32
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    embeddings.square().sum().backward()


@pytest.mark.parametrize("name", ["vgg8", "conv4", "resnet18", "iresnet18", "small"])
def test_memory_format_does_not_change_the_embedding(name: str) -> None:
    shape = SHAPES[name][0]
    model = backbones.build(name, shape=shape, dim=3).eval()
    pictures = torch.randn(4, *shape)
    with torch.no_grad():
        expected = model(pictures)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        found = model(pictures.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["vgg8", "conv4", "resnet18", "iresnet18", "small"])
def test_one_sample_can_be_embedded_once_training_is_over(name: str) -> None:
    shape = SHAPES[name][0]
    model = backbones.build(name, shape=shape, dim=3).eval()
    batch = torch.randn(3, *shape)
    with torch.no_grad():
        torch.testing.assert_close(model(batch[:1]), model(batch)[:1], rtol=1e-4, atol=1e-5)


def test_an_unknown_name_says_which_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"unknown backbone 'resnet'\. Did you mean resnet18"):
        backbones.build("resnet", shape=(3, 32, 32), dim=8)


@pytest.mark.parametrize("dim", [1, 0, -3])
def test_an_embedding_of_fewer_than_two_dimensions_is_refused(dim: int) -> None:
    with pytest.raises(ConfigError, match=f"at least 2 dimensions.*got dim={dim}"):
        backbones.build("mlp", shape=(4,), dim=dim)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("vgg8", (20,), "vgg8 takes pictures; got rows of 20 features. Use mlp."),
        ("vgg8", (1, 6, 28), "at least 8×8 pixels; got 6×28. Use larger pictures"),
        ("resnet18", (3, 12, 12), "at least 16×16 pixels; got 12×12. Use conv4 or small or vgg8."),
        (
            "mlp",
            (3, 32, 32),
            "mlp takes rows of features; got pictures of 3×32×32. Use conv4 or iresnet18 or resnet18 or small or vgg8.",
        ),
        ("mlp", (3, 4, 4), "got pictures of 3×4×4. Use larger pictures: resize them to 8×8 or more."),
        ("small", (32, 32), r"must have the shape \(features,\) or \(channels, height, width\); got \(32×32\)"),
        ("mlp", (0,), r"got \(0\)"),
    ],
)
def test_a_shape_that_does_not_fit_names_the_backbone_that_does(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        backbones.build(name, shape=shape, dim=8)


@pytest.mark.parametrize(
    ("shape", "num_train", "device_type", "expected"),
    [
        ((64,), 1000, "cuda", "mlp"),
        ((1, 28, 28), 60_000, "cpu", "vgg8"),
        ((1, 28, 28), 60_000, "cuda", "vgg8"),
        ((3, 32, 32), 50_000, "cpu", "small"),
        ((3, 32, 32), 50_000, "cuda", "resnet18"),
        ((3, 32, 32), 500, "cuda", "small"),
        ((3, 12, 12), 50_000, "cuda", "small"),
        ((1, 64, 64), 50_000, "cpu", "small"),
    ],
)
def test_the_default_suits_the_data_and_the_device(
    shape: tuple[int, ...], num_train: int, device_type: str, expected: str
) -> None:
    assert backbones.default_for(shape, num_train, device_type) == expected
    backbones.build(expected, shape=shape, dim=2)


def test_parameters_are_counted_once_and_only_where_training_changes_them() -> None:
    first = nn.Linear(3, 4)
    tied = nn.Sequential(first, nn.Linear(4, 3, bias=False), first)
    assert backbones.count_parameters(tied) == 16 + 12
    first.requires_grad_(False)
    assert backbones.count_parameters(tied) == 12

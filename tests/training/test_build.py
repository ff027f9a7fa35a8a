from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from arcwise import MarginHead, SoftmaxHead
from arcwise.data import Dataset, Split
from arcwise.errors import ConfigError
from arcwise.training.build import build_model, steps_per_epoch
from arcwise.training.config import BackboneConfig, Config, LossConfig

MakeConfig = Callable[..., Config]


def flat(out: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, out))


class Strange(nn.Module):
    """Gives something else than a tensor of embeddings."""

    def __init__(self, give: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.give = give

    def forward(self, x: Tensor) -> object:
        return self.give(x)


def test_the_head_is_what_the_config_says(small_digits: Dataset, make_config: MakeConfig) -> None:
    head = build_model(make_config(loss=LossConfig("cosface", 12.0, 1.5, {"m": 0.2})), small_digits).head
    assert isinstance(head, MarginHead)
    assert (head.margin.parameters()["m"], head.scale, head.warmup_steps) == (0.2, 12.0, round(1.5 * 7))
    assert isinstance(build_model(make_config(loss=LossConfig("softmax")), small_digits).head, SoftmaxHead)


def test_the_same_seed_gives_the_same_model_and_another_one_does_not(
    small_digits: Dataset, make_config: MakeConfig
) -> None:
    first, again, other = (build_model(make_config(seed=seed), small_digits) for seed in (1, 1, 2))
    for model, same in ((again, True), (other, False)):
        pairs = zip(first.backbone.parameters(), model.backbone.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) == same
        assert torch.equal(first.head.weight, model.head.weight) == same


def test_embedding_leaves_the_mode_and_takes_any_number(small_digits: Dataset, make_config: MakeConfig) -> None:
    model = build_model(make_config(), small_digits)
    images = small_digits.test.images
    model.backbone.train()
    whole = model.embed(images)
    assert model.backbone.training
    torch.testing.assert_close(torch.cat([model.embed(images[:7]), model.embed(images[7:], batch_size=11)]), whole)
    assert whole.dtype == torch.float32
    assert not whole.requires_grad
    assert model.embed(images[:0]).shape == (0, 3)


def test_bf16_embeds_nearly_the_same_and_gives_float32(small_digits: Dataset, make_config: MakeConfig) -> None:
    exact, rough = (
        build_model(make_config(precision=p), small_digits).embed(small_digits.test.images) for p in ("fp32", "bf16")
    )
    assert rough.dtype == torch.float32
    assert nn.functional.cosine_similarity(exact, rough).min() > 0.99
    assert not torch.equal(exact, rough)


@pytest.mark.parametrize(("name", "message"), [("vgg9", "Did you mean vgg8"), ("mlp", "mlp takes rows of features")])
def test_a_backbone_that_cannot_be_built_is_named(
    name: str, message: str, small_digits: Dataset, make_config: MakeConfig
) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(replace(make_config(), backbone=BackboneConfig(name, 3)), small_digits)


def test_a_margin_that_is_unknown_is_named(small_digits: Dataset, make_config: MakeConfig) -> None:
    for loss, message in (
        (LossConfig("arcfase", 9.0), "Did you mean arcface"),
        (LossConfig("arcface", 9.0, margin={"n": 0.1}), "no parameter 'n'"),
        (LossConfig("arcface", 9.0, margin={"m": 28.6}), "If that is in degrees"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_model(make_config(loss=loss), small_digits)


@pytest.mark.parametrize(
    ("backbone", "message"),
    [
        (flat(5), r"must return embeddings of the shape \(batch, 3\); it returned \(2, 5\)\. Pass dim="),
        (nn.Identity(), r"it returned \(2, 1, 8, 8\)"),
        (nn.Linear(7, 3), r"does not accept input of the shape \(2, 1, 8, 8\): mat1 and mat2"),
        (Strange(lambda x: None), "does not accept input"),
        (Strange(lambda x: (x, x)), "does not accept input"),
    ],
    ids=["width", "shape", "input", "none", "tuple"],
)
def test_a_network_of_ones_own_that_does_not_fit_is_said(
    backbone: nn.Module, message: str, small_digits: Dataset, make_config: MakeConfig
) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(make_config(), small_digits, backbone)


def test_a_network_of_ones_own_keeps_its_weights(small_digits: Dataset, make_config: MakeConfig) -> None:
    own = flat(3)
    before = [p.detach().clone() for p in own.parameters()]
    model = build_model(make_config(), small_digits, own)
    assert model.backbone is own
    assert all(torch.equal(a, b) for a, b in zip(before, own.parameters(), strict=True))


def test_an_epoch_is_of_whole_batches_and_never_of_none(small_digits: Dataset, make_config: MakeConfig) -> None:
    assert steps_per_epoch(make_config(batch_size=32), small_digits) == 7
    assert steps_per_epoch(make_config(batch_size=240), small_digits) == 1
    assert steps_per_epoch(make_config(batch_size=1000), small_digits) == 1


def test_features_cannot_be_augmented(small_digits: Dataset, make_config: MakeConfig) -> None:
    rows = Split(torch.randn(20, 4), torch.arange(20) % 10)
    features = replace(small_digits, kind="features", train=rows, test=rows)
    config = replace(make_config(augment="affine"), backbone=BackboneConfig("mlp", 3))
    with pytest.raises(ConfigError, match=r"features cannot be augmented; got data\.augment='affine'\. Use none"):
        build_model(config, features)

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from arcwise import margins
from arcwise.data import Dataset, Split
from arcwise.errors import ConfigError
from arcwise.training.config import Config, from_toml, to_toml
from arcwise.training.loss_spec import LossSpec, loss_names, parse_loss
from arcwise.training.recipes import Wishes, resolve


def config_of(data: Dataset, **wishes: object) -> Config:
    return resolve(data, Wishes(device="cpu", **wishes), reference=data.name).config  # type: ignore[arg-type]


@pytest.fixture
def features() -> Dataset:
    rows = Split(torch.randn(30, 5), torch.arange(30) % 3)
    return Dataset("mine", "features", rows, rows, ("a", "b", "c"), "a test", "none")


@pytest.mark.parametrize("name", loss_names())
def test_every_loss_resolves_to_a_config_that_can_be_run_again(name: str, small_digits: Dataset) -> None:
    config = config_of(small_digits, loss=LossSpec(name))
    assert from_toml(to_toml(config)) == config
    if name == "softmax":
        assert (config.loss.scale, config.loss.margin) == (0, {})
    else:
        assert config.loss.scale > 1
        assert margins.build(name, **config.loss.margin).parameters() == config.loss.margin


def test_a_chosen_scale_comes_with_its_reason_and_a_given_one_without(small_digits: Dataset) -> None:
    chosen = resolve(small_digits, Wishes(dim=3), reference="digits")
    assert len(chosen.reasons) == 1
    assert f"scale {chosen.config.loss.scale:.1f}" in chosen.reasons[0]
    given = resolve(small_digits, Wishes(dim=3, scale=7.0), reference="digits")
    assert (given.reasons, given.config.loss.scale) == ((), 7.0)


def test_wishes_come_before_the_recipe(small_digits: Dataset) -> None:
    config = config_of(
        small_digits,
        dim=5,
        backbone="small",
        epochs=3,
        batch_size=16,
        lr=0.7,
        warmup_epochs=1.5,
        margin=0.2,
        seed=9,
        settings={"train.momentum": "0.5"},
        command="typed",
    )
    assert (config.backbone.dim, config.backbone.name) == (5, "small")
    assert (config.train.epochs, config.train.batch_size, config.train.lr) == (3, 16, 0.7)
    assert (config.train.seed, config.train.momentum, config.loss.warmup_epochs) == (9, 0.5, 1.5)
    assert (config.loss.margin["m"], config.command) == (0.2, "typed")


def test_softmax_has_no_margin_to_warm_up(small_digits: Dataset) -> None:
    assert config_of(small_digits, loss=LossSpec("softmax"), warmup_epochs=2.0).loss.warmup_epochs == 0


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"loss": LossSpec("softmax"), "margin": 0.3}, "neither a margin nor a scale; leave --margin out"),
        ({"loss": LossSpec("softmax"), "scale": 9.0}, "neither a margin nor a scale; leave --scale out"),
        ({"loss": LossSpec("combined"), "margin": 0.3}, r"combined has no single margin m; .*combined\(name=value\)"),
        ({"margin": 28.6}, r"m must be in \[0, π/2\) radians; got 28\.6\. If that is in degrees"),
        ({"margin": -0.1}, "got -0.1"),
        (
            {"loss": parse_loss("arcface(m=0.3)"), "margin": 0.5},
            r"the margin is given twice: arcface-m0\.3 and --margin 0\.5",
        ),
        ({"scale": float("nan")}, r"loss\.scale must be a positive number; got nan"),
        ({"epochs": 0}, r"train\.epochs must be at least 1; got 0"),
        ({"batch_size": 1}, r"train\.batch_size must be at least 2; got 1"),
        ({"warmup_epochs": -1.0}, r"loss\.warmup_epochs must be at least 0; got -1"),
        ({"dim": 1}, "at least 2 dimensions; got 1"),
    ],
)
def test_a_wish_that_cannot_be_met_is_named(wishes: dict[str, object], message: str, small_digits: Dataset) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of(small_digits, **wishes)


def test_features_get_a_network_for_features_and_no_augmentation(features: Dataset) -> None:
    config = config_of(features)
    assert (config.backbone.name, config.data.augment, config.data.image_size) == ("mlp", "none", 0)
    assert not config.train.channels_last


def test_a_batch_is_never_larger_than_the_data(features: Dataset, small_digits: Dataset) -> None:
    assert config_of(features, batch_size=1000).train.batch_size == 30
    assert config_of(small_digits, batch_size=1000).train.batch_size == 240
    assert config_of(replace(features, train=Split(torch.randn(1, 5), torch.tensor([0])))).train.batch_size == 2


@pytest.mark.parametrize("rows", [1, 5, 100, 10_000, 1_000_000])
def test_data_of_any_size_gets_a_recipe_that_can_be_run(rows: int, small_digits: Dataset, features: Dataset) -> None:
    for data in (small_digits, features):
        image = data.train.images[:1]
        train = Split(image.expand(rows, *image.shape[1:]), torch.zeros(1, dtype=torch.int64).expand(rows))
        chosen = config_of(replace(data, name="mine", train=train)).train
        assert chosen.epochs >= 1
        assert 2 <= chosen.batch_size <= max(2, min(256, rows))

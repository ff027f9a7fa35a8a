from __future__ import annotations

import math
import string
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise import losses
from arcwise.data import AUGMENTATIONS
from arcwise.errors import ConfigError
from arcwise.training.config import (
    SECTIONS,
    BackboneConfig,
    Config,
    DataConfig,
    LossConfig,
    TrainConfig,
    from_toml,
    from_tree,
    read_config,
    to_toml,
    with_settings,
)

PLAIN = Config(
    DataConfig("digits"),
    BackboneConfig("vgg8", 3),
    LossConfig("arcface", scale=12.5, margin={"m": 0.5}, terms={"triplet": {"weight": 0.5, "m": 0.2, "mining": "all"}}),
    TrainConfig(epochs=3),
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
positive = st.floats(min_value=1e-300, max_value=1e300)
zero_or_more = st.floats(min_value=0, max_value=1e300)
names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)

configs = st.builds(
    Config,
    data=st.builds(
        DataConfig,
        name=text,
        image_size=st.integers(0, 1024),
        test_share=st.floats(0, 1, exclude_min=True, exclude_max=True),
        augment=st.sampled_from(AUGMENTATIONS),
    ),
    backbone=st.builds(BackboneConfig, name=text, dim=st.integers(2, 10**6)),
    loss=st.builds(
        LossConfig,
        name=text.filter(lambda name: name != "softmax"),
        scale=positive,
        warmup_epochs=zero_or_more,
        margin=st.dictionaries(names, st.floats(allow_nan=False) | text | st.booleans(), max_size=3),
        centers_per_class=st.integers(1, 100),
        filter_above=st.floats(-1, 1, exclude_min=True),
        terms=st.dictionaries(
            st.sampled_from(losses.names()), st.fixed_dictionaries({"weight": positive}, optional={}), max_size=3
        ),
    ),
    train=st.builds(
        TrainConfig,
        epochs=st.integers(1, 10**6),
        batch_size=st.integers(2, 10**6),
        optimiser=st.sampled_from(["sgd", "adamw"]),
        lr=positive,
        momentum=st.floats(0, 1, exclude_max=True),
        weight_decay=zero_or_more,
        warmup_share=st.floats(0, 1),
        seed=st.integers(0, 2**31 - 1),
        precision=st.sampled_from(["fp32", "bf16"]),
        channels_last=st.booleans(),
        compile=st.booleans(),
        snapshot_images=st.integers(0, 10**6),
        checkpoint_seconds=zero_or_more,
    ),
    command=text,
)


@given(configs)
def test_a_config_comes_back_from_toml_as_it_was(config: Config) -> None:
    assert from_toml(to_toml(config)) == config


def test_every_key_is_written_out_and_read_by_any_toml_reader() -> None:
    tree = tomllib.loads(to_toml(PLAIN))
    assert list(tree) == ["arcwise", "command", *SECTIONS]
    assert {section: tree[section] for section in SECTIONS} == {s: asdict(getattr(PLAIN, s)) for s in SECTIONS}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[train]", "[trian]", r"unknown key 'trian'\. Did you mean train\?"),
        ("epochs = 3", "epoch = 3", r"\[train\] has an unknown key 'epoch'\. Did you mean epochs\?"),
        ("epochs = 3", "", r"\[train\] lacks epochs"),
        ("epochs = 3", "epochs = 3.0", r"epochs must be a whole number; got 3\.0"),
        ("epochs = 3", "epochs = true", "epochs must be a whole number; got True"),
        ("epochs = 3", 'epochs = "3"', "epochs must be a whole number; got '3'"),
        ("epochs = 3", "epochs = 0", "train.epochs must be at least 1; got 0"),
        ("lr = 0.1", "lr = true", "lr must be a number; got True"),
        ("lr = 0.1", "lr = nan", "train.lr must be a positive number; got nan"),
        ("lr = 0.1", "lr = inf", "train.lr must be a positive number; got inf"),
        ("lr = 0.1", "lr = -1", r"train.lr must be a positive number; got -1\.0"),
        ("channels_last = true", "channels_last = 1", "channels_last must be true or false; got 1"),
        ('optimiser = "sgd"', 'optimiser = "sdg"', "must be one of sgd, adamw; got 'sdg'. Did you mean sgd"),
        ('name = "vgg8"', "name = 8", r"\[backbone\] name must be text; got 8"),
        ("[loss.margin]\nm = 0.5", "margin = 0.5", r"\[loss\] margin must be a table; got 0\.5"),
        ("[loss.terms.triplet]", "[loss.terms.tripelt]", r"there is no term 'tripelt'\. Did you mean triplet\?"),
        ("weight = 0.5", "weight = 0", r"loss\.terms\.triplet\.weight must be a positive number; got 0\. Or leave"),
        ("weight = 0.5", "weight = nan", r"loss\.terms\.triplet\.weight must be a positive number; got nan"),
        ("weight = 0.5", "weight = true", r"loss\.terms\.triplet\.weight must be a positive number; got True"),
        ("weight = 0.5", "wieght = 0.5", r"triplet has no parameter 'wieght'"),
        ("m = 0.2", "m = 20", r"m must be in \[0, π/2\) radians; got 20\. If that is in degrees"),
        ("m = 0.2", 'm = "wide"', r"triplet's m must be a number, such as 0\.35; got 'wide'"),
        ('mining = "all"', 'mining = "al"', r"triplet's mining cannot be 'al'\. Did you mean all\?"),
        ("[loss.terms.triplet]\n", "[loss.terms]\nintra = 0.1\n", r"\[loss\] terms\.intra must be a table; got 0\.1"),
        ("centers_per_class = 1", "centers_per_class = 0", r"loss\.centers_per_class must be at least 1; got 0"),
        ("centers_per_class = 1", "centers_per_class = 1.5", r"centers_per_class must be a whole number; got 1\.5"),
        ("filter_above = 1.0", "filter_above = 1.1", r"loss\.filter_above must be a cosine in \(−1, 1\]; got 1\.1"),
        ("filter_above = 1.0", "filter_above = nan", r"loss\.filter_above must be a cosine in \(−1, 1\]; got nan"),
        ("scale = 12.5", "scale = 0", r"loss.scale must be a positive number; got 0\.0"),
        ("dim = 3", "dim = 1", "backbone.dim must be at least 2; got 1"),
        ("momentum = 0.9", "momentum = 1", r"train.momentum must be in \[0, 1\); got 1\.0"),
        ("warmup_share = 0.2", "warmup_share = 2", r"train.warmup_share must be in \[0, 1\]; got 2\.0"),
        ("test_share = 0.2", "test_share = 1", r"data.test_share must be between 0 and 1; got 1\.0"),
        ("seed = 0", "seed = -1", "train.seed must be in 0 … 2³¹ − 1; got -1"),
        ("weight_decay = 0.0005", "weight_decay = nan", "train.weight_decay must be at least 0; got nan"),
        ('augment = "none"', 'augment = "afine"', "no augmentation 'afine'. Did you mean affine"),
        ("[data]", "[data", "is not valid TOML"),
    ],
)
def test_a_mistake_in_a_config_is_named(old: str, new: str, message: str) -> None:
    written = to_toml(PLAIN)
    assert old in written
    with pytest.raises(ConfigError, match=message):
        from_toml(written.replace(old, new, 1))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_missing_section_is_named(section: str) -> None:
    tree = tomllib.loads(to_toml(PLAIN))
    del tree[section]
    with pytest.raises(ConfigError, match=rf"the config has no section \[{section}\]"):
        from_tree(tree)
    with pytest.raises(ConfigError, match=rf"the config has no section \[{section}\]"):
        from_tree({**tree, section: 5})


def test_whole_numbers_are_welcome_where_a_fraction_may_stand() -> None:
    config = from_toml(to_toml(PLAIN).replace("scale = 12.5", "scale = 12"))
    assert config.loss.scale == 12.0
    assert isinstance(config.loss.scale, float)


def test_keys_with_a_usual_value_may_be_left_out() -> None:
    short = '[data]\nname="digits"\n[backbone]\nname="vgg8"\ndim=3\n[loss]\nname="softmax"\n[train]\nepochs=3\n'
    config = from_toml(short)
    assert config == replace(PLAIN, loss=LossConfig("softmax"))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("train.lr", "0.05", 0.05),
        ("train.lr", "1", 1.0),
        ("train.epochs", "7", 7),
        ("train.channels_last", "FALSE", False),
        ("train.precision", "bf16", "bf16"),
        ("data.name", "a=b", "a=b"),
    ],
)
def test_a_single_value_is_set_by_its_dotted_name(key: str, value: str, expected: Any) -> None:
    section, name = key.split(".")
    assert getattr(getattr(with_settings(PLAIN, {key: value}), section), name) == expected


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train.lrr", "1", r"there is no setting 'train\.lrr'\. Did you mean train\.lr\?"),
        ("lr", "1", "there is no setting 'lr'"),
        ("", "1", "there is no setting ''"),
        ("train.lr", "fast", r"train\.lr must be a number; got 'fast'"),
        ("train.epochs", "2.5", r"train\.epochs must be a whole number; got '2\.5'"),
        ("train.compile", "yes", r"train\.compile must be true or false; got 'yes'"),
        ("train.precision", "fp16", "must be one of fp32, bf16; got 'fp16'"),
        ("train.momentum", "nan", "momentum must be in"),
    ],
)
def test_a_mistake_in_a_setting_is_named(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_settings(PLAIN, {key: value})


def test_a_file_that_is_no_config_is_one_sentence(tmp_path: Path) -> None:
    binary, empty = tmp_path / "binary.toml", tmp_path / "empty.toml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    empty.touch()
    for path, message in (
        (binary, "is not a text file"),
        (empty, r"has no section \[data\]"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "none.toml", "cannot be read: No such file"),
    ):
        with pytest.raises(ConfigError, match=message) as raised:
            read_config(path)
        assert str(path) in str(raised.value)


def test_softmax_has_neither_several_centres_nor_a_filter() -> None:
    for loss in (LossConfig("softmax", centers_per_class=3), LossConfig("softmax", filter_above=0.5)):
        with pytest.raises(
            ConfigError, match=r"softmax has one centre for each class and filters nothing; got .*Choose"
        ):
            replace(PLAIN, loss=loss)


def test_a_term_may_leave_out_what_is_usual() -> None:
    short = to_toml(PLAIN).replace('weight = 0.5\nm = 0.2\nmining = "all"\n', "")
    assert from_toml(short).loss.terms == {"triplet": {}}


def test_softmax_needs_no_scale_and_a_margin_does() -> None:
    assert replace(PLAIN, loss=LossConfig("softmax")).loss.scale == 0
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ConfigError, match=r"loss\.scale must be a positive number"):
            replace(PLAIN, loss=LossConfig("cosface", scale=scale))

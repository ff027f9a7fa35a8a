from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arcwise import margins
from arcwise.errors import ConfigError
from arcwise.training.loss_spec import all_losses
from arcwise.training.tuned_settings import (
    SHIPPED,
    TunedLoss,
    TunedSettings,
    from_toml,
    read_tuned,
    shipped_for,
    to_toml,
)

SETTINGS = TunedSettings(
    data="digits",
    dim=3,
    backbone="vgg8",
    epochs=4,
    batch_size=64,
    trials=8,
    seed=0,
    measured="accuracy",
    command='arcwise tune digits --losses "softmax,arcface"',
    arcwise="0.1.0",
    losses={
        "softmax": TunedLoss(0.97, 0.96, lr_factor=2.0),
        "arcface-m0.3": TunedLoss(0.99, 0.96, scale=15.65),
        "cosface": TunedLoss(0.98, 0.95, scale=20.5, margin={"m": 0.31}),
        "arcface+triplet0.5": TunedLoss(
            0.9, 0.8, scale=9.0, margin={"m": 0.2}, terms={"triplet": {"weight": 0.7, "m": 0.1}}
        ),
    },
    where="here",
)


def test_settings_come_back_as_they_were_written() -> None:
    assert from_toml(to_toml(SETTINGS), "here") == SETTINGS


def test_the_settings_shipped_for_omniglot_are_for_every_loss_and_can_be_built() -> None:
    shipped = shipped_for("omniglot")
    assert shipped is not None
    assert (shipped.dim, shipped.measured) == (64, "map_at_r")
    for spec in all_losses():
        found = shipped.losses[spec.label]
        assert found.score >= found.default_score > 0
        if spec.name != "softmax":
            margin = margins.build(spec.name, **found.margin)
            assert (found.scale == 0) == margin.owns_scale
        assert set(found.terms) == {term.name for term in spec.terms}


def test_every_shipped_file_can_be_read() -> None:
    for file in Path(str(SHIPPED)).glob("*.toml"):
        shipped = shipped_for(file.stem)
        assert shipped is not None
        assert shipped.data == file.stem
        assert shipped.command.startswith(f"arcwise tune {file.stem} ")
    assert shipped_for("no-such-data") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("dim = 3", "dim = 3.5"), r"tuned\.toml: dim must be of the kind int; got 3\.5"),
        (("dim = 3\n", ""), r"tuned\.toml lacks dim"),
        (("dim = 3", "dimm = 3"), r"unknown key 'dimm'\. Did you mean dim"),
        (
            ("lr_factor = 2.0", "lr_fctor = 2.0"),
            r"losses\.softmax has an unknown key 'lr_fctor'\. Did you mean lr_factor",
        ),
        (("lr_factor = 2.0", 'lr_factor = "2"'), r"lr_factor must be of the kind float; got '2'"),
        (("dim = 3", "dim = "), r"is not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(to_toml(SETTINGS).replace(*change, 1))
    with pytest.raises(ConfigError, match=message):
        read_tuned(file)


def test_other_files_are_not_taken_for_tuned_settings(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[loss]\nname = "arcface"\n')
    with pytest.raises(ConfigError, match=r"config\.toml is no result of tuning: .* Give the tuned\.toml"):
        read_tuned(tmp_path / "config.toml")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not a text file"):
        read_tuned(tmp_path / "picture")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_tuned(tmp_path / "none.toml")


def test_the_reason_names_the_command() -> None:
    assert replace(SETTINGS, command="arcwise tune x").reason == "tuned on held-out training data (arcwise tune x)"

"""When training uses what was tuned: the user's own file, or the one that the package ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import arcwise
from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.training.config import Config
from arcwise.training.loss_spec import parse_loss
from arcwise.training.recipes import Resolved, Wishes, resolve
from arcwise.training.tuned_settings import TunedLoss, TunedSettings, to_toml

SETTINGS = TunedSettings(
    data="digits",
    dim=4,
    backbone="vgg8",
    epochs=4,
    batch_size=64,
    trials=8,
    seed=0,
    measured="accuracy",
    command="arcwise tune digits",
    arcwise="0.1.0",
    losses={
        "softmax": TunedLoss(0.97, 0.96, lr_factor=2.0),
        "arcface": TunedLoss(0.99, 0.96, scale=15.65, margin={"m": 0.31}),
        "arcface-m0.3": TunedLoss(0.98, 0.96, scale=17.5),
        "arcface+triplet0.5": TunedLoss(0.9, 0.8, scale=9.0, margin={"m": 0.2}, terms={"triplet": {"weight": 0.7}}),
    },
    where="mine.toml",
)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package ships these settings for digits."""
    (tmp_path / "digits.toml").write_text(to_toml(SETTINGS))
    monkeypatch.setattr("arcwise.training.tuned_settings.SHIPPED", tmp_path)


def resolved(data: Dataset, loss: str = "arcface", **wishes: Any) -> Resolved:
    return resolve(data, Wishes(loss=parse_loss(loss), device="cpu", **wishes), reference="digits")


def scale_and_m(config: Config) -> tuple[float, object]:
    return config.loss.scale, config.loss.margin["m"]


def test_the_users_own_tuning_settles_scale_margin_and_width(small_digits: Dataset) -> None:
    made = resolved(small_digits, tuned=SETTINGS)
    assert scale_and_m(made.config) == (15.65, 0.31)
    assert made.config.backbone.dim == 4
    assert made.reasons == ("arcface: scale 15.65, m 0.31, tuned on held-out training data (arcwise tune digits).",)


def test_a_learning_rate_that_was_tuned_is_used_unless_one_is_given(small_digits: Dataset) -> None:
    usual = resolved(small_digits, "softmax").config.train.lr
    made = resolved(small_digits, "softmax", tuned=SETTINGS)
    assert made.config.train.lr == pytest.approx(2 * usual)
    assert "2 times the usual learning rate, tuned" in made.reasons[0]
    assert resolved(small_digits, "softmax", tuned=SETTINGS, lr=0.01).config.train.lr == 0.01


def test_a_loss_with_parameters_finds_its_own_tuning(small_digits: Dataset) -> None:
    assert scale_and_m(resolved(small_digits, "arcface(m=0.3)", tuned=SETTINGS).config) == (17.5, 0.3)


def test_several_centres_and_a_filter_take_the_setting_of_the_same_loss_without(small_digits: Dataset) -> None:
    for loss in ("arcface(filter=0.5)", "arcface(centers=3)", "arcface(centers=3, filter=0.5)"):
        made = resolved(small_digits, loss, tuned=SETTINGS)
        assert scale_and_m(made.config) == (15.65, 0.31)
        assert made.reasons[0].startswith(f"{parse_loss(loss).label}: scale 15.65")
    own = replace(SETTINGS, losses={**SETTINGS.losses, "arcface-centers3": TunedLoss(0.9, 0.9, scale=8.0)})
    assert resolved(small_digits, "arcface(centers=3)", tuned=own).config.loss.scale == 8.0
    with pytest.raises(ConfigError, match=r"no setting for arcface-m0\.2-centers3"):
        resolved(small_digits, "arcface(m=0.2, centers=3)", tuned=SETTINGS)


def test_a_terms_weight_is_settled_and_what_was_not_tuned_stays(small_digits: Dataset, tmp_path: Path) -> None:
    made = resolved(small_digits, "arcface+triplet", tuned=SETTINGS)
    usual = resolved(small_digits, "arcface+triplet").config.loss.terms["triplet"]
    assert made.config.loss.terms == {"triplet": {**usual, "weight": 0.7}}
    assert "m 0.2, triplet weight 0.7, tuned on" in made.reasons[0]
    options: dict[str, Any] = {"loss": "arcface+triplet", "epochs": 1, "tuned": SETTINGS, "out": tmp_path / "run"}
    run = arcwise.train(small_digits, **options)
    assert arcwise.train(small_digits, resume=True, **options).config == run.config
    with pytest.raises(ConfigError, match=r"begun with triplet weight 0\.7 and goes on so; got 0\.4"):
        arcwise.train(small_digits, resume=True, **{**options, "loss": "arcface+triplet:0.4", "tuned": None})


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"loss": "arcface(m=0.2)"}, r"mine\.toml has no setting for arcface-m0\.2\. Did you mean arcface"),
        ({"dim": 3}, r"mine\.toml was tuned with --dim 4; got 3"),
        ({"scale": 9.0}, r"mine\.toml settles the loss; got --scale 9 as well"),
        ({"margin": 0.2}, r"mine\.toml settles the loss; got --margin 0\.2 as well"),
    ],
)
def test_what_the_users_own_tuning_cannot_settle_is_refused(
    wishes: dict[str, Any], message: str, small_digits: Dataset
) -> None:
    with pytest.raises(ConfigError, match=message):
        resolved(small_digits, **{"tuned": SETTINGS, **wishes})


def test_a_tuning_of_other_data_is_used_and_said(small_digits: Dataset) -> None:
    made = resolved(small_digits, tuned=replace(SETTINGS, data="mnist"))
    assert scale_and_m(made.config) == (15.65, 0.31)
    assert made.reasons[0].endswith("That was on mnist, and this is digits.")


@pytest.mark.usefixtures("shipped")
def test_shipped_settings_are_the_default_where_the_width_is_theirs(small_digits: Dataset) -> None:
    made = resolved(small_digits, dim=4)
    assert scale_and_m(made.config) == (15.65, 0.31)
    assert "tuned on held-out training data (arcwise tune digits)" in made.reasons[0]


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize(
    "wishes",
    [{"dim": 3}, {}, {"dim": 4, "scale": 9.0}, {"dim": 4, "margin": 0.2}, {"dim": 4, "loss": "arcface(m=0.2)"}],
    ids=str,
)
def test_shipped_settings_stand_back_behind_the_users(wishes: dict[str, Any], small_digits: Dataset) -> None:
    made = resolved(small_digits, **wishes)
    assert made.config == resolved(small_digits, **wishes, use_shipped=False).config
    assert "tuned" not in " ".join(made.reasons)


@pytest.mark.usefixtures("shipped")
def test_other_data_does_not_get_them(small_digits: Dataset) -> None:
    other = replace(small_digits, name="other")
    assert resolved(other, dim=4).config.loss.scale != 15.65


def test_train_and_compare_take_the_file_and_resume_with_it(small_digits: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(to_toml(SETTINGS))
    run = arcwise.train(small_digits, epochs=1, tuned=file, out=tmp_path / "run")
    assert scale_and_m(run.config) == (15.65, 0.31)
    again = arcwise.train(small_digits, epochs=1, tuned=str(file), out=tmp_path / "run", resume=True)
    assert again.config == run.config
    compared = arcwise.compare(small_digits, epochs=1, tuned=file, out=tmp_path / "compare")
    assert set(compared.values) == {"softmax", "arcface"}
    file.write_text(file.read_text().replace("15.65", "16.0"))
    with pytest.raises(ConfigError, match=r"begun with scale 15\.65 and goes on so; got 16"):
        arcwise.train(small_digits, epochs=1, tuned=file, out=tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match=r"the config settles tuned; got tuned .*tuned\.toml as well"):
        arcwise.train(small_digits, tuned=file, config=tmp_path / "run" / "config.toml", out=tmp_path / "other")

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.training import RunFolder
from arcwise.training.config import Config
from arcwise.training.loss_spec import LossSpec, parse_loss
from arcwise.training.resuming import folder_to_resume, same_run

MakeConfig = Callable[..., Config]
RUNS = Path("runs")


def test_the_folder_is_the_one_that_is_named_or_the_one_training_would_have_made(
    folder: RunFolder, small_digits: Dataset
) -> None:
    named = Path("mine")
    assert folder_to_resume(RUNS, "digits", None, named) == named
    assert folder_to_resume(RUNS, None, None, "mine") == named
    assert folder_to_resume(RUNS, folder.path, None, None) == folder.path
    assert folder_to_resume(RUNS, str(folder.path), None, None) == folder.path
    assert folder_to_resume(RUNS, "digits", None, None) == RUNS / "digits-arcface"
    assert folder_to_resume(RUNS, "a/birds.csv", parse_loss("cosface(m=0.2)"), None) == RUNS / "birds-cosface-m0.2"
    assert folder_to_resume(RUNS, small_digits, LossSpec("softmax"), None) == RUNS / "digits-softmax"
    with pytest.raises(ConfigError, match="there is nothing to resume: name the run folder"):
        folder_to_resume(RUNS, None, None, None)


def test_asking_for_what_the_run_has_is_fine(make_config: MakeConfig) -> None:
    same_run(make_config(), None, {})
    wanted = {"dim": 3, "epochs": 2, "batch_size": 32, "lr": 0.1, "scale": 10.0, "margin": 0.3, "seed": None}
    same_run(make_config(), parse_loss("arcface(m=0.3)"), {"train.momentum": "0.9"}, **wanted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 4),
        ("backbone", "small"),
        ("epochs", 3),
        ("batch_size", 64),
        ("lr", 0.2),
        ("warmup_epochs", 1.0),
        ("scale", 11.0),
        ("margin", 0.4),
        ("seed", 1),
    ],
)
def test_asking_for_something_else_is_refused(name: str, value: object, make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match=rf"begun with {name} .* goes on so; got {value}\. Leave the option out"):
        same_run(make_config(), None, {}, **{name: value})


@pytest.mark.parametrize(
    ("loss", "message"),
    [("softmax", "begun with loss arcface"), ("arcface(m=0.4)", r"begun with loss m 0\.3 and goes on so; got 0\.4")],
)
def test_asking_for_another_loss_is_refused(loss: str, message: str, make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match=message):
        same_run(make_config(), parse_loss(loss), {})


def test_asking_for_another_setting_is_refused(make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match=r"other settings than \{'train\.momentum': '0\.8'\}\. Leave --set out"):
        same_run(make_config(), None, {"train.momentum": "0.8"})

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

import arcwise
from arcwise.errors import ConfigError
from arcwise.margins import build, margin_class, names
from arcwise.margins.base import register


@dataclasses.dataclass(frozen=True)
class Own(arcwise.NormSoftmax):
    """A margin of somebody's own."""


def test_every_margin_of_the_paper_is_registered() -> None:
    assert {"norm-softmax", "arcface", "cosface", "sphereface", "combined"} <= set(names())


def test_a_margin_is_built_by_name_with_its_defaults() -> None:
    assert build("arcface") == arcwise.ArcFace(0.5)
    assert build("arcface", m=0.3, gradient="detached") == arcwise.ArcFace(0.3, gradient="detached")
    assert build("cosface", m=1) == arcwise.CosFace(1)
    assert margin_class("combined") is arcwise.CombinedMargin


@pytest.mark.parametrize(
    ("given", "meant"), [("arcfcae", "arcface"), ("ArcFace", "arcface"), ("sphere-face", "sphereface")]
)
def test_an_unknown_margin_says_did_you_mean(given: str, meant: str) -> None:
    with pytest.raises(ConfigError) as error:
        build(given)
    assert str(error.value) == f"there is no margin {given!r}. Did you mean {meant}? Known: {', '.join(names())}."


@pytest.mark.parametrize("name", ["MyLoss", "my_loss", "a/b", "my+loss", "", "-a", "a--b"])
def test_a_name_that_cannot_be_typed_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"a name is made of small letters, digits and single dashes, as in my-margin; got"
    ):
        register(name)(Own)
    assert name not in names()


@pytest.mark.parametrize("name", ["arcface", "softmax"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the name {name} is taken; register Own under another"):
        register(name)(Own)


def test_a_class_may_be_registered_anew_under_its_own_name() -> None:
    assert register("arcface")(arcwise.ArcFace) is arcwise.ArcFace


@pytest.mark.parametrize(
    ("default", "got"),
    [(dataclasses.field(default=2), "2"), (dataclasses.field(default=None), "None"), (dataclasses.field(), "none")],
    ids=["whole", "None", "missing"],
)
def test_a_parameter_that_could_not_be_typed_is_refused(default: Any, got: str) -> None:
    made = dataclasses.make_dataclass("Made", [("k", Any, default)], bases=(arcwise.NormSoftmax,), frozen=True)
    with pytest.raises(
        ConfigError, match=rf"Made's k needs a default that is a float, a bool or a word; got {got}\. Write"
    ):
        register("made")(made)
    assert "made" not in names()


def test_a_margin_that_is_no_dataclass_is_refused() -> None:
    class Plain(arcwise.NormSoftmax):
        pass

    with pytest.raises(
        ConfigError, match=r"Plain must be a frozen dataclass; put @dataclass\(frozen=True\) under @register"
    ):
        register("plain")(Plain)


def test_an_unknown_parameter_says_did_you_mean() -> None:
    with pytest.raises(ConfigError) as error:
        build("combined", m4=0.2)
    message = "combined has no parameter 'm4'. Did you mean m1? Known: m1, m2, m3, continuation, gradient."
    assert str(error.value).replace("mean m2", "mean m1").replace("mean m3", "mean m1") == message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"m": "0.5"}, "arcface's m must be a number, such as 0.5; got '0.5'."),
        ({"m": True}, "arcface's m must be a number, such as 0.5; got True."),
        ({"gradient": 1.0}, "arcface's gradient must be a word in quotes, such as 'exact'; got 1.0."),
    ],
)
def test_a_parameter_of_the_wrong_kind_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        build("arcface", **parameters)
    assert str(error.value) == message


def test_degrees_are_caught() -> None:
    with pytest.raises(ConfigError) as error:
        arcwise.ArcFace(28.6)
    assert (
        str(error.value) == "m must be in [0, π/2) radians; got 28.6. If that is in degrees, pass math.radians(28.6)."
    )
    with pytest.raises(ConfigError) as error:
        arcwise.CombinedMargin(1.0, 20, 0.2)
    assert str(error.value) == "m2 must be in [0, π/2) radians; got 20. If that is in degrees, pass math.radians(20)."


@pytest.mark.parametrize("m", [-0.1, math.pi / 2, 1.6, 1000.0, math.nan, math.inf])
def test_an_angle_that_cannot_be_degrees_gets_no_such_hint(m: float) -> None:
    with pytest.raises(ConfigError) as error:
        arcwise.ArcFace(m)
    assert str(error.value) == f"m must be in [0, π/2) radians; got {m:g}."


def test_an_unknown_gradient_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        build("arcface", gradient="detach")
    assert str(error.value) == 'gradient must be "exact" or "detached"; got \'detach\'.'


def test_a_margin_is_frozen_and_hashable() -> None:
    margin = arcwise.ArcFace(0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        margin.m = 0.4  # type: ignore[misc]
    assert hash(margin) == hash(arcwise.ArcFace(0.5))


def test_target_at_zero_is_the_cosine_credited_to_an_embedding_on_its_centre() -> None:
    assert arcwise.NormSoftmax().target_at_zero() == 1.0
    assert arcwise.ArcFace(0.5).target_at_zero() == pytest.approx(math.cos(0.5), abs=1e-15)
    assert arcwise.CosFace(0.35).target_at_zero() == pytest.approx(0.65, abs=1e-15)
    assert arcwise.SphereFace(1.35).target_at_zero() == 1.0


def test_parameters_are_what_builds_the_margin_again() -> None:
    margin = arcwise.CombinedMargin(0.9, 0.4, 0.15, continuation="none", gradient="detached")
    assert margin.parameters() == {
        "m1": 0.9, "m2": 0.4, "m3": 0.15, "continuation": "none", "gradient": "detached",
    }  # fmt: skip
    assert build(margin.name, **margin.parameters()) == margin


def test_a_registered_class_of_ones_own_is_built_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from arcwise.margins import base

    monkeypatch.setattr(base, "_registry", dict(base._registry))

    @arcwise.margins.register("halved")
    @dataclasses.dataclass(frozen=True)
    class Halved(arcwise.CosFace):
        m: float = 0.1

    assert build("halved", m=0.2) == Halved(0.2)
    assert Halved.name == "halved"
    head = arcwise.MarginHead(4, 3, Halved(), scale=8.0)
    assert head(torch.randn(5, 4), torch.randint(0, 3, (5,))).isfinite()

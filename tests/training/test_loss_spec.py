from __future__ import annotations

import pytest

from arcwise import margins
from arcwise.errors import ConfigError
from arcwise.training.loss_spec import LossSpec, loss_names, parse_loss, parse_losses


@pytest.mark.parametrize("name", loss_names())
def test_every_loss_is_read_by_its_name(name: str) -> None:
    assert parse_loss(name) == LossSpec(name)
    assert parse_loss(f" {name.upper().replace('-', '_')} ") == LossSpec(name)


def test_all_is_softmax_and_every_margin() -> None:
    assert [spec.name for spec in parse_losses("all")] == ["softmax", *margins.names()]


def test_parameters_are_numbers_or_words() -> None:
    spec = parse_loss("arcface( m = 0.3 , continuation='classic')")
    assert spec == LossSpec("arcface", {"m": 0.3, "continuation": "classic"})


def test_commas_within_brackets_do_not_part_losses() -> None:
    specs = parse_losses("softmax, combined(m1=1, m2=0.3,m3=0.1),arcface")
    assert [spec.name for spec in specs] == ["softmax", "combined", "arcface"]
    assert specs[1].margin == {"m1": 1.0, "m2": 0.3, "m3": 0.1}


def test_the_label_tells_losses_of_one_name_apart() -> None:
    labels = [spec.label for spec in parse_losses("arcface,arcface(m=0.3),arcface(m=0.2)")]
    assert labels == ["arcface", "arcface-m0.3", "arcface-m0.2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arcfase", r"there is no loss 'arcfase'\. Did you mean arcface\?"),
        ("", "the loss '' cannot be read"),
        ("arcface(m=0.3", "cannot be read; write a name, or a name with parameters"),
        ("arcface(0.3)", r"cannot be read at '0\.3'; write name=value"),
        ("arcface(=0.3)", "cannot be read at '=0.3'"),
        ("arcface(n=0.3)", "arcface has no parameter 'n'. Known: m, "),
        ("arcface(m=28.6)", "If that is in degrees"),
        ("arcface(m=nan)", "got nan"),
        ("arcface(m=wide)", "wide"),
        ("softmax(m=0.3)", "softmax has no margin and takes no parameters"),
    ],
)
def test_a_mistake_in_a_loss_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_loss(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no loss was named. Known: softmax, arcface"),
        (",,", "no loss was named"),
        ("arcface,arcface", "the loss arcface is named twice"),
        ("softmax,cosfase", "Did you mean cosface"),
    ],
)
def test_a_mistake_in_a_list_of_losses_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_losses(text)

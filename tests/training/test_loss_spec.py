from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise import losses, margins
from arcwise.errors import ConfigError
from arcwise.training.loss_spec import LossSpec, TermSpec, all_losses, as_specs, loss_names, parse_loss, parse_losses


@pytest.mark.parametrize("name", loss_names())
def test_every_loss_is_read_by_its_name(name: str) -> None:
    assert parse_loss(name) == LossSpec(name)
    assert parse_loss(f" {name.upper().replace('-', '_')} ") == LossSpec(name)


@pytest.mark.parametrize("name", losses.names())
def test_every_term_is_read_by_its_name_and_has_a_usual_weight(name: str) -> None:
    usual = losses.term_class(name).default_weight
    assert parse_loss(f"arcface+{name}") == LossSpec("arcface", terms=(TermSpec(name, usual),))
    assert parse_loss(f"softmax + {name.upper().replace('-', '_')} : 0.7 ").terms == (TermSpec(name, 0.7),)


def test_all_is_every_head_then_sub_centres_then_each_term() -> None:
    specs = parse_losses("all")
    heads = len(margins.names()) + 1
    assert [spec.label for spec in specs[: heads + 1]] == ["softmax", *margins.names(), "arcface-centers3"]
    assert [spec.terms[0].name for spec in specs[heads + 1 :]] == list(losses.names())
    assert {spec.name for spec in specs[heads:]} == {"arcface"}
    assert len({spec.label for spec in specs}) == len(specs)


def test_parameters_are_numbers_words_or_yes_and_no() -> None:
    spec = parse_loss("arcface( m = 0.3 , continuation='classic')")
    assert spec == LossSpec("arcface", {"m": 0.3, "continuation": "classic"})
    assert parse_loss("arcface+triplet(mining=semi-hard, m=.2)").terms[0].parameters == {
        "mining": "semi-hard",
        "m": 0.2,
    }


def test_centres_and_filter_are_said_in_the_brackets_of_the_margin() -> None:
    spec = parse_loss("arcface(m=0.3, centers=3, filter=0.6)")
    assert spec == LossSpec("arcface", {"m": 0.3}, centers_per_class=3, filter_above=0.6)
    assert isinstance(spec.centers_per_class, int)
    assert spec.label == "arcface-m0.3-centers3-filter0.6"


def test_terms_come_with_parameters_and_weights_in_the_order_written() -> None:
    spec = parse_loss("arcface(m=0.3)+intra:0.1+triplet(m=0.2,mining=semi-hard):0.5+inter(over=batch)")
    assert spec.margin == {"m": 0.3}
    assert spec.terms == (
        TermSpec("intra", 0.1),
        TermSpec("triplet", 0.5, {"m": 0.2, "mining": "semi-hard"}),
        TermSpec("inter", losses.InterLoss.default_weight, {"over": "batch"}),
    )


def test_commas_within_brackets_do_not_part_losses() -> None:
    specs = parse_losses("softmax+center, combined(m1=1, m2=0.3,m3=0.1),arcface+triplet(m=0.2,mining=all):1,arcface")
    assert [spec.name for spec in specs] == ["softmax", "combined", "arcface", "arcface"]
    assert specs[1].margin == {"m1": 1.0, "m2": 0.3, "m3": 0.1}
    assert specs[2].terms == (TermSpec("triplet", 1.0, {"m": 0.2, "mining": "all"}),)


def test_the_label_tells_losses_of_one_name_apart() -> None:
    text = (
        "arcface,arcface(m=0.3),arcface(m=0.2),arcface+intra:0.1,arcface+intra:1e-3+inter:2,arcface+triplet(m=0.2):.5"
    )
    assert [spec.label for spec in parse_losses(text)] == [
        "arcface",
        "arcface-m0.3",
        "arcface-m0.2",
        "arcface+intra0.1",
        "arcface+intra0.001+inter2",
        "arcface+triplet0.5-m0.2",
    ]


@pytest.mark.parametrize("spec", all_losses(), ids=lambda spec: spec.label)
def test_a_label_is_fit_for_a_folder_on_any_system(spec: LossSpec) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", spec.label)


@given(st.text("arcfeintnl+:.,()=0m ", max_size=30))
def test_whatever_is_typed_is_read_or_refused_in_a_sentence(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert all(spec.name in loss_names() for spec in parse_losses(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arcfase", r"there is no loss 'arcfase'\. Did you mean arcface\?"),
        ("", "the loss '' cannot be read"),
        ("arcface(m=0.3", "cannot be read; write a name, or a name with parameters"),
        ("arcface(0.3)", r"cannot be read at '0\.3'; write name=value"),
        ("arcface(=0.3)", "cannot be read at '=0.3'"),
        ("arcface(n=0.3)", "arcface has no parameter 'n'. Known: m, .*, centers, filter"),
        ("arcface(m=0.3,m=0.4)", r"m is given twice in 'arcface\(m=0\.3,m=0\.4\)'; give it once"),
        ("arcface(m=28.6)", "If that is in degrees"),
        ("arcface(m=nan)", "got nan"),
        ("arcface(m=wide)", "wide"),
        ("arcface(m=true)", "m must be a number, .*; got True"),
        ("arcface(center=3)", r"arcface has no parameter 'center'\. Did you mean centers\?"),
        ("arcface(centers=2.5)", r"centers must be a whole number from 1, .*; got 2\.5\. Write centers=3"),
        ("arcface(centers=0)", r"centers must be a whole number from 1, .*; got 0"),
        ("arcface(centers=true)", "centers must be a whole number from 1, .*; got True"),
        ("arcface(centers=inf)", "centers must be a whole number from 1, .*; got inf"),
        ("arcface(centers=nan)", "centers must be a whole number from 1, .*; got nan"),
        ("arcface(centers=few)", "centers must be a whole number from 1, .*; got 'few'"),
        ("arcface(filter=1.2)", r"filter must be a cosine in \(−1, 1\], .*; got 1\.2\. Write filter=0\.6"),
        ("arcface(filter=low)", "filter must be a cosine in .*; got 'low'"),
        ("softmax(m=0.3)", "softmax has no margin and takes no parameters"),
        ("softmax(centers=3)", r"takes no parameters; got 'softmax\(centers=3\)'"),
        ("arcface:0.5", r"only terms have a weight; got 'arcface:0\.5'\. Write arcface\+intra:0\.1"),
        ("arcface+", r"the loss 'arcface\+' cannot be read at ''; write a name, .*: arcface\+intra:0\.1"),
        ("+intra", r"the loss '\+intra' cannot be read at ''"),
        ("arcface+intra+", "cannot be read at ''"),
        ("arcface+intra:", "the weight of intra must be a positive number; got ''"),
        ("arcface+intra:0", r"the weight of intra must be a positive number; got '0'\. Write intra:0\.1, or leave"),
        ("arcface+intra:-1", "weight of intra must be a positive number; got '-1'"),
        ("arcface+intra:nan", "weight of intra must be a positive number; got 'nan'"),
        ("arcface+intra:inf", "weight of intra must be a positive number; got 'inf'"),
        ("arcface+intra:much", "weight of intra must be a positive number; got 'much'"),
        ("arcface+intra:0.1:0.2", "cannot be read at 'intra:0.1:0.2'"),
        ("arcface+intar:0.1", r"there is no term 'intar'\. Did you mean intra\?"),
        ("arcface+intra:0.1+intra:0.2", r"the term intra is named twice in 'arcface\+intra:0\.1\+intra:0\.2'"),
        (
            "arcface+cosface",
            r"cosface is the loss of a head, .*has one already; got it as a term\. Known terms: .*intra",
        ),
        ("intra:0.1", "intra is a term and stands beside"),
        ("intra", r"intra is a term and stands beside a head's loss; got it alone\. Write arcface\+intra"),
        ("triplet+arcface", "triplet is a term and stands beside a head's loss"),
        ("arcface+intra(m=1)", r"intra has no parameter 'm'\. It has none; leave the brackets out"),
        ("arcface+triplet(margin=1)", r"triplet has no parameter 'margin'\. Did you mean mining\?"),
        ("arcface+triplet(m=20)", "If that is in degrees"),
        ("arcface+triplet(m=yes)", r"triplet's m must be a number, such as 0\.35; got 'yes'"),
        ("arcface+triplet(mining=harder)", r"triplet's mining cannot be 'harder'\. Did you mean hard\?"),
        ("arcface+triplet(mining=true)", "triplet's mining cannot be True"),
        ("arcface+circle(m=0.2,m=0.3)", "m is given twice"),
        ("arcface+center(dim=3)", r"center has no parameter 'dim'"),
    ],
)
def test_a_mistake_in_a_loss_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_loss(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no loss was named. Known: softmax, "),
        (",,", "no loss was named"),
        ("arcface,arcface", "the loss arcface is named twice"),
        ("arcface+intra,arcface+intra:0.1", r"the loss arcface\+intra0\.1 is named twice"),
        ("arcface+intra:1+inter:1,arcface+inter:1+intra:1", r"the loss arcface\+inter1\+intra1 is named twice"),
        ("softmax,cosfase", "Did you mean cosface"),
    ],
)
def test_a_mistake_in_a_list_of_losses_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_losses(text)


def test_losses_may_be_given_one_by_one() -> None:
    spec = parse_loss("cosface(m=0.2)")
    assert as_specs(["softmax", spec]) == [parse_loss("softmax"), spec] == as_specs("softmax,cosface(m=0.2)")
    with pytest.raises(ConfigError, match=r'a loss is written as a word, such as "arcface\(m=0\.3\)"; got 3\.'):
        as_specs([3])  # type: ignore[list-item]

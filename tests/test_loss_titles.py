from __future__ import annotations

from dataclasses import dataclass

import pytest

from arcwise import margins
from arcwise.loss_titles import base_of, heading_of, is_alone, title_of, title_of_settings
from arcwise.training.loss_spec import all_losses, parse_loss


@pytest.mark.parametrize(
    ("loss", "shown"),
    [
        ("softmax", "softmax"),
        ("arcface", "ArcFace"),
        ("mv-softmax", "MV-Softmax"),
        ("li-arcface", "Li-ArcFace"),
        ("long-tail", "Long-Tail"),
        ("sphereface2", "SphereFace2"),
        ("norm-softmax", "norm-softmax"),
        ("softmax (my run)", "softmax (my run)"),
        ("arcface-m0.3", "ArcFace with m = 0.3"),
        ("arcface-m1e-05", "ArcFace with m = 1e-05"),
        ("combined-m11.0-m20.3", "combined margin with m1 = 1 and m2 = 0.3"),
        ("arcface-centers3", "ArcFace with 3 centres"),
        ("arcface-m0.3-centers3-filter0.6", "ArcFace with m = 0.3, 3 centres and filter = 0.6"),
        ("arcface+intra0.1", "ArcFace + intra 0.1"),
        ("arcface+center1e-05", "ArcFace + center 1e-05"),
        ("softmax+proxy-anchor0.1 (a run)", "softmax + proxy-anchor 0.1 (a run)"),
        ("arcface-centers3+intra0.1+inter0.2", "ArcFace with 3 centres + intra 0.1 + inter 0.2"),
        ("arcface+triplet0.5-m0.2-miningsemi-hard", "ArcFace + triplet 0.5 (m = 0.2, mining = semi-hard)"),
        ("mine", "mine"),
        ("arcfaced", "arcfaced"),
    ],
)
def test_losses_are_written_by_their_proper_names(loss: str, shown: str) -> None:
    assert title_of(loss) == shown


def test_every_loss_that_can_be_compared_has_a_name_of_its_own_that_is_not_the_registered_one() -> None:
    labels = [spec.label for spec in all_losses()]
    titles = [title_of(label) for label in labels]
    assert len(set(titles)) == len(titles)
    assert [label for label in labels if title_of(label) == label] == ["softmax", "norm-softmax"]


def test_a_margin_is_called_by_its_class_unless_it_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins.base, "_registry", dict(margins.base._registry))

    @margins.register("my-face")
    @dataclass(frozen=True)
    class MyFace(margins.MVSoftmax):
        pass

    assert MyFace.title == title_of("my-face") == "MyFace"


def test_a_name_that_stands_alone_begins_with_a_capital_only_where_it_is_made_of_ordinary_words() -> None:
    assert [heading_of(loss) for loss in ("softmax", "combined", "arcface-centers3", "mine")] == [
        "Softmax",
        "Combined margin",
        "ArcFace with 3 centres",
        "mine",
    ]


@pytest.mark.parametrize("written", ["arcface", "softmax", "arcface(centers=3,filter=0.6)+intra:0.1+triplet:0.5"])
def test_a_configuration_and_a_label_give_the_same_name(written: str) -> None:
    spec = parse_loss(written)
    settings = {
        "name": spec.name,
        "centers_per_class": spec.centers_per_class,
        "filter_above": spec.filter_above,
        "margin": {"m": 0.5},
        "terms": {term.name: {"weight": term.weight} for term in spec.terms},
    }
    assert title_of_settings(settings) == heading_of(spec.label)


def test_a_configuration_without_a_loss_has_no_name() -> None:
    assert title_of_settings({}) == ""


def test_parameters_terms_and_run_names_are_not_part_of_the_base_name() -> None:
    assert base_of("norm-softmax (a)") == "norm-softmax"
    assert base_of("arcface-m0.3") == "arcface"
    assert base_of("arcface+intra0.1") == "arcface"


def test_a_loss_with_a_term_is_not_the_loss_alone() -> None:
    assert is_alone("softmax (a)", "softmax")
    assert not is_alone("softmax+center0.003", "softmax")

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise import margins
from arcwise.data import Dataset
from arcwise.training.build import build_head
from arcwise.training.config import Config
from arcwise.training.loss_spec import parse_loss, parse_losses
from arcwise.training.recipes import Wishes, resolve
from arcwise.training.term_table import build_terms
from arcwise.training.tuning.space import Dimension, Space, space_of, with_parameters


def config_of(loss: str, data: Dataset) -> Config:
    return resolve(data, Wishes(loss=parse_loss(loss), device="cpu", dim=8), reference="digits").config


def space(loss: str, data: Dataset) -> Space:
    return space_of(config_of(loss, data), parse_loss(loss))


WITH_TERMS = "arcface+intra:0.2+triplet(m=0.2)"


def test_the_default_setting_changes_nothing(small_digits: Dataset) -> None:
    for spec in parse_losses("all"):
        config = resolve(small_digits, Wishes(loss=spec, device="cpu", dim=8), reference="digits").config
        assert with_parameters(config, space_of(config, spec).default) == config


def test_every_loss_has_something_to_search_and_every_corner_can_be_trained(small_digits: Dataset) -> None:
    for spec in parse_losses("all"):
        config = resolve(small_digits, Wishes(loss=spec, device="cpu", dim=8), reference="digits").config
        searched = space_of(config, spec)
        assert searched.dimensions
        for share in (0.0, 1.0):
            made = with_parameters(config, searched.at([share] * len(searched.dimensions)))
            build_head(made, 10, 7)
            build_terms(made.loss.terms, 8, 10)


def test_a_margin_is_searched_with_its_scale_and_softmax_by_its_learning_rate(small_digits: Dataset) -> None:
    config = config_of("arcface", small_digits)
    scale, m = space("arcface", small_digits).dimensions
    assert (scale.name, scale.log) == ("scale", True)
    assert (scale.low, scale.high) == pytest.approx((0.35 * config.loss.scale, 5 * config.loss.scale))
    assert (m.name, m.low, m.high, m.default) == ("m", 0.1, 0.7, 0.5)
    softmax = config_of("softmax", small_digits)
    assert [d.name for d in space("softmax", small_digits).dimensions] == ["lr"]
    assert with_parameters(softmax, {"lr": 0.5}).train.lr == pytest.approx(softmax.train.lr / 2)


def test_a_margin_that_owns_its_scale_is_searched_by_the_learning_rate(small_digits: Dataset) -> None:
    names = [name for name in margins.names() if margins.margin_class(name).owns_scale]
    assert names
    for name in names:
        assert "scale" not in space(name, small_digits).default
        assert "lr" in space(name, small_digits).default


def test_a_term_is_searched_by_its_weight_and_its_parameters(small_digits: Dataset) -> None:
    found = {d.name: d for d in space(WITH_TERMS, small_digits).dimensions}
    assert list(found) == ["scale", "m", "intra.weight", "triplet.weight"]
    intra = found["intra.weight"]
    assert (intra.low, intra.high, intra.default, intra.log) == pytest.approx((0.02, 2.0, 0.2, True))
    assert "triplet.m" in space("arcface+triplet", small_digits).default
    config = config_of(WITH_TERMS, small_digits)
    made = with_parameters(config, {"intra.weight": 0.7})
    assert made.loss.terms["intra"]["weight"] == 0.7
    assert made.loss.terms["triplet"] == config.loss.terms["triplet"]


def test_what_the_user_gave_stays(small_digits: Dataset) -> None:
    loss = "arcface(m=0.3,centers=3)"
    searched = space(loss, small_digits)
    assert [dimension.name for dimension in searched.dimensions] == ["scale"]
    made = with_parameters(config_of(loss, small_digits), searched.at([0.2]))
    assert (made.loss.margin["m"], made.loss.centers_per_class) == (0.3, 3)


@given(st.floats(0, 1), st.booleans())
def test_shares_and_values_belong_together(share: float, log: bool) -> None:
    dimension = Dimension("x", 0.5, 8.0, 1.0, log=log)
    value = dimension.at(share)
    assert 0.5 <= value <= 8.0
    assert dimension.share_of(value) == pytest.approx(share, abs=1e-3)


def test_equal_shares_of_a_logarithmic_dimension_are_equal_ratios() -> None:
    dimension = Dimension("x", 1.0, 16.0, 1.0, log=True)
    assert [dimension.at(share) for share in (0, 0.25, 0.5, 1)] == [1, 2, 4, 16]


def test_a_default_outside_the_bounds_counts_as_the_nearest_end() -> None:
    dimension = replace(Dimension("m", 0.1, 0.7, 0.05))
    assert dimension.share_of(dimension.default) == 0

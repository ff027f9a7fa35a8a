from __future__ import annotations

import pytest

from arcwise import losses
from arcwise.errors import ConfigError
from arcwise.training.loss_spec import parse_loss
from arcwise.training.term_table import build_terms, check_table, table_of


def test_the_table_leaves_nothing_to_be_chosen() -> None:
    table = table_of(parse_loss("arcface+intra+triplet(m=0.2):2").terms)
    assert table == {
        "intra": {"weight": losses.IntraLoss.default_weight},
        "triplet": {"weight": 2.0, "m": 0.2, "mining": "hard"},
    }
    check_table(table)


@pytest.mark.parametrize("name", losses.names())
def test_what_is_in_the_table_is_what_is_built(name: str) -> None:
    built = build_terms(table_of(parse_loss(f"arcface+{name}:0.3").terms), 5, 7)
    term, weight = built[name]
    assert weight == 0.3
    assert repr(term) == repr(losses.build(name, 5, 7))


def test_an_empty_table_of_a_term_is_its_usual_form() -> None:
    term, weight = build_terms({"circle": {}}, 5, 7)["circle"]
    assert weight == losses.CircleLoss.default_weight
    assert repr(term) == repr(losses.CircleLoss())


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf"), True, "0.1"])
def test_a_weight_that_is_no_positive_number_is_refused(weight: object) -> None:
    with pytest.raises(ConfigError, match=r"loss\.terms\.intra\.weight must be a positive number; got "):
        check_table({"intra": {"weight": weight}})  # type: ignore[dict-item]

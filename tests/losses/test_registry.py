from __future__ import annotations

from typing import Any

import pytest
import torch

import arcwise
from arcwise import losses
from arcwise.errors import ConfigError


def test_the_names_are_these() -> None:
    assert set(losses.names()) == {"intra", "inter", "triplet", "center", "circle", "proxy-anchor"}


@pytest.mark.parametrize("name", losses.names())
def test_a_term_is_built_by_name_with_its_defaults_written_out(name: str) -> None:
    term = losses.build(name, 3, 4, losses.defaults(name))
    assert type(term) is losses.term_class(name)
    assert getattr(arcwise.losses, type(term).__name__) is type(term)
    assert repr(term) == repr(losses.build(name, 3, 4))
    assert isinstance(term, torch.nn.Module)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("tripelt", {}, r"there is no term 'tripelt'\. Did you mean triplet\?"),
        ("triplet", {"margin": 0.2}, r"triplet has no parameter 'margin'\. Did you mean mining\? Known: m, mining"),
        ("intra", {"m": 0.2}, r"intra has no parameter 'm'\. It has none; leave the brackets out"),
        ("center", {"dim": 3}, r"center has no parameter 'dim'\. .*Known: alpha"),
        ("triplet", {"m": "wide"}, r"triplet's m must be a number, such as 0\.35; got 'wide'"),
        ("triplet", {"m": True}, "triplet's m must be a number, .*; got True"),
        ("triplet", {"mining": 3.0}, r"triplet's mining cannot be 3\.0\. Known: hard, semi-hard, all"),
        ("triplet", {"mining": "har"}, r"triplet's mining cannot be 'har'\. Did you mean hard\?"),
        ("circle", {"gamma": float("nan")}, "gamma must be a positive number; got nan"),
    ],
)
def test_a_mistake_in_a_term_is_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        losses.build(name, 3, 4, parameters)
    with pytest.raises(ConfigError, match=message):
        losses.check(name, parameters)


@pytest.mark.parametrize("name", losses.names())
def test_checking_draws_no_random_numbers(name: str) -> None:
    before = torch.get_rng_state()
    losses.check(name, losses.defaults(name))
    assert torch.equal(torch.get_rng_state(), before)

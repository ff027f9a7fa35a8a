from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.errors import ConfigError
from arcwise.margins import CosFace


@given(m=st.floats(0, 1.99), theta=st.floats(0, math.pi))
@settings(deadline=None, max_examples=60)
def test_the_target_is_the_cosine_less_m_with_slope_one(m: float, theta: float) -> None:
    """Wang et al. 2018, eq. 4: s·(cos θ − m)."""
    cos = torch.tensor([math.cos(theta)], dtype=torch.float64, requires_grad=True)
    psi = CosFace(m).target(cos)
    psi.backward()
    assert psi.item() == pytest.approx(math.cos(theta) - m, abs=1e-15)
    assert cos.grad is not None
    assert cos.grad.item() == 1.0


def test_there_is_nothing_to_detach() -> None:
    assert CosFace().gradient == "exact"


@pytest.mark.parametrize("m", [-0.1, 2.0, 20.0, math.nan])
def test_a_margin_out_of_range_is_refused(m: float) -> None:
    with pytest.raises(ConfigError) as error:
        CosFace(m)
    assert str(error.value) == (
        f"m must be in [0, 2), a difference of cosines; got {m:g}. Usual values are 0.2 to 0.4."
    )

"""Every margin against its paper's formula, written down once more in tests/shared/naive_losses.py."""

from __future__ import annotations

import pytest
import torch
from definition_cases import CASES, DTYPES, Case, batch_for, case_head, check_definition
from naive_losses import number, samples_of

from arcwise.heads.margin import ENGINES
from arcwise.margins import names

every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "auto"])
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@every_engine
@every_case
@every_dtype
def test_loss_and_gradients_are_those_of_the_papers_formula(engine: str, case: Case, dtype: torch.dtype) -> None:
    check_definition(case, engine, dtype)


def test_every_margin_has_a_formula() -> None:
    assert {case.margin.name for case in CASES.values()} == set(names())


def test_the_batch_holds_what_the_formulas_tell_apart() -> None:
    """Embeddings all but on another class's centre, and lengths on all sides of MagFace's 3 and 8."""
    head = case_head(CASES["magface"], "reference")
    x, labels = batch_for(head, 3)
    samples = samples_of(x.double(), head.weight.detach().double(), labels)
    assert sum(max(map(number, q.others)) > 0.95 for q in samples) >= 3
    assert sum(max(map(number, q.others)) < number(q.own) for q in samples) >= 2
    lengths = [number(q.length) for q in samples]
    assert min(lengths) < 3 < sorted(lengths)[5] < 8 < max(lengths)

from __future__ import annotations

import inspect
import textwrap

from arcwise.heads import margin
from arcwise.margins.arcface import ArcFace
from arcwise.reporting.document import _CODE, _MARGIN_CODE
from arcwise.reporting.listings import Excerpt, listing, listings


def test_every_excerpt_of_the_report_is_found_in_the_source() -> None:
    for excerpt in (*_CODE, *_MARGIN_CODE.values()):
        found = listing(excerpt)
        assert found is not None, excerpt
        for name in excerpt.names:
            assert name.rpartition(".")[2] in found.code, f"{name} is gone from {excerpt.module}"


def test_a_class_is_shown_with_its_decorators() -> None:
    found = listing(Excerpt("arcwise.margins.arcface", ("ArcFace",)))
    assert found is not None
    assert found.code == inspect.getsource(ArcFace).rstrip()
    assert found.path == "arcwise/margins/arcface.py"


def test_a_method_is_shown_without_its_indentation() -> None:
    found = listing(Excerpt("arcwise.heads.margin", ("MarginHead.loss",)))
    assert found is not None
    assert found.code == textwrap.dedent(inspect.getsource(margin.MarginHead.loss)).rstrip()


def test_a_renamed_function_falls_back_to_the_whole_module() -> None:
    found = listing(Excerpt("arcwise.margins.arcface", ("NoLongerThere",)))
    assert found is not None
    assert "class ArcFace" in found.code
    assert "import" not in found.code


def test_a_module_that_is_gone_is_left_out() -> None:
    assert listings([Excerpt("arcwise.margins.no_such_margin")]) == ()

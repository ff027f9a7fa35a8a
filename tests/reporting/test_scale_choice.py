from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.margins import ArcFace, choose_scale
from arcwise.reporting.reading import read_run
from arcwise.reporting.scale_choice import ANGLES, logit_row, margin_words, scale_sentence

Maker = Callable[..., Path]


def test_the_row_of_logits_is_what_arcface_says(tmp_path: Path, make_run: Maker) -> None:
    row = logit_row("arcface", read_run(make_run(tmp_path / "run")))
    assert row is not None
    for angle, plain, lowered in zip(ANGLES, row.plain, row.lowered, strict=True):
        theta = math.radians(angle)
        expected = math.cos(theta + 0.5) if theta + 0.5 <= math.pi else math.cos(theta) - 1 + math.cos(0.5)
        assert plain == pytest.approx(12.6 * math.cos(theta))
        assert lowered == pytest.approx(12.6 * expected)


def test_softmax_has_neither_margin_nor_scale(tmp_path: Path, make_run: Maker) -> None:
    run = read_run(make_run(tmp_path / "run", "softmax"))
    assert logit_row("softmax", run) is None
    assert scale_sentence("softmax", run, 10, 3) == ""


def test_a_scale_of_the_rule_is_said_to_follow_it(tmp_path: Path, make_run: Maker) -> None:
    scale = choose_scale(10, 3, ArcFace(0.5)).scale
    words = scale_sentence("arcface", read_run(make_run(tmp_path / "run", loss_settings={"scale": scale})), 10, 3)
    assert "This is what the rule gives: with N\u00a0=\u00a010 and D\u00a0=\u00a03" in words
    assert "φ\u00a0=\u00a066.2° apart" in words


def test_another_scale_is_held_against_the_rule(tmp_path: Path, make_run: Maker) -> None:
    words = scale_sentence("arcface", read_run(make_run(tmp_path / "run", loss_settings={"scale": 64.0})), 10, 3)
    assert "was trained at s\u00a0=\u00a064 with" in words
    assert "The rule alone would give s\u00a0=\u00a012.6" in words


def test_a_margin_without_room_is_said_to_have_none(tmp_path: Path, make_run: Maker) -> None:
    words = scale_sentence("arcface", read_run(make_run(tmp_path / "run")), 100, 2)
    assert "The rule finds no room for this margin" in words


def test_angles_are_also_given_in_degrees() -> None:
    assert margin_words(ArcFace(0.5)) == "m = 0.5 rad (28.6°)"

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.margins import ArcFace, choose_scale
from arcwise.reporting.reading import read_run
from arcwise.reporting.scale_choice import ANGLES, logit_row, margin_words, scale_paragraphs, scale_sentence

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


def test_losses_with_the_same_margin_and_scale_share_a_sentence(tmp_path: Path, make_run: Maker) -> None:
    runs = {
        loss: read_run(make_run(tmp_path / loss, loss.partition("+")[0]))
        for loss in ("arcface", "arcface+intra0.1", "cosface")
    }
    preface, choices = scale_paragraphs(runs, 10, 3)
    assert preface == ""
    assert [words.partition(" trained")[0] for words in choices] == [
        "ArcFace and ArcFace + intra 0.1 were",
        "CosFace was",
    ]
    assert choices[1] == scale_sentence("cosface", runs["cosface"], 10, 3)


def test_that_the_rule_gave_many_scales_is_said_once(tmp_path: Path, make_run: Maker) -> None:
    scale = choose_scale(10, 3, ArcFace(0.5)).scale
    settings = [{"scale": scale} for _ in range(7)] + [{"scale": 64.0}]
    runs = {
        f"arcface (run {number})": read_run(make_run(tmp_path / str(number), loss_settings=setting))
        for number, setting in enumerate(settings)
    }
    for number, run in enumerate(runs.values()):  # margins that differ, so that no two share a sentence
        run.config["loss"]["margin"]["m"] = 0.5 - 1e-4 * number if number < 7 else 0.5
    preface, choices = scale_paragraphs(runs, 10, 3)
    assert preface.startswith("Where nothing else is said, the scale is what the rule gives: with N")
    assert len(choices) == 8
    assert sum("what the rule gives" in words for words in choices) == 0
    assert "The rule alone would give" in choices[-1]

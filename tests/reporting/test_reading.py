from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.errors import RunError
from arcwise.reporting.reading import read_comparison, read_run

Maker = Callable[..., Path]


def test_a_run_is_read_whole(tmp_path: Path, make_run: Maker) -> None:
    run = read_run(make_run(tmp_path / "mnist-arcface", seed=3, health=["the scale is too small"]))
    assert (run.loss, run.seed, run.epochs, run.num_classes) == ("arcface", 3, 10, 10)
    assert run.test_counts == (3,) * 10
    assert [event.message for event in run.health] == ["the scale is too small"]
    assert run.finished.isoformat() == "2025-06-15T15:06:43+00:00"


def test_class_names_are_found_beside_the_embeddings_too(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run", classes=("猫", "b"))
    facts = json.loads((folder / "evaluation.json").read_text())
    del facts["classes"]
    (folder / "evaluation.json").write_text(json.dumps(facts))
    assert read_run(folder).classes == ("猫", "b")


def test_a_run_without_embeddings_still_reads(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run")
    (folder / "embeddings" / "final.safetensors").write_bytes(b"damaged")
    assert read_run(folder).test_counts == ()


def test_half_a_line_of_metrics_is_passed_over(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run", health=["once"])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "health", "step": 9')
    assert len(read_run(folder).health) == 1


def test_numbers_that_are_not_finite_are_not_measured(tmp_path: Path, make_run: Maker) -> None:
    run = read_run(make_run(tmp_path / "run", values={"accuracy": float("nan"), "eer": 0.1}))
    assert run.number("accuracy") is None
    assert run.number("eer") == 0.1


def test_an_unfinished_run_names_the_command_that_finishes_it(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run")
    (folder / "evaluation.json").unlink()
    with pytest.raises(RunError, match=r"not finished\. Finish it with: arcwise train .*run --resume"):
        read_run(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not valid JSON"),
        (b"\xff\xfe", "is not valid JSON"),
        (b"[]", "holds a list where an object belongs"),
        (b"{}", 'has no usable "columns"'),
        (b'{"columns": [], "rows": {}}', "holds no measurement"),
        (b'{"columns": [{}], "rows": {}}', 'has a column without a "key"'),
        (b'{"columns": [{"key": "eer"}], "rows": {"softmax": 3}}', 'has no "values" for softmax'),
    ],
)
def test_a_broken_comparison_is_one_plain_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "comparison.json").write_bytes(content)
    with pytest.raises(RunError, match=message):
        read_comparison(tmp_path)


def test_a_broken_config_is_one_plain_sentence(tmp_path: Path, make_run: Maker) -> None:
    folder = make_run(tmp_path / "run")
    (folder / "config.toml").write_text("[data\n")
    with pytest.raises(RunError, match=r"config\.toml is not valid TOML"):
        read_run(folder)


def test_a_comparison_outlives_one_of_its_runs(tmp_path: Path, make_comparison: Maker) -> None:
    folder = make_comparison(tmp_path / "compare")
    (folder / "softmax-seed1" / "config.toml").unlink()
    comparison = read_comparison(folder)
    assert [run.seed for run in comparison.runs["softmax"]] == [0, 2]
    assert len(comparison.values["softmax"]["accuracy"]) == 3
    assert "softmax-seed1 is not a run" in comparison.missing[0]

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from arcwise.reporting.reading import read_run
from arcwise.reporting.settings import flat, shared_and_different, written

Maker = Callable[..., Path]


def test_nested_tables_become_dotted_names() -> None:
    assert dict(flat({"arcwise": "0.1.0", "loss": {"name": "arcface", "margin": {"m": 0.5}}})) == {
        "loss.name": "arcface",
        "loss.margin.m": "0.5",
    }


def test_values_are_written_as_in_toml() -> None:
    assert [written(value) for value in (True, 0.0005, [1, 2], "x")] == ["true", "0.0005", "[1, 2]", "x"]


def test_a_scale_of_zero_is_none() -> None:
    assert dict(flat({"loss": {"scale": 0.0}})) == {"loss.scale": "none"}


def test_settings_are_split_into_shared_and_different(tmp_path: Path, make_run: Maker) -> None:
    runs = {
        loss: [read_run(make_run(tmp_path / f"{loss}{seed}", loss, seed=seed)) for seed in (0, 1)]
        for loss in ("softmax", "arcface")
    }
    shared, different = shared_and_different(runs)
    assert ("train.seed", "0, 1") in shared
    assert ("data.name", "mnist") in shared
    assert ("loss.name", ["softmax", "arcface"]) in different
    assert ("loss.margin.m", ["—", "0.5"]) in different

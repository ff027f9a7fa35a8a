from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from arcwise.benchmarks import label_noise
from arcwise.benchmarks.label_noise import Cell, LabelNoise, run
from arcwise.errors import ConfigError, RunError
from arcwise.training import RunFolder
from arcwise.training.loss_spec import parse_losses

LOSSES = "arcface,arcface(centers=3)"
WITHOUT, SUGGESTED = "arcface, again without those listed", "arcface, again with the labels suggested"
SHORT: dict[str, Any] = {"epochs": 2, "dim": 4, "device": "cpu"}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three clouds of features."""
    generator = np.random.default_rng(0)
    labels = np.arange(180) % 3
    rows = 2 * np.eye(3, 6)[labels] + 0.3 * generator.standard_normal((180, 6))
    file = tmp_path_factory.mktemp("data") / "clouds.npz"
    np.savez(file, features=rows.astype(np.float32), labels=labels)
    return str(file)


@pytest.fixture(scope="module")
def measured(features: str, tmp_path_factory: pytest.TempPathFactory) -> LabelNoise:
    out = tmp_path_factory.mktemp("out") / "noise"
    return run(features, losses=LOSSES, shares=[0.4, 0.2], seeds=2, out=out, **SHORT)


def made(**scores: list[float]) -> LabelNoise:
    cells = {
        loss: tuple(
            Cell({"accuracy": (score,)}, (0.5,) if place else (), (0.6,) if place else ())
            for place, score in enumerate(row)
        )
        for loss, row in scores.items()
    }
    return LabelNoise(Path("folder"), "made", ("accuracy",), (0.0, 0.1, 0.2), 1, cells)


def test_every_loss_is_trained_under_every_share(measured: LabelNoise) -> None:
    assert measured.shares == (0.0, 0.2, 0.4)
    assert list(measured.cells) == ["arcface", "arcface-centers3", WITHOUT, SUGGESTED]
    for loss, cells in list(measured.cells.items())[:2]:
        for share, cell in zip(measured.shares, cells, strict=True):
            for seed in range(2):
                folder = RunFolder.open(measured.path / f"shuffled-{share:g}" / f"{loss}-seed{seed}")
                assert folder.config().data.label_noise == share
                evaluation = folder.evaluation()
                assert evaluation is not None
                assert cell.scores["accuracy"][seed] == evaluation["accuracy"]
                if share:
                    assert cell.found[seed] == evaluation["shuffled_found"]
                    assert cell.average_precision[seed] == evaluation["shuffled_average_precision"]
            assert len(cell.found) == (2 if share else 0)


@pytest.mark.parametrize(("setting", "loss"), [("leave-out", WITHOUT), ("relabel", SUGGESTED)])
def test_the_first_loss_is_trained_again_with_what_its_own_run_listed(
    measured: LabelNoise, setting: str, loss: str
) -> None:
    for share, cell in zip(measured.shares, measured.cells[loss], strict=True):
        assert cell.found == cell.average_precision == ()
        for seed in range(2):
            first, again = (
                RunFolder.open(measured.path / f"shuffled-{share:g}{which}" / f"arcface-seed{seed}")
                for which in ("", f"-{setting}-seed{seed}")
            )
            config, evaluation = again.config(), again.evaluation()
            heeded = config.data.leave_out if loss == WITHOUT else config.data.relabel
            assert heeded == str(first.mislabelled_file.resolve())
            assert (config.data.label_noise, config.train.seed) == (share, seed)
            assert evaluation is not None
            assert cell.scores["accuracy"][seed] == evaluation["accuracy"]


def test_the_second_training_can_be_left_out(features: str, tmp_path: Path) -> None:
    result = run(features, losses="arcface", shares=[0.2], seeds=1, out=tmp_path / "noise", again=False, **SHORT)
    assert list(result.cells) == ["arcface"]


def test_the_result_is_written_as_plain_json(measured: LabelNoise) -> None:
    written = json.loads((measured.path / label_noise.RESULT).read_text(), parse_constant=pytest.fail)
    assert written == json.loads(json.dumps(measured.to_dict()))
    assert written["data"] == "clouds"
    assert [cell["share"] for cell in written["losses"]["arcface"]] == [0.0, 0.2, 0.4]


def test_the_usual_losses_can_be_read() -> None:
    assert "arcface-centers3-filter0.5" in [spec.label for spec in parse_losses(label_noise.LOSSES)]


def test_what_is_there_already_is_resumed_and_not_trained_again(
    measured: LabelNoise, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arcwise.training.loop.Trainer.take_step", lambda *_: pytest.fail("a step was taken"))
    again = run(features, losses=LOSSES, shares=[0.2, 0.4], seeds=2, out=measured.path, resume=True, **SHORT)
    assert again.cells == measured.cells


def test_a_folder_in_the_way_is_left_alone(measured: LabelNoise, features: str) -> None:
    message = f"{measured.path} already exists and is never overwritten. Continue it with --resume, or write elsewhere with --out DIR."
    with pytest.raises(RunError, match=re.escape(message)):
        run(features, out=measured.path, **SHORT)


def test_recovered_is_counted_from_what_the_first_loss_loses() -> None:
    result = made(arcface=[0.9, 0.8, 0.7], better=[0.85, 0.85, 0.9], worse=[0.9, 0.75, 0.6])
    assert result.recovered("better", "accuracy", 1) == pytest.approx(0.5)
    assert result.recovered("better", "accuracy", 2) == pytest.approx(1.0)
    assert result.recovered("worse", "accuracy", 2) == pytest.approx(-0.5)
    table = result.table()
    assert all(len(row) == len(table[0]) for row in table)
    assert ["  better", "", "50 %", "100 %"] in table
    assert ["  worse", "90.00 %", "75.00 %", "60.00 %"] in table
    assert ["  worse", "", "50.00 %", "50.00 %"] in table


def test_nothing_can_be_recovered_where_nothing_is_lost() -> None:
    result = made(arcface=[0.8, 0.8, 0.9], other=[0.8, 0.9, 0.7])
    assert result.recovered("other", "accuracy", 1) is None
    assert result.recovered("other", "accuracy", 2) is None
    assert ["  other", "", "–", "–"] in result.table()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": [0.2, 1.0]}, "shares of shuffled labels must be in [0, 1); got 1. 0.2 is a fifth."),
        ({"shares": [0.0]}, "there is no share of labels to shuffle. Give at least one above 0, as in --shares 0.2."),
        (
            {"settings": {"data.label_noise": "0.2"}},
            "--set data.label_noise is what this benchmark varies itself. Use --shares 0,0.2 instead.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    options: dict[str, Any], message: str, features: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        run(features, out=tmp_path / "noise", **options)
    assert not (tmp_path / "noise").exists()

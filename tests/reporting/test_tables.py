from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from arcwise.reporting.conclusion import NoisePoint
from arcwise.reporting.reading import read_run
from arcwise.reporting.scale_choice import ANGLES, LogitRow
from arcwise.reporting.tables import logit_table, noise_table, settings_tables
from arcwise.training.loss_spec import all_losses

Maker = Callable[..., Path]
LOSSES = [spec.label for spec in all_losses()]
NOISES = ("gaussian 0.1", "blur 1.5")


def points(losses: list[str]) -> list[NoisePoint]:
    return [NoisePoint(noise, loss, 0.9, 0.8) for loss in losses for noise in NOISES]


def texts(table: Any) -> list[list[str]]:
    return [[cell["text"] for cell in row] for row in table["rows"]]


def row(loss: str, scale: float, margin: str = "m = 0.5") -> LogitRow:
    return LogitRow(loss, scale, margin, (scale,) * len(ANGLES), (scale - 1,) * len(ANGLES))


def test_under_noise_a_few_losses_are_columns_and_many_are_rows() -> None:
    few, many = noise_table(points(LOSSES[:2]), ""), noise_table(points(LOSSES), "")
    assert few is not None
    assert many is not None
    assert [cells[0] for cells in texts(few)] == list(NOISES)
    assert many["head"] == ["Loss: angle / distance", *NOISES]
    assert texts(many)[:2] == [["Softmax", "90.00 / 80.00", "90.00 / 80.00"], ["AdaCos", *["90.00 / 80.00"] * 2]]
    assert len(many["rows"]) == len(LOSSES)


def test_many_losses_with_the_same_margin_and_scale_share_their_lines_and_it_is_said() -> None:
    rows = [row("arcface", 7), row("arcface-centers3", 7), row("arcface+intra0.1", 7), row("curricularface", 7)]
    rows += [row("arcface-m0.3", 7, "m = 0.3"), row("cosface", 9), row("magface", 8)]
    table = logit_table(rows, "What it is.")
    assert table is not None
    assert [cells[0] for cells in texts(table)][::2] == [
        f"{name}: s cos θ" for name in ("ArcFace", "CurricularFace", "ArcFace with m = 0.3", "CosFace", "MagFace")
    ]
    assert table["caption"] == (
        "What it is. The lines of ArcFace are also those of ArcFace with 3 centres and ArcFace + intra 0.1."
    )


def test_a_few_losses_have_lines_of_their_own() -> None:
    table = logit_table([row("arcface", 7), row("arcface+intra0.1", 7)], "What it is.")
    assert table is not None
    assert (len(table["rows"]), table["caption"]) == (4, "What it is.")


def test_the_settings_of_many_losses_are_a_row_each(tmp_path: Path, make_run: Maker) -> None:
    losses = ["softmax", "norm-softmax", "arcface", "cosface", "sphereface", "combined"]
    runs = {loss: [read_run(make_run(tmp_path / loss, loss))] for loss in losses}
    _, few = settings_tables(runs)
    _, many = settings_tables({**runs, "arcface (again)": runs["arcface"]})
    assert few is not None
    assert many is not None
    assert few["head"] == ["Setting", "Softmax", "Norm-softmax", "ArcFace", "CosFace", "SphereFace", "Combined margin"]
    assert [cells[0] for cells in texts(many)][:3] == ["Softmax", "Norm-softmax", "ArcFace"]
    assert texts(many)[3][1].replace("\u00a0", " ") == "name = cosface, scale = 24.3, margin.m = 0.35"

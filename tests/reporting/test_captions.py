from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from arcwise.reporting.captions import caption, most_confused
from arcwise.reporting.reading import Run, read_run

Maker = Callable[..., Path]


def runs(tmp_path: Path, make_run: Maker) -> dict[str, list[Run]]:
    return {loss: [read_run(make_run(tmp_path / loss, loss))] for loss in ("softmax", "arcface")}


def test_captions_hold_the_measured_numbers(tmp_path: Path, make_run: Maker) -> None:
    shown = runs(tmp_path, make_run)
    assert caption("embeddings", shown, dim=3, several_seeds=False).endswith(
        "on the sphere, coloured by class, with the class centres. Mean angle to the own class mean: softmax 12.3° and ArcFace 4.9°."
    )
    assert "softmax 2.31 % at a threshold of 24.6° and ArcFace 1.12 %" in caption(
        "angles", shown, dim=3, several_seeds=False
    )


def test_a_projection_is_called_one(tmp_path: Path, make_run: Maker) -> None:
    assert "in a projection" in caption("embeddings", runs(tmp_path, make_run), dim=128, several_seeds=False)
    assert "on the circle" in caption("embeddings", {}, dim=2, several_seeds=False)


def test_the_seed_is_named_where_there_are_several(tmp_path: Path, make_run: Maker) -> None:
    assert caption("training", runs(tmp_path, make_run), dim=3, several_seeds=True).endswith("Seed 0 is shown.")


def test_the_most_frequent_confusion_is_named(tmp_path: Path, make_run: Maker) -> None:
    run = read_run(make_run(tmp_path / "run"))
    assert (
        most_confused("arcface", run) == "ArcFace: 960 of 972 on the diagonal; most often 4 is taken for 9 (12 times)."
    )


def test_an_unknown_figure_gets_its_name() -> None:
    assert caption("loss_surface", {}, dim=3, several_seeds=False) == "Loss surface."


def test_captions_of_many_losses_send_to_the_table_and_say_which_are_shown(tmp_path: Path, make_run: Maker) -> None:
    losses = ["softmax", "arcface", "cosface", "sphereface", "norm-softmax", "combined", "adacos"]
    many = {loss: [read_run(make_run(tmp_path / loss, loss))] for loss in losses}
    for stem in ("embeddings", "angles", "training", "robustness"):
        words = caption(stem, many, dim=3, several_seeds=False, selection="Seven of 23 losses are shown.")
        assert " Seven of 23 losses are shown. " in words
        assert words.endswith("in the table of results.")
    words = caption("confusion", many, dim=3, several_seeds=False)
    assert words.endswith("On the diagonal are 960 of 972 samples for each of these losses.")

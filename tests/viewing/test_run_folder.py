"""Run folders are read with whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from arcwise.errors import RunError
from arcwise.progress import Reporter
from arcwise.viewing.run_folder import Run, open_comparison, open_run, spread_sample

MakeRun = Callable[..., Path]


class Listener(Reporter):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, text: str = "") -> None:
        self.heard.append(text)

    def warn(self, text: str) -> None:
        self.heard.append(text)


def write_embeddings(path: Path, labels: list[int], **more: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    embeddings = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(np.float32)
    save_file({"embeddings": embeddings, "labels": np.array(labels), **more}, path)


def test_a_run_knows_its_loss_margin_scale_and_classes(drawn_run: Path) -> None:
    run = Run(drawn_run)
    assert (run.loss, run.title, run.data) == ("arcface", "ArcFace", "mnist")
    assert run.margin == {"m": 0.5}
    assert run.scale == 12.6
    assert run.classes == tuple("0123456789")


def test_snapshots_come_in_the_order_of_training(drawn_run: Path) -> None:
    epochs = [snapshot.epoch for snapshot in Run(drawn_run).snapshots()]
    assert epochs[:6] == [0, 0.25, 0.5, 0.75, 1, 2]
    assert epochs[-1] == 12


def test_a_resumed_run_counts_the_later_line_and_a_line_cut_short_is_passed_over(tmp_path: Path) -> None:
    lines = [
        {"kind": "step", "step": 2, "loss": 9.0},
        {"kind": "step", "step": 1, "loss": 5.0},
        {"kind": "step", "step": 2, "loss": 4.0},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "st')
    assert [row["loss"] for row in Run(tmp_path).steps] == [5.0, 4.0]


def test_ignored_labels_and_broken_rows_do_no_harm(tmp_path: Path) -> None:
    embeddings = np.array([[1, 0], [0, 1], [np.nan, 0], [1, 1]], dtype=np.float32)
    path = tmp_path / "embeddings" / "final.safetensors"
    path.parent.mkdir()
    save_file(
        {"embeddings": embeddings, "labels": np.array([0, -1, 1, 1]), "centres": np.eye(2, dtype=np.float32)}, path
    )
    final = Run(tmp_path).final
    assert final is not None
    np.testing.assert_array_equal(final.labels, [0, 1, 1])
    np.testing.assert_array_equal(final.embeddings, [[1, 0], [0, 0], [1, 1]])


def test_centres_that_are_missing_are_the_classes_mean_directions(tmp_path: Path) -> None:
    write_embeddings(tmp_path / "embeddings" / "final.safetensors", [0, 0, 1, 2])
    final = Run(tmp_path).final
    assert final is not None
    assert final.centres.shape == (3, 3)
    assert Run(tmp_path).classes == ("0", "1", "2")


def test_a_damaged_snapshot_is_named_and_left_out(tmp_path: Path) -> None:
    listener = Listener()
    write_embeddings(tmp_path / "embeddings" / "epoch-0001.safetensors", [0, 1])
    (tmp_path / "embeddings" / "epoch-0002.safetensors").write_bytes(b"not tensors at all")
    assert [snapshot.epoch for snapshot in Run(tmp_path, listener).snapshots()] == [1]
    assert any("epoch-0002.safetensors cannot be read" in text for text in listener.heard)


def test_the_last_snapshot_stands_in_for_final_embeddings_and_that_is_said(tmp_path: Path) -> None:
    listener = Listener()
    write_embeddings(tmp_path / "embeddings" / "epoch-0003.safetensors", [0, 1, 1])
    final = Run(tmp_path, listener).final
    assert final is not None
    assert final.epoch == 3
    assert any("the snapshot of epoch 3 is drawn" in text for text in listener.heard)


def test_a_folder_that_is_not_there_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run folder at .*: give the folder that `arcwise train` wrote"):
        open_run(tmp_path / "nothing", Reporter())


def test_a_folder_that_is_not_a_comparison_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a comparison: comparison.json .* `arcwise compare` wrote"):
        open_comparison(tmp_path, Reporter())


def test_a_comparison_leaves_out_runs_that_are_gone_and_says_so(tmp_path: Path) -> None:
    listener = Listener()
    content = {"losses": ["softmax", "arcface"], "rows": {"softmax": {"runs": ["a"]}, "arcface": {"runs": ["b"]}}}
    (tmp_path / "comparison.json").write_text(json.dumps(content))
    (tmp_path / "b").mkdir()
    assert [run.path.name for run in open_comparison(tmp_path, listener)] == ["b"]
    assert any("run a of softmax" in text for text in listener.heard)
    (tmp_path / "b").rmdir()
    with pytest.raises(RunError, match="None of the runs"):
        open_comparison(tmp_path, listener)


def test_one_loss_with_two_margins_is_told_apart(tmp_path: Path) -> None:
    rows = {}
    for margin in (0.2, 0.5):
        name = f"arcface-m{margin}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(f'[loss]\nname = "arcface"\n[loss.margin]\nm = {margin}\n')
        rows[name] = {"runs": [name]}
    (tmp_path / "comparison.json").write_text(json.dumps({"losses": list(rows), "rows": rows}))
    assert [run.title for run in open_comparison(tmp_path, Reporter())] == [
        "ArcFace with m = 0.2",
        "ArcFace with m = 0.5",
    ]


def test_a_sample_of_rows_keeps_the_shares_of_the_classes() -> None:
    labels = np.repeat([0, 1, 2], [8000, 1000, 1000])
    rows = spread_sample(labels, 500)
    assert len(rows) == 500
    np.testing.assert_allclose(np.bincount(labels[rows]), [400, 50, 50], atol=1)
    np.testing.assert_array_equal(spread_sample(labels[:10], 500), np.arange(10))

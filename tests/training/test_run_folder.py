from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from arcwise.errors import ConfigError, RunError
from arcwise.training import RunFolder
from arcwise.training.config import Config
from arcwise.training.run_folder import snapshot_name, stratified_rows

MakeConfig = Callable[..., Config]


def test_a_new_folder_holds_the_config_and_can_be_opened(tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config()
    made = RunFolder.create(tmp_path / "a" / "b", config)
    assert sorted(path.name for path in made.path.iterdir()) == ["checkpoints", "config.toml", "embeddings", "figures"]
    assert RunFolder.open(made.path).config() == config


def test_an_empty_folder_may_be_used(tmp_path: Path, make_config: MakeConfig) -> None:
    assert RunFolder.create(tmp_path, make_config()).config_file.is_file()


@pytest.mark.parametrize("kind", ["run", "folder", "file"])
def test_what_is_in_the_way_stays_and_both_ways_out_are_named(
    kind: str, tmp_path: Path, make_config: MakeConfig
) -> None:
    path = tmp_path / "run"
    if kind == "run":
        RunFolder.create(path, make_config())
    elif kind == "folder":
        path.mkdir()
        (path / "mine.txt").write_text("mine")
    else:
        path.write_text("mine")
    before = {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    with pytest.raises(RunError, match=r"already exists and is never overwritten.*--resume.*--out DIR"):
        RunFolder.create(path, make_config(epochs=9))
    assert {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()} == before


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, make_config: MakeConfig) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"cannot be written: Not a directory\. Choose another with --out DIR"):
        RunFolder.create(tmp_path / "file" / "run", make_config())


def test_opening_what_is_no_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run folder: it does not exist"):
        RunFolder.open(tmp_path / "none")
    with pytest.raises(RunError, match=r"is not a run folder: it holds no config\.toml"):
        RunFolder.open(tmp_path)


def test_opening_clears_away_what_an_interrupted_write_left(folder: RunFolder) -> None:
    leftovers = [folder.path / ".evaluation.json.1f.partial", folder.embeddings / ".final.safetensors.2e.partial"]
    for leftover in leftovers:
        leftover.touch()
    RunFolder.open(folder.path)
    assert not any(leftover.exists() for leftover in leftovers)


def test_a_config_that_was_spoilt_is_named(folder: RunFolder) -> None:
    folder.config_file.write_text("epochs = 3")
    with pytest.raises(ConfigError, match=str(folder.config_file)):
        RunFolder.open(folder.path).config()


def test_metrics_come_back_line_by_line(folder: RunFolder) -> None:
    assert list(folder.metrics()) == []
    folder.append_metrics([{"step": 1}, {"step": 2, "loss": math.inf}])
    folder.append_metrics([{"step": 3, "text": "θ\n"}])
    assert list(folder.metrics()) == [{"step": 1}, {"step": 2, "loss": math.inf}, {"step": 3, "text": "θ\n"}]


@pytest.mark.parametrize("tail", [b'{"step": 4, "lo', b"\xff\xfe\x00", b"[5]\n", b"null\n", b"\x00" * 100])
def test_a_last_line_that_a_crash_cut_off_is_passed_over(tail: bytes, folder: RunFolder) -> None:
    folder.append_metrics([{"step": 1}, {"step": 2}])
    with folder.metrics_file.open("ab") as file:
        file.write(tail)
    assert [line["step"] for line in folder.metrics()] == [1, 2]
    folder.forget_metrics_after(1)
    folder.append_metrics([{"step": 2}])
    assert [line["step"] for line in folder.metrics()] == [1, 2]


def test_only_the_lines_of_later_steps_are_forgotten(folder: RunFolder) -> None:
    folder.append_metrics([{"kind": "health", "step": 0}, *({"kind": "step", "step": k} for k in range(1, 6))])
    folder.forget_metrics_after(3)
    assert [line["step"] for line in folder.metrics()] == [0, 1, 2, 3]
    folder.forget_metrics_after(-1)
    assert list(folder.metrics()) == []


def test_embeddings_come_back_with_their_metadata(folder: RunFolder) -> None:
    tensors = {"embeddings": torch.randn(4, 3).T, "labels": torch.arange(3)}
    folder.save_embeddings("epoch-0001", tensors, {"epoch": "1"})
    back = folder.load_embeddings("epoch-0001")
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[key], value) for key, value in tensors.items())
    with safe_open(folder.embeddings / "epoch-0001.safetensors", "pt") as file:
        assert file.metadata() == {"epoch": "1"}


def test_an_evaluation_comes_back_and_a_spoilt_one_is_named(folder: RunFolder) -> None:
    assert folder.evaluation() is None
    folder.write_evaluation({"accuracy": 0.5, "eer": None})
    assert folder.evaluation() == {"accuracy": 0.5, "eer": None}
    folder.evaluation_file.write_bytes(b"\xff{")
    with pytest.raises(RunError, match=r"evaluation\.json is damaged: it is not JSON"):
        folder.evaluation()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can make a small disk")
def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(tmp_path: Path, make_config: MakeConfig) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        folder = RunFolder.create(tmp_path / "run", make_config())
        folder.write_evaluation({"accuracy": 0.5})
        with pytest.raises(
            RunError, match=r"final\.safetensors could not be written: No space left on device\. Make room"
        ):
            folder.save_embeddings("final", {"embeddings": torch.zeros(100_000)}, {})
        with pytest.raises(RunError, match=r"evaluation\.json could not be written: No space left on device"):
            folder.write_evaluation({"text": "x" * 100_000})
        with pytest.raises(RunError, match=r"metrics\.jsonl could not be written: No space left on device"):
            folder.append_metrics({"step": k, "text": "x" * 1000} for k in range(100))
        assert folder.evaluation() == {"accuracy": 0.5}
        assert folder.config() == make_config()
        assert [line["step"] for line in folder.metrics()] == list(range(len(list(folder.metrics()))))
        assert list(folder.embeddings.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("epoch", "name"),
    [(0, "epoch-0000"), (0.05, "epoch-0000.05"), (0.5, "epoch-0000.50"), (3, "epoch-0003"), (12345, "epoch-12345")],
)
def test_snapshots_are_named_by_their_moment(epoch: float, name: str) -> None:
    assert snapshot_name(epoch) == name


@given(st.lists(st.integers(-1, 5), max_size=80), st.integers(0, 100))
def test_a_sample_takes_as_many_of_each_class_as_it_can(labels: list[int], count: int) -> None:
    rows = stratified_rows(torch.tensor(labels, dtype=torch.int64), count).tolist()
    assert rows == sorted(set(rows))
    if count >= len(labels) or max(labels, default=-1) < 0:
        assert rows == list(range(min(count, len(labels))))
        return
    classes = {label for label in labels if label >= 0}
    share = max(1, count // len(classes))
    assert {c: sum(labels[row] == c for row in rows) for c in classes} == {
        c: min(share, labels.count(c)) for c in classes
    }
    assert all(labels[row] >= 0 for row in rows)

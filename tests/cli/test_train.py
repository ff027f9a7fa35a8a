from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from arcwise.cli.train import doubtful_labels, summary
from arcwise.training.columns import COLUMNS

Command = Callable[..., Any]
SHORT = ("--dim", 3, "--epochs", 1, "--no-figures")


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])


def same(first: Path, second: Path) -> bool:
    a, b = weights(first), weights(second)
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def photos(folder: Path) -> Path:
    """Pictures by class, of three colours."""
    generator = np.random.default_rng(0)
    for channel, name in enumerate(("red fox", "green frog", "blue whale")):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            pixels = generator.integers(0, 90, (16, 16, 3), dtype=np.uint8)
            pixels[..., channel] += 120
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


# ---- what is printed


def test_results_go_to_standard_output_and_progress_to_standard_error(arcwise: Command) -> None:
    done = arcwise("train", "digits", *SHORT)
    assert done.code == 0
    assert done.out.startswith("\nruns/digits-arcface\n")
    assert "accuracy: test samples" in done.out
    assert done.out.endswith("\nNext: arcwise report runs/digits-arcface\n")
    for progress in ("1 epoch of vgg8", "training arcface on digits", "measuring arcface"):
        assert progress in done.err
        assert progress not in done.out


def test_quiet_prints_the_result_and_nothing_else(arcwise: Command) -> None:
    done = arcwise("train", "digits", *SHORT, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert "Next" not in done.out
    assert "accuracy" in done.out


def test_json_is_valid_and_alone_on_standard_output(arcwise: Command, tmp_path: Path) -> None:
    done = arcwise("train", "digits", *SHORT, "--json", "--out", "my run")
    told = json.loads(done.out, parse_constant=pytest.fail)
    assert told["path"] == "my run"
    assert {key: value for key, value in told.items() if key != "path"} == json.loads(
        (tmp_path / "my run" / "evaluation.json").read_text()
    )
    assert "training arcface" in done.err


def test_what_could_not_be_measured_is_a_dash_in_the_table() -> None:
    rows = summary({column.key: 0.5 for column in COLUMNS if column.key != "eer"} | {"eer": None})
    assert [value for name, value in rows if name.startswith("EER")] == ["–"]
    assert sum(value == "–" for _, value in rows) == 1


def test_doubtful_labels_are_counted_and_their_list_is_named(arcwise: Command) -> None:
    done = arcwise("train", "digits", *SHORT, "--set", "data.label_noise=0.3")
    assert " training samples lie nearer to another class than to their own and may be mislabelled: " in done.out
    assert Path("runs/digits-arcface/mislabelled.csv").is_file()
    assert "runs/digits-arcface/mislabelled.csv\n" in done.out
    assert "training labels were replaced by another class on purpose (data.label_noise = 0.3)." in done.err
    one = "1 of 1,437 training samples lies nearer to another class than to its own and may be mislabelled: run/mislabelled.csv"
    advice = "Look the list through and train again: --leave-out or --relabel run/mislabelled.csv"
    assert doubtful_labels(Path("run"), {"num_suspect": 1, "num_judged": 1437}) == f"{one}\n{advice}"
    assert doubtful_labels(Path("run"), {"num_suspect": 1, "num_judged": 1437}, relabelled=True) == one
    assert doubtful_labels(Path("run"), {"num_suspect": 0, "num_judged": 1437}) is None
    assert doubtful_labels(Path("run"), {}) is None


def test_what_a_list_names_is_left_out_and_said(arcwise: Command, tmp_path: Path) -> None:
    noise = ("--set", "data.label_noise=0.3", *SHORT)
    arcwise("train", "digits", *noise, "--out", "first")
    done = arcwise("train", "digits", *noise, "--leave-out", "first/mislabelled.csv", "--out", "second")
    assert done.code == 0
    assert (
        "training samples that mislabelled.csv lists are left out: nearer to another class by more than 20°."
        in done.err
    )
    assert (
        f'leave_out = "{tmp_path / "first" / "mislabelled.csv"}"' in (tmp_path / "second" / "config.toml").read_text()
    )
    other = arcwise("train", "digits", *SHORT, "--leave-out", "first/mislabelled.csv", "--out", "third")
    assert other.code == 2
    assert "The list was made with other data, another seed or other label noise: use the same." in other.err
    assert not (tmp_path / "third").exists()


def test_the_command_is_written_into_the_config_and_can_be_run_from_it(arcwise: Command, tmp_path: Path) -> None:
    arcwise("train", "digits", *SHORT, "--loss", "arcface(m=0.3)", "--seed", 3, "--out", "a")
    config = (tmp_path / "a" / "config.toml").read_text()
    command = "arcwise train digits --dim 3 --epochs 1 --no-figures --loss 'arcface(m=0.3)' --seed 3 --out a"
    assert f'command = "{command}"' in config
    assert arcwise("train", "--config", "a/config.toml", "--out", "b", "--no-figures").code == 0
    assert same(tmp_path / "a", tmp_path / "b")


def test_a_run_is_named_by_its_data_and_its_loss(arcwise: Command, tmp_path: Path) -> None:
    arcwise("train", "digits", *SHORT, "--loss", "cosface(m=0.2)")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["digits-cosface-m0.2"]


# ---- kinds of data


@pytest.fixture(scope="module")
def photos_run(start: Callable[..., subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a folder of pictures with a name that needs quoting, with its figures; read only."""
    pytest.importorskip("matplotlib")
    home = tmp_path_factory.mktemp("photos run")
    photos(home / "my photos")
    child = start("train", "./my photos", "--dim", 3, "--epochs", 1, "--out", "the run", cwd=home)
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert "Next: arcwise report 'the run'" in out
    return home / "the run"


def test_a_folder_of_pictures_becomes_a_run_with_figures_and_an_animation(photos_run: Path) -> None:
    drawn = {path.name for path in (photos_run / "figures").iterdir()}
    assert {"embeddings.png", "embeddings.svg", "training.png", "angles.png", "training.gif"} <= drawn
    evaluation = json.loads((photos_run / "evaluation.json").read_text())
    assert evaluation["classes"] == ["blue whale", "green frog", "red fox"]
    assert evaluation["shape"][0] == 3


def test_a_folder_of_pictures_without_figures(arcwise: Command, tmp_path: Path) -> None:
    photos(tmp_path / "photos")
    assert arcwise("train", "./photos", *SHORT).code == 0
    assert list((tmp_path / "runs" / "photos-arcface" / "figures").iterdir()) == []


def test_a_list_of_files(arcwise: Command, tmp_path: Path) -> None:
    rows = [f"{path.relative_to(tmp_path)},{path.parent.name}" for path in photos(tmp_path / "photos").rglob("*.png")]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *rows]))
    done = arcwise("train", "list.csv", *SHORT, "--json")
    assert json.loads(done.out)["classes"] == ["blue whale", "green frog", "red fox"]


def test_features_go_through_a_network_for_features(arcwise: Command, tmp_path: Path) -> None:
    labels = np.arange(120) % 4
    noise = np.random.default_rng(0).normal(size=(120, 8))
    np.savez(tmp_path / "features.npz", features=(np.eye(8)[labels] * 5 + noise).astype(np.float32), labels=labels)
    done = arcwise("train", "features.npz", "--dim", 3, "--epochs", 8, "--no-figures", "--json")
    assert json.loads(done.out)["accuracy"] > 0.8
    assert 'name = "mlp"' in (tmp_path / "runs" / "features-arcface" / "config.toml").read_text()


def test_a_folder_where_the_data_should_lie_and_does_not_is_said(arcwise: Command, tmp_path: Path) -> None:
    done = arcwise("train", "mnist", *SHORT, "--data-dir", tmp_path / "none")
    assert done.code == 2
    assert "none" in done.sentence
    assert not (tmp_path / "runs").exists()


# ---- bad input


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["digist"], "Did you mean digits?"),
        (["./none"], "There is no file or folder ./none."),
        (["nothing.txt"], "nothing.txt"),
        ([], "there is nothing to train on"),
        (["digits", "--loss", "arcfase"], "Did you mean arcface?"),
        (["digits", "--loss", "softmax", "--margin", "0.3"], "softmax has neither a margin nor a scale"),
        (["digits", "--loss", "arcface(0.3)"], "write name=value"),
        (["digits", "--margin", "28.6"], "got 28.6. If that is in degrees, pass math.radians(28.6)."),
        (["digits", "--backbone", "vgg9"], "Did you mean vgg8?"),
        (["digits", "--backbone", "mlp"], "mlp takes rows of features; got pictures of 1×8×8."),
        (["digits", "--device", "gpu"], "there is no device 'gpu'. Use cpu, cuda, cuda:0 … or auto."),
        (["digits", "--dim", "1"], "at least 2"),
        (["digits", "--epochs", "0"], "train.epochs must be at least 1; got 0."),
        (["digits", "--lr", "nan"], "train.lr must be a positive number; got nan."),
        (["digits", "--scale", "-1"], "loss.scale must be a positive number; got -1.0."),
        (["digits", "--seed", "-1"], "train.seed must be in 0 … 2³¹ − 1; got -1."),
        (["digits", "--set", "train.lrr=1"], "Did you mean train.lr?"),
        (["digits", "--set", "train.lr=fast"], "train.lr must be a number; got 'fast'."),
        (["digits", "--set", "data.augment=afine"], "Did you mean affine?"),
        (["digits", "--set", "train.device=cuda"], "Use --device instead."),
        (["--config", "."], "the config . cannot be read: Is a directory."),
        (["--config", "none.toml"], "the config none.toml cannot be read: No such file or directory."),
        (["--config", "binary.toml"], "binary.toml is not a text file; a config is TOML in UTF-8."),
        (["--config", "empty.toml"], "empty.toml has no section [data]."),
        (["--config", "broken.toml"], "broken.toml is not valid TOML:"),
        (["--resume"], "there is nothing to resume"),
        (["digits", "--resume"], "runs/digits-arcface is not a run folder: it does not exist."),
        (["digits", "--out", "binary.toml"], "binary.toml already exists and is never overwritten."),
        (["digits", "--out", "binary.toml/run"], "the run folder binary.toml/run cannot be written: Not a directory."),
        (["digits", "--resume", "--out", "."], ". is not a run folder: it holds no config.toml."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence_exit_code_two_and_no_folder(
    words: list[str], message: str, arcwise: Command, tmp_path: Path, snapshot: Command
) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\x00\xfe")
    (tmp_path / "empty.toml").touch()
    (tmp_path / "broken.toml").write_text("[data\n")
    before = snapshot(tmp_path)
    done = arcwise("train", *words)
    assert (done.code, done.out) == (2, "")
    assert done.sentence.startswith("arcwise: ")
    assert message in done.sentence
    assert snapshot(tmp_path) == before
    assert not (tmp_path / "runs").exists()


def test_a_real_process_shows_no_traceback_for_bad_input(process: Command) -> None:
    done = process("train", "digits", "--margin", "28.6")
    assert (done.code, done.out) == (2, "")
    assert "If that is in degrees" in done.sentence


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_said(arcwise: Command, digits_run: Path) -> None:
    for words in (["digits"], ["--config", digits_run / "config.toml"], [digits_run, "--resume"]):
        done = arcwise("train", *words, "--device", "cuda")
        assert done.code == 2
        assert "torch sees no NVIDIA GPU here. Use --device cpu." in done.sentence


def test_a_run_in_the_way_is_left_alone_and_both_ways_out_are_named(
    arcwise: Command, digits_run: Path, snapshot: Command
) -> None:
    before = snapshot(digits_run)
    done = arcwise("train", "digits", *SHORT, "--out", digits_run)
    assert done.code == 2
    assert (
        "already exists and is never overwritten. Continue it with --resume, or write elsewhere with --out DIR."
        in done.sentence
    )
    assert snapshot(digits_run) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epochs", "5"], "begun with epochs 1 and goes on so; got 5."),
        (["--seed", "5"], "begun with seed 0 and goes on so; got 5."),
        (["--loss", "softmax"], "begun with loss arcface and goes on so; got softmax."),
        (["--set", "train.momentum=0.5"], "begun with other settings than {'train.momentum': '0.5'}."),
    ],
)
def test_resuming_with_other_settings_is_refused(
    words: list[str], message: str, arcwise: Command, digits_run: Path, snapshot: Command
) -> None:
    before = snapshot(digits_run)
    done = arcwise("train", digits_run, "--resume", *words)
    assert done.code == 2
    assert message in done.sentence
    assert snapshot(digits_run) == before


def test_what_a_config_settles_is_not_asked_for_again(arcwise: Command, digits_run: Path) -> None:
    done = arcwise("train", "--config", digits_run / "config.toml", "--lr", "0.5")
    assert done.code == 2
    assert "the config settles lr; got lr 0.5 as well." in done.sentence


def test_a_run_whose_every_checkpoint_is_damaged_is_one_sentence(
    arcwise: Command, digits_run: Path, tmp_path: Path
) -> None:
    shutil.copytree(digits_run, tmp_path / "run")
    (tmp_path / "run" / "evaluation.json").unlink()
    for path in (tmp_path / "run" / "checkpoints").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    done = arcwise("train", "run", "--resume")
    assert done.code == 2
    assert "can be used:" in done.sentence
    assert "has 100 bytes instead of" in done.sentence


def test_a_spoilt_evaluation_is_named(arcwise: Command, digits_run: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_run, tmp_path / "run")
    (tmp_path / "run" / "evaluation.json").write_text("{")
    done = arcwise("train", "run", "--resume", "--no-figures")
    assert done.code == 2
    assert "evaluation.json is damaged: it is not JSON" in done.sentence


def test_features_that_are_not_finite_are_left_out_and_said(arcwise: Command, tmp_path: Path) -> None:
    labels = np.arange(200) % 4
    features = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    features[17, 3] = np.inf
    np.savez(tmp_path / "features.npz", features=features, labels=labels)
    done = arcwise("train", "features.npz", *SHORT)
    assert done.code == 0
    assert "note: " in done.err
    assert "17" in next(line for line in done.err.splitlines() if line.startswith("note: "))


def test_a_learning_rate_that_blows_up_names_where_it_began_and_keeps_the_checkpoint(
    arcwise: Command, tmp_path: Path
) -> None:
    done = arcwise("train", "digits", *SHORT, "--lr", "1e30", "--loss", "softmax", "--set", "train.clip_norm=0")
    assert done.code == 2
    assert "The last checkpoint is intact." in done.sentence
    lines = [json.loads(line) for line in (tmp_path / "runs/digits-softmax/metrics.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["kind"] == "health"]
    assert told[-1]["name"] in ("non-finite", "diverged")
    assert told[-1]["message"] in done.sentence


def test_a_scale_that_is_too_small_is_said_as_it_begins(arcwise: Command, tmp_path: Path) -> None:
    done = arcwise("train", "digits", *SHORT, "--scale", "0.5")
    assert done.code == 0
    assert "warning: the scale of 0.5 is too small for 10 classes in 3 dimensions" in done.err
    lines = (tmp_path / "runs/digits-arcface/metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["name"] == "scale-too-small"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can make a small disk")
@pytest.mark.parametrize("size", ["300k", "20k", "1500k"])
def test_a_full_disk_is_one_sentence_and_room_lets_training_go_on(size: str, arcwise: Command, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        words = ("--dim", 3, "--epochs", 2, "--set", "train.checkpoint_seconds=0", "--no-figures")
        done = arcwise("train", "digits", *words, "--out", disk / "run")
        assert done.code == 2
        assert "disk is full" in done.sentence or "No space left on device" in done.sentence
        leftovers = [path for path in disk.rglob("*") if path.name.endswith(".partial")]
        assert leftovers == []
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        if (disk / "run" / "config.toml").exists():
            assert arcwise("train", disk / "run", "--resume", "--no-figures").code == 0
            arcwise("train", "digits", *words, "--out", "reference")
            assert same(disk / "run", tmp_path / "reference")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can mount")
def test_a_read_only_disk_is_one_sentence(arcwise: Command, digits_run: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        shutil.copytree(digits_run, disk / "run")
        (disk / "run" / "evaluation.json").unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for words in (["digits", "--out", disk / "new"], [disk / "run", "--resume"]):
            done = arcwise("train", *words, "--no-figures")
            assert done.code == 2
            assert "Read-only file system" in done.sentence
    finally:
        subprocess.run(["umount", str(disk)], check=True)

from __future__ import annotations

import importlib.metadata
import io
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.errors import RunError
from arcwise.reporting import write_bundle
from arcwise.reporting.bundle import requirements

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def bundle(comparison: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle([comparison], tmp_path_factory.mktemp("hand-in") / "lastname_firstname_ID_Project1.zip")


def test_the_bundle_has_everything_that_a_hand_in_wants(bundle: Path) -> None:
    assert bundle.name == "lastname_firstname_ID_Project1.zip"
    names = set(zipfile.ZipFile(bundle).namelist())
    assert {
        "report.pdf",
        "README-run.txt",
        "requirements.txt",
        "figures/embeddings.png",
        "figures/embeddings.gif",
        "figures/arcface-seed0/confusion.png",
        "config/softmax-seed2.toml",
        "results/comparison.json",
        "results/arcface-seed1/metrics.jsonl",
        "results/arcface-seed1/evaluation.json",
        "source/arcwise/__init__.py",
        "source/arcwise/reporting/report.typ",
        "source/arcwise/margins/arcface.py",
    } <= names
    assert not any("__pycache__" in name or name.startswith("/") or ".." in name for name in names)


def test_the_packed_report_is_the_one_beside_the_runs(bundle: Path, comparison: Path) -> None:
    assert zipfile.ZipFile(bundle).read("report.pdf") == (comparison / "report.pdf").read_bytes()


def test_the_same_runs_give_the_same_bundle(bundle: Path, comparison: Path, tmp_path: Path) -> None:
    again = write_bundle([comparison], tmp_path / "again.zip")
    assert again.read_bytes() == bundle.read_bytes()
    infos = zipfile.ZipFile(again).infolist()
    assert [info.filename for info in infos] == sorted(info.filename for info in infos)
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}


def test_the_packed_source_runs(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "source")}
    done = subprocess.run(
        [sys.executable, "-c", "import arcwise, arcwise.reporting; print(arcwise.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "source")
    done = subprocess.run(
        [sys.executable, "-m", "arcwise", "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert "report" in done.stdout


def test_every_command_of_the_readme_names_a_config_that_is_there(bundle: Path) -> None:
    archive = zipfile.ZipFile(bundle)
    lines = archive.read("README-run.txt").decode().splitlines()
    commands = [line.strip() for line in lines if "arcwise train --config" in line]
    assert len(commands) == 6
    words = [shlex.split(command) for command in commands]
    assert all(line[line.index("--config") + 1] in archive.namelist() for line in words)
    assert {line[line.index("--out") + 1] for line in words} == {
        f"runs/{loss}-seed{seed}" for loss in ("softmax", "arcface") for seed in range(3)
    }
    assert any(line.endswith("arcwise compare mnist --losses softmax,arcface --dim 3 --seeds 3") for line in lines)
    assert any(line.strip() == "pip install -r requirements.txt" for line in lines)


def test_requirements_pin_what_is_installed() -> None:
    pinned = dict(line.split("==") for line in requirements().split())
    assert pinned["numpy"] == importlib.metadata.version("numpy")
    assert "+" not in pinned["torch"]
    assert "typst" in pinned


def test_a_name_that_is_no_zip_is_refused(comparison: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"got the name 'report\.tar'\. Give a name that ends in \.zip"):
        write_bundle([comparison], tmp_path / "report.tar")


def test_an_existing_file_is_never_replaced(comparison: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_bytes(b"mine")
    with pytest.raises(
        RunError, match=r"exists already and is not replaced\. Give another name with --bundle, or delete"
    ):
        write_bundle([comparison], tmp_path / "mine.zip")
    assert (tmp_path / "mine.zip").read_bytes() == b"mine"


def test_runs_of_the_same_name_keep_apart(tmp_path: Path, make_run: Maker) -> None:
    runs = [make_run(tmp_path / "a" / "run"), make_run(tmp_path / "b" / "run", seed=1)]
    archive = zipfile.ZipFile(io.BytesIO(write_bundle(runs, tmp_path / "x.zip").read_bytes()))
    configs = [archive.read(name).decode() for name in archive.namelist() if name.startswith("config/")]
    assert sorted("seed = 1" in config for config in configs) == [False, True]


def test_groups_get_folders_of_their_own(tmp_path: Path, make_run: Maker) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", data="./my photos", dim=2)]
    names = zipfile.ZipFile(write_bundle(runs, tmp_path / "x.zip")).namelist()
    assert {"config/mnist-vgg8-3d/a.toml", "config/_my photos-vgg8-2d/b.toml"} <= set(names)


def test_an_unwritable_place_is_one_plain_sentence(comparison: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Choose another place with --bundle"):
        write_bundle([comparison], tmp_path / "file" / "x.zip")

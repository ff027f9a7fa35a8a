from __future__ import annotations

from pathlib import Path

import pytest
import torch

import arcwise.data
from arcwise.data import load
from arcwise.errors import ConfigError, DataError


def test_the_public_names_of_the_room() -> None:
    assert sorted(arcwise.data.__all__) == [
        "AUGMENTATIONS", "Dataset", "OneShot", "Split", "Status", "augment", "cache_folder", "epoch_order", "load", "names",
        "num_turned_classes", "prepare", "resized", "status", "with_quarter_turns", "without_quarter_turns",
    ]  # fmt: skip
    assert all(hasattr(arcwise.data, name) for name in arcwise.data.__all__)


def test_an_unknown_name_says_what_was_meant() -> None:
    with pytest.raises(ConfigError, match=r'no data set called "mnits".*Did you mean mnist\? Known: digits, mnist'):
        load("mnits")


@pytest.mark.parametrize("path", ["./photos", "/no/such/place", "some.npz", "a/b"])
def test_a_path_that_is_not_there_is_said(path: str) -> None:
    with pytest.raises(DataError, match=r"There is no file or folder .*\. Check the path, or name a known set: digits"):
        load(path)


def test_a_file_of_another_kind_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"x")
    with pytest.raises(DataError, match=r"cannot be read \(\.pkl\)\. Give a folder"):
        load(tmp_path / "a.pkl")


@pytest.mark.parametrize("size", [0, 7, -3, 5000])
def test_an_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=f"between 8 and 1024 pixels; got {size}"):
        load("digits", image_size=size)


def test_an_impossible_share_is_refused_for_every_kind() -> None:
    with pytest.raises(ConfigError, match=r"between 0 and 1; got 1\.5"):
        load("mnist", test_share=1.5)


def test_an_unknown_fallback_is_said_before_anything_is_fetched() -> None:
    with pytest.raises(ConfigError, match=r'no data set called "digit" to fall back to\. Did you mean digits'):
        load("mnist", fallback="digit")


def test_a_known_set_can_be_had_at_another_size() -> None:
    pytest.importorskip("sklearn")
    small, large = load("digits"), load("digits", image_size=28)
    assert large.shape == (1, 28, 28)
    assert large.train.images.dtype == torch.uint8
    assert torch.equal(large.train.labels, small.train.labels)
    assert abs(float(large.mean - small.mean)) < 0.02
    assert large.notes == ("The images were scaled from 8×8 to 28×28.",)
    assert load("digits", image_size=8).notes == ()

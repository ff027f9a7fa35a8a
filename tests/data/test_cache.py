from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from arcwise.data import cache, cache_folder
from arcwise.progress import Reporter

TENSORS = {"images": torch.arange(256, dtype=torch.uint8), "labels": torch.arange(5)}


def keep(name: str = "some") -> None:
    with cache.writing(name, Reporter()) as work:
        cache.write(name, TENSORS, "a test")
        cache.forget_work(work)


def test_what_is_kept_is_read_back(home: Path) -> None:
    assert cache.read("some") is None
    keep()
    found = cache.read("some")
    assert found is not None
    tensors, manifest = found
    assert torch.equal(tensors["images"], TENSORS["images"])
    assert torch.equal(tensors["labels"], TENSORS["labels"])
    assert manifest.source == "a test"
    assert sorted(path.name for path in (home / "data").iterdir()) == ["some.json", "some.lock", "some.safetensors"]


def flip_a_byte() -> None:
    path = cache.file_of("some")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut() -> None:
    os.truncate(cache.file_of("some"), 100)


def lose_the_file() -> None:
    cache.file_of("some").unlink()


def garble_the_manifest() -> None:
    cache.manifest_of("some").write_text('{"name":')


def foreign_manifest() -> None:
    cache.manifest_of("some").write_text(json.dumps({"other": 1}))


def binary_manifest() -> None:
    cache.manifest_of("some").write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    "damage", [flip_a_byte, cut, lose_the_file, garble_the_manifest, foreign_manifest, binary_manifest]
)
def test_every_damage_is_one_sentence_that_names_the_file(damage: object) -> None:
    keep()
    cache.read("some")
    assert callable(damage)
    damage()
    with pytest.raises(cache.DamagedCacheError, match=r"^The cached file .*some\.(json|safetensors) is damaged: .*\.$"):
        cache.read("some")


def test_a_file_without_its_manifest_is_not_cached() -> None:
    keep()
    cache.manifest_of("some").unlink()
    assert cache.read("some") is None


def test_leftovers_of_a_killed_writer_are_removed_and_downloads_stay(home: Path) -> None:
    folder = home / "data"
    (folder / "some.partial" / "tmpabc").mkdir(parents=True)
    (folder / "some.partial" / "tmpabc" / "big").write_bytes(b"x")
    (folder / "some.partial" / "file.part").write_bytes(b"half")
    (folder / ".some.safetensors.abc.partial").write_bytes(b"x")
    (folder / ".other.safetensors.abc.partial").write_bytes(b"x")
    with cache.writing("some", Reporter()) as work:
        assert [path.name for path in work.iterdir()] == ["file.part"]
    assert sorted(path.name for path in folder.iterdir()) == [
        ".other.safetensors.abc.partial", "some.lock", "some.partial",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_made_names_the_ways_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("in the way")
    monkeypatch.setenv("ARCWISE_HOME", str(home / "file" / "below"))
    assert cache.read("some") is None
    with pytest.raises(
        cache.UnwritableCacheError, match=r"some cannot be kept in .*: not a directory\. .*set ARCWISE_HOME"
    ):
        keep()


FULL_DISK = """
import resource, torch
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from arcwise.data import cache
from arcwise.progress import Reporter
with cache.writing("some", Reporter()):
    try:
        cache.write("some", {"images": torch.zeros(200_000, dtype=torch.uint8)}, "a test")
    except cache.UnwritableCacheError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on the length of files are a thing of POSIX")
def test_a_disk_that_is_full_leaves_no_part_of_a_file(home: Path) -> None:
    result = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("some cannot be kept in ")
    assert "file too large" in result.stdout
    assert cache.read("some") is None
    assert [path.name for path in (home / "data").iterdir() if path.is_file()] == ["some.lock"]


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARCWISE_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("ARCWISE_HOME")
    assert cache_folder() == tmp_path / "xdg" / "arcwise"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    expected = {"linux": ".cache/arcwise", "darwin": "Library/Caches/arcwise", "win32": "local/arcwise/Cache"}
    for platform, place in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / place

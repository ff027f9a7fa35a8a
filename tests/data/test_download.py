from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arcwise.data._download import DownloadFailed, download

CONTENT = random.Random(0).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
Serve = Callable[[dict[str, bytes]], Any]


def fetch(server: Any, path: Path, sha256: str = SHA256, size: int = len(CONTENT)) -> list[int]:
    seen: list[int] = []
    download(f"{server.base}/file", path, sha256=sha256, size=size, received=seen.append)
    return seen


def test_the_file_arrives_whole_and_progress_only_grows(serve: Serve, tmp_path: Path) -> None:
    seen = fetch(serve({"file": CONTENT}), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert seen == sorted(seen)
    assert seen[-1] == len(CONTENT)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_there_is_not_fetched_again(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": CONTENT})
    fetch(server, tmp_path / "file")
    fetch(server, tmp_path / "file")
    assert len(server.requests) == 1


def test_a_broken_connection_is_taken_up_where_it_broke(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": CONTENT})
    server.break_after = [100_000, 50_000]
    fetch(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_what_an_interrupted_call_left_is_used_by_the_next(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": CONTENT})
    (tmp_path / "file.part").write_bytes(CONTENT[:200_000])
    fetch(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.requests == [("/file", "bytes=200000-")]


def test_a_server_that_ignores_ranges_sends_everything_anew(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": CONTENT})
    server.ranges = False
    (tmp_path / "file.part").write_bytes(b"something else")
    fetch(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_wrong_content_is_thrown_away_and_what_was_there_stays(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": b"x" * len(CONTENT)})
    with pytest.raises(DownloadFailed, match=r"wrong SHA-256 .* thrown away"):
        fetch(server, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_no_more_than_the_known_length_is_written(serve: Serve, tmp_path: Path) -> None:
    seen = fetch(serve({"file": CONTENT + b"more" * 10_000}), tmp_path / "file")
    assert seen[-1] == len(CONTENT)


def test_a_connection_that_brings_nothing_ends_the_tries(serve: Serve, tmp_path: Path) -> None:
    server = serve({"file": CONTENT})
    server.break_after = [0] * 10
    with pytest.raises(DownloadFailed):
        fetch(server, tmp_path / "file")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_refusal_names_the_answer(serve: Serve, tmp_path: Path, status: int) -> None:
    server = serve({"file": CONTENT})
    server.status = status
    with pytest.raises(DownloadFailed, match=f"the server answered {status}"):
        fetch(server, tmp_path / "file")


def test_a_closed_port_and_an_unknown_host_say_so(serve: Serve, tmp_path: Path) -> None:
    server = serve({})
    server.close()
    with pytest.raises(DownloadFailed, match="connection refused"):
        fetch(server, tmp_path / "file")
    with pytest.raises(DownloadFailed, match="its host cannot be found"):
        download("https://arcwise.invalid/file", tmp_path / "file", sha256=SHA256, size=9, received=print)

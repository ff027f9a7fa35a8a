"""Fetch one file over https so that an interrupted download is taken up again and a damaged one is never used."""

from __future__ import annotations

import hashlib
import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

TIMEOUT_SECONDS = 8.0
CHUNK_BYTES = 1 << 18
TRIES = 4


class DownloadFailed(Exception):  # noqa: N818 - caught inside this room; users see DownloadError
    """Why a file could not be fetched, in plain words."""


def download(url: str, path: Path, *, sha256: str, size: int, received: Callable[[int], None]) -> None:
    """Put the file behind `url` at `path`, whole and with the right SHA-256.

    What has arrived so far lies in `path` with the ending .part; the next call goes on from there. A connection that breaks is
    taken up again as long as each try brings something.

    Args:
        size: the file's length in bytes; no more than that is ever written.
        received: told how many bytes of the file are here so far.
    """
    part = path.with_name(path.name + ".part")
    if path.exists() and sha256_of(path) == sha256:
        received(size)
        return
    for _ in range(TRIES):
        before = _length(part)
        if before < size:
            reason = _fetch(url, part, before, size, received)
            if reason and _length(part) <= before:
                raise DownloadFailed(reason)
        if _length(part) >= size:
            break
    else:
        raise DownloadFailed(
            f"the connection broke {TRIES} times; what arrived is kept and the next try goes on from there"
        )
    if (found := sha256_of(part)) != sha256:
        part.unlink()
        raise DownloadFailed(
            f"what arrived has the wrong SHA-256 ({found[:12]}… instead of {sha256[:12]}…) and was thrown away"
        )
    part.replace(path)


def _fetch(url: str, part: Path, start: int, size: int, received: Callable[[int], None]) -> str:
    """Append to `part` what the server gives; "" or the reason why it stopped early."""
    request = urllib.request.Request(url, headers={"User-Agent": "arcwise", "Accept-Encoding": "identity"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            resumed = response.status == 206 and _starts_at(response.headers.get("Content-Range"), start)
            with part.open("ab" if resumed else "wb", buffering=0) as file:
                done = start if resumed else 0
                while done < size and (chunk := response.read1(min(CHUNK_BYTES, size - done))):
                    file.write(chunk)
                    done += len(chunk)
                    received(done)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            part.unlink(missing_ok=True)
        return f"the server answered {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return _plain(error.reason if isinstance(error.reason, BaseException) else error)
    except (http.client.HTTPException, OSError) as error:
        return _plain(error)
    return "" if done == size else "the connection broke"


def _starts_at(content_range: str | None, start: int) -> bool:
    return content_range is not None and content_range.startswith(f"bytes {start}-")


def _plain(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return "its host cannot be found (is there a network?)"
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:.0f} seconds"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

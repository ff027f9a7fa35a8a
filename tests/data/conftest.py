from __future__ import annotations

import gzip
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from arcwise.progress import PlainReporter


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("ARCWISE_HOME", str(folder))
    monkeypatch.delenv("ARCWISE_DATA", raising=False)
    return folder


class Lines(PlainReporter):
    """Everything that was said, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str = "") -> None:
        self.lines.append(text)


@pytest.fixture
def said() -> Lines:
    return Lines()


def idx(array: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def idx_files() -> dict[str, bytes]:
    """A small set in the layout of MNIST."""
    random = np.random.default_rng(0)
    return {
        "train-images-idx3-ubyte": idx(random.integers(0, 256, (40, 6, 6), dtype=np.uint8)),
        "train-labels-idx1-ubyte": idx(np.arange(40, dtype=np.uint8) % 4),
        "t10k-images-idx3-ubyte": idx(random.integers(0, 256, (12, 6, 6), dtype=np.uint8)),
        "t10k-labels-idx1-ubyte": idx(np.arange(12, dtype=np.uint8) % 4),
    }


@pytest.fixture
def gz_files(idx_files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in idx_files.items()}


class Server:
    """A real web server with the manners and the vices of one."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.requests: list[tuple[str, str | None]] = []
        self.seconds_per_chunk = 0.0
        self.chunk = 1 << 16
        self.break_after: list[int] = []
        self.ranges = True
        self.gate = threading.Event()
        self.gate.set()
        self.status = 200
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.requests.append((request.path, wanted))
        content = self.files.get(request.path.rsplit("/", 1)[-1])
        if content is None or self.status != 200:
            request.send_error(404 if content is None else self.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        end = len(content)
        if self.break_after:
            end = min(end, start + self.break_after.pop(0))
        self.gate.wait()
        try:
            for place in range(start, end, self.chunk):
                request.wfile.write(content[place : min(place + self.chunk, end)])
                request.wfile.flush()
                time.sleep(self.seconds_per_chunk)
        except OSError:
            pass

    def close(self) -> None:
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[dict[str, bytes]], Server]]:
    servers: list[Server] = []

    def start(files: dict[str, bytes]) -> Server:
        servers.append(Server(files))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of five colour pictures, 20×20, each of its own colour."""
    folder = tmp_path / "photos"
    for class_name, base in (("cat", 10), ("dog", 130)):
        (folder / class_name).mkdir(parents=True)
        for number in range(5):
            colour = (base + number, base + 2 * number + 40, base + 100)
            Image.new("RGB", (20, 20), colour).save(folder / class_name / f"{number}.png")
    return folder

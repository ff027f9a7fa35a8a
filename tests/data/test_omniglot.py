"""Zips of a few drawings made here, and the real ones where they lie beside the repository."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from arcwise.data._layouts import groups_in, read_group
from arcwise.data._omniglot import (
    BACKGROUND,
    DRAWING,
    DRAWN,
    EVALUATION,
    MAX_MEMBER_BYTES,
    SIDE,
    character_names,
    drawings,
    one_shot_runs,
    shrunk,
)
from arcwise.data._registry import KNOWN
from arcwise.errors import DataError

REAL = Path(__file__).parents[3] / "shared" / "data"
needs_the_real_one = pytest.mark.skipif(
    not (REAL / "images_background.zip").is_file(), reason=f"Omniglot's zips are not in {REAL}"
)
Ink = NDArray[np.uint8]


def picture(seed: int, side: int = DRAWN) -> Ink:
    """1 where there is ink."""
    return np.random.default_rng(seed).integers(0, 2, (side, side), dtype=np.uint8)


def png(ink: Ink, mode: str = "1", kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.fromarray(255 - 255 * ink).convert(mode).save(content, kind)
    return content.getvalue()


def zipped(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def runs_files(runs: int = 2, ways: int = 3, asked: int = 2, top: str = "") -> dict[str, bytes]:
    """Query q of run r shows support (q + r) % ways."""
    files: dict[str, bytes] = {}
    for r in range(runs):
        run, lines = f"run{r + 1:02d}", []
        for n in range(ways):
            files[f"{top}{run}/training/class{n + 1:02d}.png"] = png(picture(100 * r + n))
        for q in range(asked):
            files[f"{top}{run}/test/item{q + 1:02d}.png"] = png(picture(100 * r + 50 + q))
            lines.append(f"{run}/test/item{q + 1:02d}.png {run}/training/class{(q + r) % ways + 1:02d}.png")
        files[f"{top}{run}/class_labels.txt"] = "\n".join([*reversed(lines), ""]).encode()
    return files


def test_drawings_are_numbered_by_character_in_alphabetical_order() -> None:
    names = ["B/character02/1", "A/character10/1", "A/character02/2", "A/character02/1", "B/character01/1"]
    files = {f"images/{name}.png": png(picture(seed)) for seed, name in enumerate(names)}
    images, labels = drawings(zipped({"images/": b"", "images/notes.txt": b"hello", **files}))
    assert images.dtype == np.uint8
    assert images.shape == (5, 1, SIDE, SIDE)
    assert labels.tolist() == [0, 0, 1, 2, 3]
    for row, seed in enumerate([3, 2, 1, 4, 0]):
        assert np.array_equal(images[row, 0], shrunk(picture(seed), SIDE))


def test_ink_is_bright_and_paper_black() -> None:
    left_half = np.zeros((DRAWN, DRAWN), np.uint8)
    left_half[:, :45] = 1
    images, _ = drawings(zipped({"images/A/character01/1.png": png(left_half)}))
    assert (images[0, 0, :, :24] == 255).all()
    assert (images[0, 0, :, 24:] == 0).all()


def test_many_drawings_are_shrunk_as_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    content = zipped({f"images/A/character01/{seed}.png": png(picture(seed)) for seed in range(7)})
    whole, _ = drawings(content)
    monkeypatch.setattr("arcwise.data._omniglot.ROWS_AT_ONCE", 3)
    assert np.array_equal(drawings(content)[0], whole)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 9))
def test_a_new_pixel_is_the_share_of_its_area_that_is_ink(seed: int, length: int, side: int) -> None:
    ink = picture(seed, length)
    found = shrunk(ink, side)
    assert found.dtype == np.uint8
    for row in range(side):
        for column in range(side):
            area = Fraction(0)
            for i, j in zip(*map(np.ndarray.tolist, np.nonzero(ink)), strict=True):
                area += overlap(row, side, i, length) * overlap(column, side, j, length)
            assert found[row, column] == int(255 * area * side**2 + Fraction(1, 2))


def overlap(new: int, side: int, old: int, length: int) -> Fraction:
    """What a new pixel and an old one have in common, of a side of 1."""
    end = min(Fraction(new + 1, side), Fraction(old + 1, length))
    return max(end - max(Fraction(new, side), Fraction(old, length)), Fraction(0))


@pytest.mark.parametrize("top", ["", "all_runs/"])
def test_runs_pair_each_query_with_the_support_that_the_file_names(top: str) -> None:
    supports, queries, answers = one_shot_runs(zipped(runs_files(top=top)))
    assert supports.shape == (2, 3, 1, SIDE, SIDE)
    assert queries.shape == (2, 2, 1, SIDE, SIDE)
    assert answers.tolist() == [[0, 1], [1, 2]]
    assert answers.dtype == np.uint8
    assert np.array_equal(supports[1, 2, 0], shrunk(picture(102), SIDE))
    assert np.array_equal(queries[1, 0, 0], shrunk(picture(150), SIDE))


def without(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {key: content for key, content in files.items() if key != name}


LABELS, ITEM = "run02/class_labels.txt", "run02/test/item01.png run02/training/class01.png\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.txt": b"nothing"}, "the zip of one-shot runs holds none, such as run01/class_labels.txt"),
        (without(runs_files(), LABELS), "run02 has no class_labels.txt"),
        (without(runs_files(), "run02/training/class02.png"), r"run02/class_labels\.txt should pair a drawing to name"),
        (without(runs_files(), "run02/test/item02.png"), r"one size and have \(supports, queries\) \[\(3, 1\), \(3, 2\)\]"),
        (runs_files() | {LABELS: ITEM.encode()}, r"run02/class_labels\.txt does not name test/item02\.png"),
        (runs_files() | {LABELS: b"run02/test/item01.png\n"}, r"should pair .*: 'run02/test/item01\.png'"),
        (runs_files() | {LABELS: b"a b c\n"}, "should pair .*: 'a b c'"),
        (runs_files() | {LABELS: "é".encode()}, "ascii"),
        (runs_files() | {"run01/test/item01.png": b"GIF89a"}, "cannot identify image file"),
    ],
)  # fmt: skip
def test_runs_that_are_not_whole_are_said_to_be_so(files: dict[str, bytes], message: str) -> None:
    with pytest.raises((ValueError, OSError), match=message):
        one_shot_runs(zipped(files))


def huge_png() -> bytes:
    """A few bytes that claim to be sixty thousand pixels wide and high."""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    "content",
    [png(picture(0), "L"), png(picture(0), "RGB"), png(picture(0, 28)), png(picture(0), kind="BMP"), huge_png()],
    ids=["grey", "colour", "small", "another format", "huge"],
)
def test_a_drawing_of_another_kind_is_named(content: bytes) -> None:
    with pytest.raises(
        ValueError, match=r"^images/A/character01/1\.png should be a PNG of 105×105 in black and white$"
    ):
        drawings(zipped({"images/A/character01/1.png": content}))


def test_a_zip_without_drawings_is_not_an_empty_set() -> None:
    with pytest.raises(ValueError, match="a zip of drawings holds none, such as images_background/Greek"):
        drawings(zipped({"A/character01/1.png": png(picture(0))}))


def test_a_zip_that_would_take_too_much_room_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped({"images/A/character01/1.png": bytes(MAX_MEMBER_BYTES + 1)}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1000
    with pytest.raises(ValueError, match=r"images/A/character01/1\.png would take 65,537 bytes"):
        drawings(bomb)
    monkeypatch.setattr("arcwise.data._omniglot.MAX_MEMBERS", 2)
    with pytest.raises(ValueError, match="the zip holds 14 files"):
        one_shot_runs(zipped(runs_files(runs=2, ways=4)))


def test_a_file_under_a_password_is_named() -> None:
    content = bytearray(zipped({"images/A/character01/1.png": png(picture(0))}))
    # The flag of encryption, in the file's own header and in the directory at the end.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ValueError, match=r"images/A/character01/1\.png cannot be unpacked: .*encrypted"):
        drawings(bytes(content))


def write_set(folder: Path, **changed: bytes) -> Path:
    images = {
        part: zipped({f"images/{part}/character01/1.png": png(picture(0))}) for part in ("background", "evaluation")
    }
    contents = {f"images_{part}": content for part, content in images.items()} | {"all_runs": zipped(runs_files())}
    for name, content in (contents | changed).items():
        (folder / f"{name}.zip").write_bytes(content)
    return folder


def test_the_three_zips_together_are_the_set(tmp_path: Path) -> None:
    (group,) = groups_in(write_set(tmp_path), ())
    arrays = read_group(group, "omniglot")
    assert arrays is not None
    assert arrays.train_images.shape == arrays.test_images.shape == (1, 1, SIDE, SIDE)
    assert arrays.one_shot is not None
    assert arrays.one_shot[2].tolist() == [[0, 1], [1, 2]]
    (tmp_path / "all_runs.zip").unlink()
    (group,) = groups_in(tmp_path, ())
    assert read_group(group, "omniglot") is None


@pytest.mark.parametrize("content", [b"", b"no zip", zipped(runs_files())[:-30], zipped({"a": b"b"})], ids=range(4))
@pytest.mark.parametrize("name", ["images_background", "images_evaluation", "all_runs"])
def test_a_damaged_zip_is_told_as_damage_of_the_folder(name: str, content: bytes, tmp_path: Path) -> None:
    (group,) = groups_in(write_set(tmp_path, **{name: content}), ())
    with pytest.raises(DataError, match=rf"^The files in {tmp_path} are damaged: .+\.$"):
        read_group(group, "omniglot")


def test_no_two_characters_share_a_name() -> None:
    names = character_names(BACKGROUND) + character_names(EVALUATION)
    assert len(set(names)) == len(names) == 964 + 659
    assert names[:2] == ("Alphabet_of_the_Magi/character01", "Alphabet_of_the_Magi/character02")


@needs_the_real_one
@pytest.mark.parametrize(("part", "alphabets"), [("background", BACKGROUND), ("evaluation", EVALUATION)])
def test_the_names_are_those_of_the_real_zip_in_the_order_of_its_labels(part: str, alphabets: dict[str, int]) -> None:
    with zipfile.ZipFile(REAL / f"images_{part}.zip") as archive:
        matches = [match for name in archive.namelist() if (match := DRAWING.fullmatch(name))]
    assert tuple(sorted({match["character"] for match in matches})) == character_names(alphabets)
    assert len(matches) == 20 * sum(alphabets.values())


@needs_the_real_one
def test_the_real_zips_are_the_set_that_is_known() -> None:
    (arrays,) = (found for group in groups_in(REAL, ()) if (found := read_group(group, "omniglot")) is not None)
    known = KNOWN["omniglot"]
    assert arrays.digest() == known.digest
    assert (len(arrays.train_labels), len(arrays.test_labels)) == (known.num_train, known.num_test)
    assert np.bincount(arrays.train_labels).tolist() == [20] * 964
    assert np.bincount(arrays.test_labels).tolist() == [20] * 659
    assert arrays.one_shot is not None
    supports, queries, answers = arrays.one_shot
    assert supports.shape == queries.shape == (20, 20, 1, SIDE, SIDE)
    assert all(sorted(row) == list(range(20)) for row in answers.tolist())

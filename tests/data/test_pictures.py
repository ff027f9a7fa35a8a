from __future__ import annotations

import io
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageFile

from arcwise.data.pictures import PictureError, decode, longer_side, strict_pillow


def read(path: Path, size: int = 8) -> tuple[NDArray[np.uint8], bool]:
    with strict_pillow():
        return decode(path, size)


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I", "I;16", "F"])
@pytest.mark.parametrize("size", [(1, 1), (3, 40), (57, 9)])
def test_every_mode_and_shape_becomes_square_bytes(tmp_path: Path, mode: str, size: tuple[int, int]) -> None:
    path = saved(Image.new(mode, size), tmp_path / "a.tiff")
    pixels, _ = read(path, 16)
    assert pixels.shape == (3, 16, 16)
    assert pixels.dtype == np.uint8
    assert longer_side(path) == max(size)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(4, 40), st.integers(0, 255), st.integers(0, 255))
def test_a_plain_colour_stays_that_colour_whatever_the_shape(
    width: int, height: int, size: int, red: int, blue: int
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (red, 40, blue)).save(buffer, "PNG")
    pixels, _ = decode(buffer, size)  # type: ignore[arg-type]
    assert (pixels == np.array([red, 40, blue]).reshape(3, 1, 1)).all()


def test_the_proportions_stay(tmp_path: Path) -> None:
    image = Image.new("L", (40, 20))
    image.paste(200, (10, 5, 30, 15))
    pixels, grey = read(saved(image, tmp_path / "a.png"), 40)
    assert grey
    rows, columns = (pixels[0] > 100).nonzero()
    assert rows.max() - rows.min() + 1 == 10
    assert columns.max() - columns.min() + 1 == 20


def test_grey_saved_as_colour_jpeg_is_found_to_be_grey_and_a_tint_is_not(tmp_path: Path) -> None:
    shades = np.random.default_rng(0).integers(0, 256, (16, 16, 1), dtype=np.uint8).repeat(3, axis=2)
    assert read(saved(Image.fromarray(shades), tmp_path / "grey.jpg"), 16)[1]
    shades[:, :, 0] = shades[:, :, 0] // 2
    assert not read(saved(Image.fromarray(shades), tmp_path / "tint.jpg"), 16)[1]


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    values = np.linspace(0, 65_535, 64).astype(np.uint16).reshape(8, 8)
    pixels, grey = read(saved(Image.fromarray(values), tmp_path / "a.png"))
    assert grey
    assert np.abs(pixels[0].astype(float) - values / 257).max() <= 0.51


def test_floats_between_zero_and_one_use_all_of_the_range_and_nan_is_black(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    values[0, 5] = np.nan
    pixels, _ = read(saved(Image.fromarray(values), tmp_path / "a.tiff"))
    assert pixels.max() == 255
    assert pixels[0, 0, 5] == 0


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_shows_white(tmp_path: Path, mode: str) -> None:
    pixels, _ = read(saved(Image.new(mode, (8, 8), 0), tmp_path / "a.png"))
    assert (pixels == 255).all()


def test_a_transparent_colour_of_a_palette_shows_white(tmp_path: Path) -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 255, 0, 0])
    image.paste(0, (0, 0, 4, 8))
    pixels, _ = read(saved(image, tmp_path / "a.gif", transparency=0))
    assert (pixels[:, :, :4] == 255).all()
    assert pixels[:, 0, 6].tolist() == [255, 0, 0]


def test_the_camera_is_turned_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (8, 8))
    image.paste((255, 255, 255), (0, 0, 8, 2))
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels, _ = read(saved(image, tmp_path / "a.png", exif=exif))
    assert (pixels[:, :, 6:] == 255).all()
    assert (pixels[:, :, :6] == 0).all()


def test_broken_exif_does_not_cost_the_picture(tmp_path: Path) -> None:
    path = saved(
        Image.new("RGB", (8, 8), (9, 9, 9)), tmp_path / "a.jpg", exif=b"Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff"
    )
    assert read(path)[0].shape == (3, 8, 8)


def test_the_first_frame_of_a_film_is_taken(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (250, 100, 10)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert (read(tmp_path / "a.gif")[0][0] > 200).all()


def bomb() -> bytes:
    """A PNG of 60000 × 60000 pixels in a few bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")
    )


def a_png() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an empty file"),
        (b"plain text", "not a picture"),
        (a_png()[:-900], "cut short"),
        (a_png()[:41] + b"\0" * 8 + a_png()[49:], "damaged"),
        (bomb(), "too many pixels"),
    ],
)
def test_a_picture_that_cannot_be_read_says_why_in_few_words(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(PictureError, match=f"^{reason}$"):
        read(path)


def test_a_picture_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"^missing$"):
        read(tmp_path / "a.png")
    with pytest.raises(PictureError, match=r"^missing$"):
        longer_side(tmp_path / "a.png")
    with pytest.raises(PictureError, match=r"^a folder$"):
        read(tmp_path)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 3000),
    st.binary(min_size=1, max_size=8),
    st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]),
)
def test_malformed_bytes_never_raise_anything_else(place: int, change: bytes, kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(buffer, kind)
    content = bytearray(buffer.getvalue())
    place %= len(content)
    content[place : place + len(change)] = change
    with tempfile.NamedTemporaryFile(suffix=f".{kind.lower()}") as file:
        file.write(content)
        file.flush()
        try:
            assert read(Path(file.name))[0].shape == (3, 8, 8)
        except PictureError as error:
            reason = str(error)
        else:
            reason = "none"
    assert reason


def test_pillow_is_left_as_it_was() -> None:
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
    assert Image.MAX_IMAGE_PIXELS == 1024 * 1024 * 1024 // 4 // 3

"""One picture file, of whatever mode, size and make, as square RGB bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = frozenset(
    [".avif", ".bmp", ".gif", ".jp2", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"]
)  # fmt: skip
# Grey pictures saved as colour JPEG come back with channels that differ by this much at most.
GREY_TOLERANCE = 2


class PictureError(Exception):
    """Why a picture cannot be used, in a few plain words."""


@contextmanager
def strict_pillow() -> Iterator[None]:
    """For the block, a picture of too many pixels is refused rather than warned of, and Pillow's other warnings are dropped.

    Filters belong to the whole process, so this is entered once, around all the threads that decode; so is the list of formats,
    which the threads must not fill at the same time.
    """
    Image.init()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def longer_side(path: Path) -> int:
    """The picture's longer side in pixels, from its header alone. Raises PictureError."""
    try:
        with Image.open(path) as image:
            return max(image.size)
    except Exception as error:
        raise PictureError(_why(path, error)) from error


def decode(path: Path, size: int) -> tuple[NDArray[np.uint8], bool]:
    """The picture as uint8 (3, size, size), and whether it is grey. Raises PictureError.

    It is turned as its EXIF says, the first frame of several is taken, transparency shows white, and 16 bits or floats become 8.
    The proportions stay: the shorter side is filled up by repeating the border, which adds no edge of its own.
    """
    try:
        with Image.open(path) as image:
            # JPEG can be decoded at a half, a quarter or an eighth of its size for nothing.
            image.draft("RGB", (2 * size, 2 * size))
            rgb = _fitted(_as_rgb(_upright(image)), size)
    except Exception as error:
        # Decoders raise anything at all on malformed bytes: struct.error, SyntaxError, IndexError, OverflowError...
        raise PictureError(_why(path, error)) from error
    low, high = rgb.min(axis=0), rgb.max(axis=0)
    return rgb, bool(((high - low) <= GREY_TOLERANCE).all())


def _upright(image: Image.Image) -> Image.Image:
    # Decoded before the EXIF is read: after a failure inside `exif_transpose` a damaged picture would come back blank.
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        # Malformed EXIF says nothing about the pixels.
        return image


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith(("I", "F")):
        image = _eight_bits(image)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Modes I, I;16 and F: the full range of 16 bits where the values need it, [0, 1] for floats, else as they are."""
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    top = values.max(initial=0.0)
    if image.mode.startswith("F") and 0 < top <= 1:
        values = values * 255
    elif image.mode.startswith("I;16") or 255 < top <= 65_535:
        values = values / 257
    elif top > 65_535:
        values = values * (255 / top)
    return Image.fromarray(np.rint(values.clip(0, 255)).astype(np.uint8))


def _fitted(image: Image.Image, size: int) -> NDArray[np.uint8]:
    scale = size / max(image.size)
    width, height = (min(max(round(side * scale), 1), size) for side in image.size)
    if (width, height) != image.size:
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.uint8)
    top, left = (size - height) // 2, (size - width) // 2
    padding = ((top, size - height - top), (left, size - width - left), (0, 0))
    return np.ascontiguousarray(np.pad(pixels, padding, mode="edge").transpose(2, 0, 1))


def _why(path: Path, error: Exception) -> str:
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return "too many pixels"
    if isinstance(error, FileNotFoundError):
        return "missing"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, IsADirectoryError):
        return "a folder"
    try:
        if path.stat().st_size == 0:
            return "an empty file"
    except OSError:
        return "cannot be read"
    if isinstance(error, UnidentifiedImageError):
        return "not a picture"
    if "truncated" in str(error).lower():
        return "cut short"
    return "damaged"

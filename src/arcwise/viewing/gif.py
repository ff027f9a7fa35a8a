"""GIFs without flicker and without waste: one palette for all frames, no dithering, and only what changed in each frame."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Frame = NDArray[np.uint8]

NUM_COLOURS = 255
CLEAR = 255  # the index that means: as in the frame before
# A change of a pixel by so little, of 255, is not worth its bytes. It is compared with what is shown, so such changes do not add up;
# white paper is always wiped clean.
UNSEEN = 4


def encode(frames: list[Frame], milliseconds: list[int]) -> bytes:
    """An endlessly repeating GIF from RGB frames (H, W, 3) of one size, each shown for its time."""
    palette = Palette(shared_palette(frames))
    colours = palette.colours.astype(np.int16)
    height, width = frames[0].shape[:2]
    parts = [
        b"GIF89a",
        struct.pack("<HHBBB", width, height, 0b1111_0111, 0, 0),
        palette.colours.tobytes().ljust(768, b"\0"),
        b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00",
    ]
    paper = int(palette.index(np.full((1, 1, 3), 255, dtype=np.uint8))[0, 0])
    shown: Frame | None = None
    for frame, duration in zip(frames, milliseconds, strict=True):
        indexed = palette.index(frame)
        if shown is None:
            changed = np.ones_like(indexed, dtype=bool)
        else:
            changed = np.abs(colours[indexed] - colours[shown]).max(axis=-1) > UNSEEN
            changed |= (indexed == paper) & (shown != paper)
            indexed = np.where(changed, indexed, shown)
        parts += _frame_blocks(indexed, None if shown is None else changed, round(duration / 10))
        shown = indexed
    return b"".join([*parts, b";"])


class Palette:
    """Finds the nearest colour exactly, and remembers it: the same colour comes out the same in every frame."""

    def __init__(self, colours: NDArray[np.uint8]) -> None:
        self.colours = colours
        self._known = np.zeros(1 << 24, dtype=bool)
        self._nearest = np.zeros(1 << 24, dtype=np.uint8)

    def index(self, frame: Frame) -> Frame:
        """(H, W) numbers of the colours nearest to those of an RGB frame (H, W, 3)."""
        codes = _codes(frame)
        new = np.unique(codes[~self._known[codes]])
        for part in np.array_split(new, max(1, len(new) // 4096)):
            apart = _colours(part).astype(np.int32)[:, None] - self.colours.astype(np.int32)[None]
            self._nearest[part] = (apart**2).sum(axis=-1).argmin(axis=1)
        self._known[new] = True
        return self._nearest[codes].reshape(frame.shape[:2])


def shared_palette(frames: list[Frame]) -> NDArray[np.uint8]:
    """The 255 colours that serve all frames best; rare colours, such as those of labels, count for more than their area."""
    step = max(1, len(frames) // 6)
    sample = [*frames[::step], frames[-1]]
    codes = np.concatenate([_codes(frame) for frame in sample])
    unique, counts = np.unique(codes, return_counts=True)
    weights = np.ceil(np.sqrt(counts)).astype(np.int64)
    pixels = np.repeat(_colours(unique), weights, axis=0)
    picture = Image.fromarray(pixels[None])
    quantized = picture.quantize(
        colors=NUM_COLOURS, method=Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE
    )
    palette = np.frombuffer(bytes(quantized.getpalette("RGB") or []), dtype=np.uint8).reshape(-1, 3).copy()
    # The colours of large even areas must come out exactly: paper that is almost white shows on a white page.
    for code in unique[np.argsort(counts)[-8:]]:  # the most frequent one last: nothing overwrites it
        exact = _colours(np.array([code]))[0]
        palette[np.abs(palette.astype(np.int64) - exact).sum(axis=1).argmin()] = exact
    return palette


def _codes(frame: Frame) -> NDArray[np.int64]:
    wide = frame.reshape(-1, 3).astype(np.int64)
    return (wide[:, 0] << 16) | (wide[:, 1] << 8) | wide[:, 2]


def _colours(codes: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1).astype(np.uint8)


def _frame_blocks(indexed: Frame, changed: NDArray[np.bool_] | None, hundredths: int) -> Iterable[bytes]:
    """The control block, the place and the pixels of one frame: the smallest rectangle that changed, the rest of it clear."""
    top, left, part = 0, 0, indexed
    if changed is not None:
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        if not rows.size:
            rows = columns = np.zeros(1, dtype=np.int64)
        top, left = int(rows[0]), int(columns[0])
        box = np.s_[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]
        part = np.where(changed[box], indexed[box], np.uint8(CLEAR))
    transparent = changed is not None
    yield struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 0b0000_0100 | transparent, hundredths, CLEAR if transparent else 0, 0)
    yield struct.pack("<BHHHHB", 0x2C, left, top, part.shape[1], part.shape[0], 0)
    yield _compressed(part)


def _compressed(indexed: Frame) -> bytes:
    """The pixels as GIF's LZW blocks: Pillow compresses them, as a GIF of their own from which they are cut out."""
    picture = Image.fromarray(np.ascontiguousarray(indexed))
    picture.putpalette(bytes(value for index in range(256) for value in (index, index, index)))
    buffer = BytesIO()
    picture.save(buffer, "GIF", optimize=False, interlace=0)
    content = buffer.getvalue()
    packed = content[10]
    position = 13 + (3 * 2 ** ((packed & 7) + 1) if packed & 0x80 else 0)
    while content[position] == 0x21:  # extensions: skip their sub-blocks
        position += 2
        while content[position]:
            position += content[position] + 1
        position += 1
    local = content[position + 9]
    position += 10 + (3 * 2 ** ((local & 7) + 1) if local & 0x80 else 0)
    return content[position:-1]

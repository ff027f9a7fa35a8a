"""Omniglot in its own layout: two zips of drawings by alphabet and character, and the zip of its twenty one-shot runs.

images_background.zip   images_background/Greek/character01/0394_01.png     what is learnt from
images_evaluation.zip   images_evaluation/Tibetan/character01/1518_01.png   what is tested on: other alphabets
all_runs.zip            run01/training/class01.png, run01/test/item01.png and run01/class_labels.txt, which pairs the two
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Bytes = NDArray[np.uint8]
Labels = NDArray[np.int16]
Runs = tuple[Bytes, Bytes, NDArray[np.uint8]]

DRAWN = 105
SIDE = 56
# As many characters as an int16 can number.
MAX_MEMBERS, MAX_MEMBER_BYTES = 1 << 15, 1 << 16
ROWS_AT_ONCE = 1024
DRAWING = re.compile(r"[^/]+/(?P<character>[^/]+/[^/]+)/[^/]+\.png")
RUN_FILE = re.compile(r"(?:.*/)?(?P<run>run\d+)/(?P<file>(?:training|test)/[^/]+\.png|class_labels\.txt)")

# How many characters each alphabet has.
BACKGROUND = {
    "Alphabet_of_the_Magi": 20, "Anglo-Saxon_Futhorc": 29, "Arcadian": 26, "Armenian": 41, "Asomtavruli_(Georgian)": 40,
    "Balinese": 24, "Bengali": 46, "Blackfoot_(Canadian_Aboriginal_Syllabics)": 14, "Braille": 26, "Burmese_(Myanmar)": 34,
    "Cyrillic": 33, "Early_Aramaic": 22, "Futurama": 26, "Grantha": 43, "Greek": 24, "Gujarati": 48, "Hebrew": 22,
    "Inuktitut_(Canadian_Aboriginal_Syllabics)": 16, "Japanese_(hiragana)": 52, "Japanese_(katakana)": 47, "Korean": 40,
    "Latin": 26, "Malay_(Jawi_-_Arabic)": 40, "Mkhedruli_(Georgian)": 41, "N_Ko": 33,
    "Ojibwe_(Canadian_Aboriginal_Syllabics)": 14, "Sanskrit": 42, "Syriac_(Estrangelo)": 23, "Tagalog": 17, "Tifinagh": 55,
}  # fmt: skip
EVALUATION = {
    "Angelic": 20, "Atemayar_Qelisayer": 26, "Atlantean": 26, "Aurek-Besh": 26, "Avesta": 26, "Ge_ez": 26, "Glagolitic": 45,
    "Gurmukhi": 45, "Kannada": 41, "Keble": 26, "Malayalam": 47, "Manipuri": 40, "Mongolian": 30,
    "Old_Church_Slavonic_(Cyrillic)": 45, "Oriya": 46, "Sylheti": 28, "Syriac_(Serto)": 23, "Tengwar": 25, "Tibetan": 42,
    "ULOG": 26,
}  # fmt: skip


def character_names(alphabets: Mapping[str, int]) -> tuple[str, ...]:
    """Greek/character01, Greek/character02 …, in the order of the labels that `drawings` gives."""
    return tuple(f"{name}/character{number:02d}" for name, count in alphabets.items() for number in range(1, count + 1))


def drawings(content: bytes) -> tuple[Bytes, Labels]:
    """The drawings in one of the two zips, (M, 1, S, S), with labels that number the characters in alphabetical order."""
    with _opened(content) as archive:
        found = [(match["character"], name) for name in archive.namelist() if (match := DRAWING.fullmatch(name))]
        if not found:
            raise ValueError("a zip of drawings holds none, such as images_background/Greek/character01/0394_01.png")
        found.sort()
        number = {character: index for index, character in enumerate(dict.fromkeys(name for name, _ in found))}
        labels = np.array([number[character] for character, _ in found], dtype=np.int16)
        return _pictures(archive, [name for _, name in found]), labels


def one_shot_runs(content: bytes) -> Runs:
    """The one-shot runs: supports (R, N, 1, S, S), queries (R, Q, 1, S, S), and which support each query shows, (R, Q)."""
    with _opened(content) as archive:
        runs: dict[str, dict[str, str]] = {}
        for name in archive.namelist():
            if match := RUN_FILE.fullmatch(name):
                runs.setdefault(match["run"], {})[match["file"]] = name
        if not runs:
            raise ValueError("the zip of one-shot runs holds none, such as run01/class_labels.txt")
        supports: list[Bytes] = []
        queries: list[Bytes] = []
        answers: list[list[int]] = []
        for run, files in sorted(runs.items()):
            names = [sorted(file for file in files if file.startswith(part)) for part in ("training/", "test/")]
            answers.append(_answers(archive, run, files, *names))
            for part, pictures in zip(names, (supports, queries), strict=True):
                pictures.append(_pictures(archive, [files[file] for file in part]))
        sizes = {(len(part), len(asked)) for part, asked in zip(supports, queries, strict=True)}
        if len(sizes) > 1:
            raise ValueError(f"one-shot runs should be of one size and have (supports, queries) {sorted(sizes)}")
        return np.stack(supports), np.stack(queries), np.array(answers, dtype=np.uint8)


def _answers(
    archive: zipfile.ZipFile, run: str, files: Mapping[str, str], supports: list[str], queries: list[str]
) -> list[int]:
    """The support that each query shows, from class_labels.txt: the two on each line, both with the name of the run."""
    if "class_labels.txt" not in files:
        raise ValueError(f"{run} has no class_labels.txt")
    places = {f"{run}/{name}": place for place, name in enumerate(supports)}
    pairs: dict[str, int] = {}
    for line in _read(archive, files["class_labels.txt"]).decode("ascii").splitlines():
        match line.split():
            case []:
                pass
            case [query, support] if support in places:
                pairs[query] = places[support]
            case _:
                raise ValueError(
                    f"{run}/class_labels.txt should pair a drawing to name with one to learn from: {line!r}"
                )
    for query in queries:
        if f"{run}/{query}" not in pairs:
            raise ValueError(f"{run}/class_labels.txt does not name {query}")
    return [pairs[f"{run}/{query}"] for query in queries]


def _opened(content: bytes) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(content))
    if len(archive.infolist()) > MAX_MEMBERS:
        raise ValueError(f"the zip holds {len(archive.infolist()):,} files")
    for member in archive.infolist():
        if member.file_size > MAX_MEMBER_BYTES:
            raise ValueError(f"{member.filename} would take {member.file_size:,} bytes")
    return archive


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except RuntimeError as error:  # encrypted, or packed in a way that is not known here
        raise ValueError(f"{name} cannot be unpacked: {error}") from error


def _pictures(archive: zipfile.ZipFile, names: list[str]) -> Bytes:
    """(M, 1, S, S) with bright ink on black, from 105×105 drawings in black ink on white."""
    result = np.empty((len(names), 1, SIDE, SIDE), dtype=np.uint8)
    for start in range(0, len(names), ROWS_AT_ONCE):
        part = names[start : start + ROWS_AT_ONCE]
        result[start : start + len(part), 0] = shrunk(
            np.stack([_ink(_read(archive, name), name) for name in part]), SIDE
        )
    return result


def _ink(content: bytes, name: str) -> Bytes:
    """(105, 105) with 1 where there is ink."""
    wanted = f"{name} should be a PNG of {DRAWN}×{DRAWN} in black and white"
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.format != "PNG" or image.size != (DRAWN, DRAWN) or image.mode != "1":
                raise ValueError(wanted)
            ink: Bytes = (np.asarray(image) == 0).astype(np.uint8)
            return ink
    except Image.DecompressionBombError as error:
        raise ValueError(wanted) from error


def shrunk(ink_MHH: Bytes, side: int) -> Bytes:
    """How much of each pixel's area is ink, as 0 … 255. In whole numbers throughout: the same bytes on every machine."""
    length = ink_MHH.shape[-1]
    # In units of 1/(side·length) of the picture a new pixel is `length` wide, and an old one `side`.
    new_S1, old_H = np.arange(side)[:, None] * length, np.arange(length) * side
    overlap_SH = np.minimum(new_S1 + length, old_H + side) - np.maximum(new_S1, old_H)
    # Sums up to length² stay exact in float32, whose matrix product is fast.
    weight_SH = overlap_SH.clip(0).astype(np.float32)
    area_MSS = np.rint(weight_SH @ ink_MHH.astype(np.float32) @ weight_SH.T).astype(np.int64)
    grey_MSS: Bytes = ((area_MSS * 510 + length**2) // (2 * length**2)).astype(np.uint8)
    return grey_MSS

"""From a list of picture files with class names to a data set in memory. Folders and lists of files both end here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from arcwise.data.dataset import Dataset, Split
from arcwise.data.pictures import PictureError, decode, longer_side, strict_pillow
from arcwise.data.splitting import lonely_classes_note, stratified_split
from arcwise.errors import DataError
from arcwise.progress import Reporter, Stage

USUAL_SIZES = (28, 32, 64, 112)
MAX_THREADS = 8
NAMED = 5

T = TypeVar("T")


@dataclass(frozen=True)
class Listing:
    """Picture files and what they show.

    Args:
        names: how each file is called in messages, beside `paths`.
        parts: "train" or "test" for each file, or None where all are to be split.
    """

    where: str
    stem: str
    paths: Sequence[Path]
    names: Sequence[str]
    labels: Sequence[str]
    parts: Sequence[str] | None
    notes: Sequence[str] = ()


def load_listing(
    listing: Listing, *, image_size: int | None, test_share: float, seed: int, reporter: Reporter
) -> Dataset:
    """Decode every picture and split them. A picture that cannot be decoded is left out and named in the notes."""
    notes = list(listing.notes)
    with strict_pillow():
        size = image_size if image_size is not None else _usual_size(listing, notes, reporter)
        images, good = _decoded(listing, size, notes, reporter)
    if not good:
        raise DataError(f"None of the {len(listing.paths)} pictures in {listing.where} can be read. {notes[-1]}")
    train_rows, test_rows = _parts(listing, good)
    in_training = [listing.labels[good[row]] for row in train_rows]
    classes = tuple(sorted(set(in_training), key=natural_order))
    if len(classes) < 2:
        raise DataError(
            f"{listing.where} holds one class only ({classes[0]}): there is nothing to tell apart. Give pictures of two classes or more."
            if classes
            else f"{listing.where} holds no training pictures that can be read. Put some into its training part."
        )
    _say_what_is_gone(listing, classes, test_rows, good, notes)
    index = {name: number for number, name in enumerate(classes)}
    test_rows = [row for row in test_rows if listing.labels[good[row]] in index]
    labels = torch.tensor([index.get(listing.labels[row], -1) for row in good], dtype=torch.int64)
    train, test = torch.tensor(train_rows, dtype=torch.int64), torch.tensor(test_rows, dtype=torch.int64)
    if not test_rows:
        if listing.parts is not None:
            notes.append(f"No picture is marked for the test, so {test_share:.0%} of each class are kept for it.")
        kept, held_out = stratified_split(labels[train], test_share=test_share, seed=seed)
        train, test = train[kept], train[held_out]
        if note := lonely_classes_note(labels[train][~torch.isin(labels[train], labels[test])], classes, "picture"):
            notes.append(note)
        if not len(test):
            raise DataError(
                f"Every class in {listing.where} has one picture only, so none is left to test with. Add pictures to each class."
            )
    names = [listing.names[row] for row in good]

    def part(rows: Tensor) -> Split:
        return Split(images[rows], labels[rows], tuple(names[row] for row in rows.tolist()))

    return Dataset(
        name=listing.stem,
        kind="image",
        train=part(train),
        test=part(test),
        classes=classes,
        source=listing.where,
        licence="your own files",
        notes=tuple(notes),
    )


def natural_order(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key that puts 2 before 10 and keeps case for the last word."""
    pieces = re.findall(r"\d+|\D+", text)
    return tuple((0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces)


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _parts(listing: Listing, good: Sequence[int]) -> tuple[list[int], list[int]]:
    if listing.parts is None:
        return list(range(len(good))), []
    train = [row for row, file in enumerate(good) if listing.parts[file] == "train"]
    test = [row for row, file in enumerate(good) if listing.parts[file] == "test"]
    return train, test


def _say_what_is_gone(
    listing: Listing, classes: tuple[str, ...], test_rows: Sequence[int], good: Sequence[int], notes: list[str]
) -> None:
    strangers = [row for row in test_rows if listing.labels[good[row]] not in classes]
    if strangers:
        names = sorted({listing.labels[good[row]] for row in strangers}, key=natural_order)
        notes.append(
            f"{len(strangers)} test pictures are left out: nothing in the training part is of their class ({listed(names)})."
        )
    present = {listing.labels[row] for row in good}
    lost = sorted(set(listing.labels) - present, key=natural_order)
    if lost:
        notes.append(f"Left out because none of their pictures can be read: {listed(lost)}.")


def _usual_size(listing: Listing, notes: list[str], reporter: Reporter) -> int:
    def measure(row: int) -> int | None:
        try:
            return longer_side(listing.paths[row])
        except PictureError:
            return None

    with reporter.stage("Looking at the pictures", len(listing.paths)) as stage:
        sides = [side for side in _in_threads(measure, range(len(listing.paths)), stage) if side is not None]
    if not sides:
        return USUAL_SIZES[0]
    middle = median_low(sides)
    size = next((size for size in USUAL_SIZES if size >= middle), USUAL_SIZES[-1])
    if min(sides) != size or max(sides) != size:
        notes.append(
            f"The pictures are scaled to {size}×{size} with their proportions kept (the median longer side is {middle} pixels). "
            "image_size sets another size."
        )
    return size


def _decoded(listing: Listing, size: int, notes: list[str], reporter: Reporter) -> tuple[Tensor, list[int]]:
    """uint8 (M, C, size, size) of the pictures that can be read, and which files those are."""
    num = len(listing.paths)
    _check_memory(num, size, listing.where)
    pixels = np.empty((num, 3, size, size), dtype=np.uint8)

    def read(row: int) -> bool | str:
        try:
            pixels[row], grey = decode(listing.paths[row], size)
        except PictureError as error:
            return str(error)
        return grey

    with reporter.stage("Reading the pictures", num) as stage:
        outcomes = list(_in_threads(read, range(num), stage))
    good = [row for row, outcome in enumerate(outcomes) if not isinstance(outcome, str)]
    bad = [f"{listing.names[row]} ({outcome})" for row, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    if bad:
        verb = "picture cannot be read and is" if len(bad) == 1 else f"of {num} pictures cannot be read and are"
        notes.append(f"{len(bad)} {verb} left out: {listed(bad)}.")
        pixels = pixels[good]
    if all(outcomes[row] is True for row in good):
        pixels = np.ascontiguousarray(pixels[:, :1])
    return torch.from_numpy(pixels), good


def _check_memory(num: int, size: int, where: str) -> None:
    # The split copies the rows once.
    needed = 2 * num * 3 * size * size
    try:
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if needed > 0.8 * present:
        raise DataError(
            f"The {num} pictures in {where} need {needed / 1e9:.0f} GB of memory at {size}×{size}, and this machine has "
            f"{present / 1e9:.0f} GB. Pass a smaller image_size."
        )


def _in_threads(work: Callable[[int], T], rows: Iterable[int], stage: Stage) -> Iterable[T]:
    """`work` on every row, results in order. Decoders let go of the interpreter, so threads do help. An interrupt ends it at once."""
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS))
    try:
        futures: list[Future[T]] = [pool.submit(work, row) for row in rows]
        results = []
        for future in futures:
            results.append(future.result())
            stage.advance()
        return results
    finally:
        pool.shutdown(cancel_futures=True)

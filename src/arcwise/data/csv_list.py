"""A list of picture files: a CSV with the columns path and label, and split where the user has one."""

from __future__ import annotations

import csv
from pathlib import Path

from arcwise.data.dataset import Dataset
from arcwise.data.labelled_pictures import Listing, load_listing
from arcwise.errors import DataError
from arcwise.progress import Reporter

PATH_COLUMNS = ("path", "file", "filename", "filepath", "image", "image_path")
LABEL_COLUMNS = ("label", "class", "target", "category")
SPLIT_COLUMNS = ("split", "part", "set", "subset")
TRAIN_WORDS = ("train", "training", "")
TEST_WORDS = ("test", "testing", "val", "valid", "validation")


def load_csv(file: Path, *, image_size: int | None, test_share: float, seed: int, reporter: Reporter) -> Dataset:
    """Pictures named in a CSV. Relative paths start at the folder of the CSV; a label is any text."""
    header, rows = _rows(file)
    path_column, label_column = _column(file, header, PATH_COLUMNS), _column(file, header, LABEL_COLUMNS)
    split_column = next((number for number, name in enumerate(header) if name in SPLIT_COLUMNS), None)
    needed = max(path_column, label_column)
    paths: list[Path] = []
    names: list[str] = []
    labels: list[str] = []
    parts: list[str] = []
    unlabelled: list[int] = []
    for line, row in rows:
        if len(row) <= needed or not row[path_column].strip() or row[label_column].strip() in ("", "-1"):
            unlabelled.append(line)
            continue
        name = row[path_column].strip()
        names.append(name)
        paths.append(file.parent / Path(name).expanduser())
        labels.append(row[label_column].strip())
        word = row[split_column].strip().lower() if split_column is not None and len(row) > split_column else ""
        if word not in TRAIN_WORDS + TEST_WORDS:
            raise DataError(f'Line {line} of {file} has the split "{word}". Use train or test.')
        parts.append("test" if word in TEST_WORDS else "train")
    if not paths:
        raise DataError(f"{file} lists no pictures below its header. Each line is a path and a label: cats/1.jpg,cat")
    notes = []
    if unlabelled:
        lines = ", ".join(map(str, unlabelled[:5])) + (
            f" and {len(unlabelled) - 5} more" if len(unlabelled) > 5 else ""
        )
        notes.append(f"{len(unlabelled)} lines of {file.name} have no path or no label and are left out: line {lines}.")
    listing = Listing(
        where=str(file), stem=file.stem, paths=paths, names=names, labels=labels,
        parts=parts if split_column is not None else None, notes=notes,
    )  # fmt: skip
    return load_listing(listing, image_size=image_size, test_share=test_share, seed=seed, reporter=reporter)


def _rows(file: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header in lower case, and each later line that is not blank with its number."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text (byte {error.start}). Save it as CSV in UTF-8.") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Check its permissions.") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(text.splitlines(), delimiter=delimiter)
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise DataError(f"{file} is not a CSV: {error}. Save it as CSV with the columns path and label.") from error
    if not lines:
        raise DataError(f"{file} is empty. Its first line names the columns: path,label")
    return [cell.strip().lower() for cell in lines[0][1]], lines[1:]


def _column(file: Path, header: list[str], accepted: tuple[str, ...]) -> int:
    for name in accepted:
        if name in header:
            return header.index(name)
    raise DataError(
        f"{file} has no column called {accepted[0]}; its first line is: {', '.join(header)}. The first line names the columns: path,label"
    )

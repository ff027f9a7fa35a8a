"""Training without the samples that a list of likely wrong labels names: train, look the list through, train again."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.training.suspects import HEADER

NEEDED = ("row", "label", "nearer_by")


def without_listed(data: Dataset, file: str, by: float) -> Dataset:
    """The data with the label −1, which training ignores, on the training samples that a mislabelled.csv lists.

    They keep their places, so that a list that is made of the new run counts the same rows.

    Args:
        file: the list; lines may have been deleted from it.
        by: only those are left out that lie nearer to another class by more than so many degrees.
    """
    labels = data.train.labels.clone()
    count = 0
    for line, (row, name, nearer_by) in _listed(Path(file)):
        own = int(labels[row]) if 0 <= row < len(labels) else -1
        if own < 0 or data.classes[own] != name:
            held = f"the class {data.classes[own]}" if own >= 0 else "no label"
            raise ConfigError(
                f"line {line} of {file} says that training sample {row} is of the class {name}; here it has {held}."
                " The list was made with other data, another seed or other label noise: use the same."
            )
        if nearer_by > by:
            labels[row] = -1
            count += 1
    if not (labels >= 0).any():
        raise ConfigError(f"{file} lists every training sample; raise data.leave_out_by above {by:g}°.")
    note = f"{count:,} training samples that {Path(file).name} lists are left out: nearer to another class by more than {by:g}°."
    return replace(data, train=replace(data.train, labels=labels), notes=(*data.notes, note))


def _listed(file: Path) -> list[tuple[int, tuple[int, str, float]]]:
    """The number of each line with the row, the label and the degrees that stand there, each row once."""
    try:
        with file.open(encoding="utf-8", newline="") as text:
            reader = csv.DictReader(text)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise ConfigError(
                    f"{file} has no column {missing[0]}. Give the mislabelled.csv of a run, whose columns are {', '.join(HEADER)}."
                )
            listed: dict[int, tuple[int, tuple[int, str, float]]] = {}
            for entry in reader:
                try:
                    row = int(entry["row"])
                    listed.setdefault(row, (reader.line_num, (row, entry["label"], float(entry["nearer_by"]))))
                except (TypeError, ValueError):
                    raise ConfigError(
                        f"line {reader.line_num} of {file} has no number where a row and degrees should stand. Mend it or delete it."
                    ) from None
            return list(listed.values())
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not a text file; a list of samples is a CSV in UTF-8.") from None
    except csv.Error as error:
        raise ConfigError(f"{file} cannot be read as a CSV: {error}.") from None
    except OSError as error:
        raise ConfigError(f"the list {file} cannot be read: {error.strerror or error}.") from None

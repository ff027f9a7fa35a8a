"""Training again once a list of likely wrong labels is there: without the samples that it names, or with the labels that it suggests."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.training.suspects import HEADER

NEEDED = ("row", "label", "suggested", "nearer_by")
# The number of a line with the row, the label, the suggested label and the degrees that stand there.
Line = tuple[int, int, str, str, float]


def without_listed(data: Dataset, file: str, by: float) -> Dataset:
    """The data with the label −1, which training ignores, on the training samples that a mislabelled.csv lists.

    They keep their places, so that a list that is made of the new run counts the same rows.

    Args:
        file: the list; lines may have been deleted from it.
        by: only those count that lie nearer to another class by more than so many degrees.
    """
    made, count = _labelled_anew(data, file, by, suggested=False)
    if not (made.train.labels >= 0).any():
        raise ConfigError(f"{file} lists every training sample; raise data.doubtful_by above {by:g}°.")
    return _noted(made, f"{_samples(count)} that {Path(file).name} lists {'is' if count == 1 else 'are'} left out", by)


def with_suggested(data: Dataset, file: str, by: float) -> Dataset:
    """The data with the class that a mislabelled.csv suggests on the training samples that it lists; see `without_listed`."""
    made, count = _labelled_anew(data, file, by, suggested=True)
    return _noted(
        made,
        f"{_samples(count)} {'takes the label' if count == 1 else 'take the labels'} that {Path(file).name} suggests",
        by,
    )


def _samples(count: int) -> str:
    return f"{count:,} training sample{'' if count == 1 else 's'}"


def _noted(data: Dataset, what: str, by: float) -> Dataset:
    return replace(data, notes=(*data.notes, f"{what}: nearer to another class by more than {by:g}°."))


def _labelled_anew(data: Dataset, file: str, by: float, *, suggested: bool) -> tuple[Dataset, int]:
    labels = data.train.labels.clone()
    number = {name: place for place, name in enumerate(data.classes)}
    count = 0
    for line, row, name, other, nearer_by in _listed(Path(file)):
        own = int(data.train.labels[row]) if 0 <= row < len(labels) else -1
        if own < 0 or data.classes[own] != name:
            held = f"the class {data.classes[own]}" if own >= 0 else "no label"
            raise ConfigError(
                f"line {line} of {file} says that training sample {row} is of the class {name}; here it has {held}."
                " The list was made with other data, another seed or other label noise: use the same."
            )
        if suggested and other not in number:
            raise ConfigError(
                f"line {line} of {file} suggests the class {other}, which {data.name} does not have. Mend it."
            )
        if nearer_by > by:
            labels[row] = number[other] if suggested else -1
            count += 1
    return replace(data, train=replace(data.train, labels=labels)), count


def _listed(file: Path) -> list[Line]:
    """What stands in the file, each row once."""
    try:
        with file.open(encoding="utf-8", newline="") as text:
            reader = csv.DictReader(text)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise ConfigError(
                    f"{file} has no column {missing[0]}. Give the mislabelled.csv of a run, whose columns are {', '.join(HEADER)}."
                )
            listed: dict[int, Line] = {}
            for entry in reader:
                try:
                    row = int(entry["row"])
                    degrees = float(entry["nearer_by"])
                    if math.isnan(degrees):
                        raise ValueError
                    listed.setdefault(row, (reader.line_num, row, entry["label"], entry["suggested"], degrees))
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

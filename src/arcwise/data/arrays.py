"""Features or embeddings of anything, with labels, in a .npz."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from arcwise.data.dataset import Dataset, Split
from arcwise.data.labelled_pictures import natural_order
from arcwise.data.splitting import lonely_classes_note, stratified_split
from arcwise.errors import DataError
from arcwise.progress import Reporter

FEATURE_KEYS = ("features", "embeddings", "x", "X", "x_train", "X_train", "train_features")
LABEL_KEYS = ("labels", "label", "y", "Y", "targets", "y_train", "train_labels")
TEST_FEATURE_KEYS = ("x_test", "X_test", "features_test", "test_features", "embeddings_test", "test_embeddings")
TEST_LABEL_KEYS = ("y_test", "Y_test", "labels_test", "test_labels")
TRAIN_WORDS = ("train", "training", "0", "0.0", "false")
TEST_WORDS = ("test", "testing", "val", "valid", "validation", "1", "1.0", "true")
NAMED = 5

Rows = NDArray[np.float32]
Array = np.ndarray


@dataclass
class _Part:
    """Rows with their labels as they stand in the file, and which rows those are."""

    features: Rows
    labels: Array
    notes: list[str] = field(default_factory=list)


def load_arrays(file: Path, *, test_share: float, seed: int, reporter: Reporter) -> Dataset:
    """Features (M, F) under one of `FEATURE_KEYS` and labels (M,), numbers or text, under one of `LABEL_KEYS`.

    A test part may stand beside them (x_test and y_test), or a text or 0/1 array `split` may divide the rows. `classes` may hold the
    names of classes 0, 1, 2... Rows with NaN or infinity, and rows labelled −1, are left out and counted.
    """
    with reporter.stage(f"Reading {file}"):
        arrays = _read(file)
        features, labels = _pick(file, arrays, FEATURE_KEYS), _pick(file, arrays, LABEL_KEYS)
        train = _part(file, *features, *labels)
        test: _Part | None = None
        held_out: NDArray[np.bool_] | None = None
        if any(key in arrays for key in TEST_FEATURE_KEYS + TEST_LABEL_KEYS):
            test = _part(file, *_pick(file, arrays, TEST_FEATURE_KEYS), *_pick(file, arrays, TEST_LABEL_KEYS))
            if test.features.shape[1] != train.features.shape[1]:
                raise DataError(
                    f"The test rows of {file} have {test.features.shape[1]} columns and the training rows {train.features.shape[1]}. "
                    "Both need the same."
                )
        elif "split" in arrays:
            held_out = _held_out(file, arrays["split"], len(features[1]))
        named = arrays.get("classes", arrays.get("class_names"))
        return _dataset(file, train, test, held_out, named, test_share=test_share, seed=seed)


def _dataset(
    file: Path, train: _Part, test: _Part | None, held_out: NDArray[np.bool_] | None, named: Array | None,
    *, test_share: float, seed: int,
) -> Dataset:  # fmt: skip
    notes = [*train.notes, *(test.notes if test is not None else ())]
    everything = train.labels if test is None else np.concatenate([train.labels, test.labels])
    classes, values = _classes(file, everything, named)
    labels = _numbers(train.labels, values)
    good = _finite(train, notes, "") & (labels >= 0)
    if test is not None:
        test_labels = _numbers(test.labels, values)
        test_good = _finite(test, notes, " of the test part") & (test_labels >= 0)
        parts = _split(train.features, labels, good), _split(test.features, test_labels, test_good)
    elif held_out is not None:
        parts = _split(train.features, labels, good & ~held_out), _split(train.features, labels, good & held_out)
    else:
        kept, tested = stratified_split(torch.from_numpy(labels[good]), test_share=test_share, seed=seed)
        whole = _split(train.features, labels, good)
        parts = Split(whole.images[kept], whole.labels[kept]), Split(whole.images[tested], whole.labels[tested])
        if note := lonely_classes_note(whole.labels, classes, "row"):
            notes.append(note)
    ignored = int((everything == -1).sum()) if everything.dtype.kind == "i" else 0
    if ignored:
        notes.append(f"{ignored} rows of {file.name} are labelled −1, which means no class, and are left out.")
    for part, words in zip(parts, ("to train on", "to test with"), strict=True):
        if not len(part):
            raise DataError(
                f"{file} leaves no rows {words}. Give at least two rows for each class, and check its split."
            )
    if len(parts[0].labels.unique()) < 2:
        raise DataError(f"The training rows of {file} are of one class only. Give rows of two classes or more.")
    return Dataset(
        name=file.stem, kind="features", train=parts[0], test=parts[1], classes=classes, source=str(file),
        licence="your own file", notes=tuple(notes),
    )  # fmt: skip


def _read(file: Path) -> dict[str, Array]:
    try:
        with file.open("rb") as content:
            stored = np.load(content, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise DataError(
                    f"{file} is a single array. numpy.savez(FILE, features=..., labels=...) keeps features with their labels."
                )
            return {key: stored[key] for key in stored.files}
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise DataError(
                f"{file} holds Python objects, or is no .npz, and is not unpickled. Save features as numbers and labels as numbers or text."
            ) from error
        raise DataError(f"{file} is damaged: {error}.") from error
    except (OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise DataError(
            f"{file} cannot be read as a .npz: {error}. Write it with numpy.savez(FILE, features=..., labels=...)."
        ) from error


def _pick(file: Path, arrays: dict[str, Array], accepted: tuple[str, ...]) -> tuple[str, Array]:
    for key in accepted:
        if key in arrays:
            return key, arrays[key]
    raise DataError(
        f"{file} has no array called {accepted[0]}; it holds: {', '.join(arrays) or 'nothing'}. Also accepted: {', '.join(accepted[1:])}."
    )


def _part(file: Path, feature_key: str, features: Array, label_key: str, labels: Array) -> _Part:
    if features.dtype.kind not in "fiub":
        raise DataError(f"{feature_key} in {file} must be numbers; got {features.dtype}. Save it as float32.")
    if features.ndim != 2 or features.shape[1] == 0:
        raise DataError(
            f"{feature_key} in {file} must have the shape (rows, columns); got {features.shape}. "
            "Reshape it to one row for each sample; pictures belong in a folder or a CSV."
        )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != len(features):
        raise DataError(
            f"{label_key} in {file} must hold one label for each of the {len(features)} rows of {feature_key}; "
            f"got the shape {labels.shape}. Save both in the same order."
        )
    if labels.dtype.kind == "f":
        if not (np.isfinite(labels).all() and (labels == np.floor(labels)).all()):
            raise DataError(
                f"{label_key} in {file} holds numbers that are not whole. A label is a class: 0, 1, 2... or text."
            )
        labels = labels.astype(np.int64)
    elif labels.dtype.kind in "ub":
        labels = labels.astype(np.int64)
    elif labels.dtype.kind == "S":
        labels = np.array([label.decode("utf-8", "replace") for label in labels.tolist()])
    elif labels.dtype.kind not in "iU":
        raise DataError(f"{label_key} in {file} must be whole numbers or text; got {labels.dtype}.")
    if labels.dtype.kind == "i" and len(labels) and labels.min() < -1:
        row = int(np.argmin(labels))
        raise DataError(
            f"{label_key} in {file} holds the label {labels[row]} in row {row}. "
            "Classes count from 0, and −1 marks a row without a class."
        )
    with np.errstate(over="ignore"):
        return _Part(features.astype(np.float32), labels)


def _classes(file: Path, labels: Array, named: Array | None) -> tuple[tuple[str, ...], Array]:
    """The names of the classes, and the labels of the file that stand for them in this order."""
    if labels.dtype.kind == "U":
        names = sorted(set(labels.tolist()), key=natural_order)
        values = np.array(names)
    else:
        values = np.unique(labels[labels >= 0])
        names = [str(value) for value in values]
        if named is not None:
            if named.ndim != 1 or named.dtype.kind not in "US":
                raise DataError(f"classes in {file} must be a list of names; got {named.dtype} of shape {named.shape}.")
            if len(values) and values[-1] >= len(named):
                row = int(np.argmax(labels))
                raise DataError(
                    f"Row {row} of {file} has the label {labels[row]}, which is out of range: "
                    f"classes names {len(named)} classes, 0 to {len(named) - 1}. Mend the label, or name every class."
                )
            names = [
                value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in named.tolist()
            ]
            values = np.arange(len(named))
    if len(names) < 2:
        found = f"one class only ({names[0]})" if names else "no class"
        raise DataError(f"{file} holds {found}: there is nothing to tell apart. Give rows of two classes or more.")
    return tuple(names), values


def _numbers(labels: Array, values: Array) -> NDArray[np.int64]:
    """Labels as they stand in the file, counted from 0; −1 where there is none."""
    order = np.argsort(values)
    place = np.searchsorted(values, labels, sorter=order).clip(0, len(values) - 1)
    numbers = order[place].astype(np.int64)
    return np.where(values[numbers] == labels, numbers, np.int64(-1))


def _finite(part: _Part, notes: list[str], words: str) -> NDArray[np.bool_]:
    finite = np.asarray(np.isfinite(part.features).all(axis=1), dtype=np.bool_)
    if bad := np.flatnonzero(~finite).tolist():
        rows = ", ".join(map(str, bad[:NAMED])) + (f" and {len(bad) - NAMED} more" if len(bad) > NAMED else "")
        one = len(bad) == 1
        notes.append(
            f"{len(bad)} {'row' if one else 'rows'}{words} {'holds' if one else 'hold'} NaN or infinity "
            f"and {'is' if one else 'are'} left out: row {rows}."
        )
    return finite


def _held_out(file: Path, split: Array, num: int) -> NDArray[np.bool_]:
    if split.shape != (num,):
        raise DataError(f"split in {file} must hold one word for each of the {num} rows; got the shape {split.shape}.")
    words = [
        (word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)).strip().lower()
        for word in split.tolist()
    ]
    for row, word in enumerate(words):
        if word not in TRAIN_WORDS + TEST_WORDS:
            raise DataError(f'Row {row} of split in {file} is "{word}". Use train or test, or 0 and 1.')
    return np.array([word in TEST_WORDS for word in words], dtype=np.bool_)


def _split(features: Rows, labels: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Split:
    return Split(_tensor(features[chosen]), _tensor(labels[chosen]))


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arcwise.data import Dataset, load
from arcwise.errors import ConfigError, DataError

RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(30, 4)).astype(np.float32)
LABELS = np.arange(30) % 3


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "some.npz", **arrays)
    return folder / "some.npz"


def check_rows(dataset: Dataset, features: np.ndarray = FEATURES) -> None:
    rows = torch.cat([dataset.train.images, dataset.test.images])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, features.astype(np.float32).tolist()))


@pytest.mark.parametrize("feature_key", ["features", "embeddings", "x", "X", "x_train"])
@pytest.mark.parametrize("label_key", ["labels", "y", "targets", "y_train"])
def test_the_usual_keys_are_known(tmp_path: Path, feature_key: str, label_key: str) -> None:
    dataset = load(saved(tmp_path, **{feature_key: FEATURES, label_key: LABELS}))
    assert (dataset.name, dataset.kind, dataset.shape, dataset.classes) == ("some", "features", (4,), ("0", "1", "2"))
    assert dataset.train.images.dtype == torch.float32
    assert dataset.train.labels.dtype == torch.int64
    assert (len(dataset.train), len(dataset.test)) == (24, 6)
    assert dataset.notes == ()
    check_rows(dataset)


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8, np.uint16])
def test_features_of_any_number_type_become_float32(tmp_path: Path, kind: type) -> None:
    features: np.ndarray = (FEATURES * 10).astype(kind)
    check_rows(load(saved(tmp_path, features=features, labels=LABELS)), features)


@pytest.mark.parametrize("labels", [np.array(["b10", "b2", "a"])[LABELS], np.array([b"b10", b"b2", b"a"])[LABELS]])
def test_labels_may_be_text(tmp_path: Path, labels: np.ndarray) -> None:
    dataset = load(saved(tmp_path, features=FEATURES, labels=labels))
    assert dataset.classes == ("a", "b2", "b10")
    check_rows(dataset)
    lookup = {
        tuple(row): str(np.array(["b10", "b2", "a"])[label])
        for row, label in zip(FEATURES.tolist(), LABELS, strict=True)
    }
    for row, label in zip(dataset.test.images.tolist(), dataset.test.labels.tolist(), strict=True):
        assert lookup[tuple(row)] == dataset.classes[label]


def test_labels_with_gaps_whole_floats_and_columns_are_counted_from_zero(tmp_path: Path) -> None:
    labels = np.array([3.0, 7.0, 100.0])[LABELS].reshape(-1, 1)
    dataset = load(saved(tmp_path, features=FEATURES, labels=labels))
    assert dataset.classes == ("3", "7", "100")
    assert sorted(set(dataset.train.labels.tolist())) == [0, 1, 2]


def test_a_list_of_classes_names_the_labels(tmp_path: Path) -> None:
    assert load(saved(tmp_path, features=FEATURES, labels=LABELS, classes=["x", "y", "z"])).classes == ("x", "y", "z")


def test_a_test_part_that_is_there_is_kept(tmp_path: Path) -> None:
    path = saved(tmp_path, x_train=FEATURES[:20], y_train=LABELS[:20], x_test=FEATURES[20:], y_test=LABELS[20:])
    dataset = load(path)
    assert dataset.train.images.tolist() == FEATURES[:20].tolist()
    assert dataset.test.labels.tolist() == LABELS[20:].tolist()


@pytest.mark.parametrize(
    "split", [np.where(np.arange(30) < 20, "train", "test"), (np.arange(30) >= 20).astype(int), np.arange(30) >= 20]
)
def test_an_array_called_split_divides_the_rows(tmp_path: Path, split: np.ndarray) -> None:
    dataset = load(saved(tmp_path, features=FEATURES, labels=LABELS, split=split))
    assert dataset.test.images.tolist() == FEATURES[20:].tolist()


def test_rows_with_nan_or_infinity_are_left_out_and_named(tmp_path: Path) -> None:
    features = FEATURES.copy()
    features[4, 1], features[17, 0] = np.nan, -np.inf
    dataset = load(saved(tmp_path, features=features, labels=LABELS))
    assert dataset.notes == ("2 rows hold NaN or infinity and are left out: row 4, 17.",)
    check_rows(dataset, np.delete(FEATURES, [4, 17], axis=0))


def test_numbers_too_large_for_float32_count_as_infinite(tmp_path: Path) -> None:
    features: Any = FEATURES.astype(np.float64)
    features[2, 2] = 1e200
    assert load(saved(tmp_path, features=features, labels=LABELS)).notes == (
        "1 row holds NaN or infinity and is left out: row 2.",
    )


def test_rows_labelled_minus_one_are_left_out_and_counted(tmp_path: Path) -> None:
    labels = LABELS.copy()
    labels[:3] = -1
    dataset = load(saved(tmp_path, features=FEATURES, labels=labels))
    assert dataset.notes == ("3 rows of some.npz are labelled −1, which means no class, and are left out.",)
    check_rows(dataset, FEATURES[3:])


def test_a_class_with_one_row_is_trained_on_and_said(tmp_path: Path) -> None:
    labels = LABELS.copy()
    labels[5] = 9
    dataset = load(saved(tmp_path, features=FEATURES, labels=labels))
    assert 3 in dataset.train.labels.tolist()
    assert dataset.notes[0].startswith("The class 9 has only one row: it is used for training")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no features": ({"labels": LABELS}, "has no array called features; it holds: labels. Also accepted: embeddings"),
    "no labels": ({"features": FEATURES}, "has no array called labels; it holds: features"),
    "flat": ({"features": FEATURES[:, 0], "labels": LABELS}, r"shape \(rows, columns\); got \(30,\)"),
    "pictures": ({"features": np.zeros((30, 4, 4)), "labels": LABELS}, r"got \(30, 4, 4\)\. Reshape"),
    "text": ({"features": np.full((30, 2), "a"), "labels": LABELS}, "must be numbers; got <U1"),
    "complex": ({"features": FEATURES.astype(complex), "labels": LABELS}, "must be numbers; got complex"),
    "lengths": ({"features": FEATURES, "labels": LABELS[:-1]}, r"one label for each of the 30 rows .* shape \(29,\)"),
    "one-hot": ({"features": FEATURES, "labels": np.eye(3)[LABELS]}, r"one label for each .* shape \(30, 3\)"),
    "fractions": ({"features": FEATURES, "labels": LABELS + 0.5}, "numbers that are not whole"),
    "nan label": ({"features": FEATURES, "labels": np.full(30, np.nan)}, "numbers that are not whole"),
    "negative": ({"features": FEATURES, "labels": LABELS - 5}, r"the label -5 in row 0\. Classes count from 0"),
    "range": ({"features": FEATURES, "labels": LABELS, "classes": ["a", "b"]}, r"Row 2 .* label 2, .*out of range.*0 to 1"),
    "one class": ({"features": FEATURES, "labels": np.zeros(30)}, r"one class only \(0\)"),
    "no rows": ({"features": np.zeros((0, 4)), "labels": np.zeros(0)}, "holds no class"),
    "no columns": ({"features": np.zeros((30, 0)), "labels": LABELS}, r"got \(30, 0\)"),
    "objects": ({"features": FEATURES, "labels": np.array([{}] * 30, dtype=object)}, "Python objects.* not unpickled"),
    "half a test": ({"x": FEATURES, "y": LABELS, "x_test": FEATURES}, "has no array called y_test"),
    "other test": (
        {"x": FEATURES, "y": LABELS, "x_test": FEATURES[:, :2], "y_test": LABELS},
        "test rows of .* have 2 columns and the training rows 4",
    ),
    "split words": (
        {"features": FEATURES, "labels": LABELS, "split": np.full(30, "later")},
        'Row 0 of split in .* is "later"',
    ),
    "all train": ({"features": FEATURES, "labels": LABELS, "split": np.zeros(30)}, "leaves no rows to test with"),
    "one class left": (
        {"features": FEATURES, "labels": LABELS, "split": LABELS},
        'Row 2 of split in .* is "2"',
    ),
    "all nan": ({"features": FEATURES * np.nan, "labels": LABELS}, "leaves no rows to train on"),
}  # fmt: skip


@pytest.mark.parametrize(("arrays", "message"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_with_an_array_is_said(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(saved(tmp_path, **arrays))


def test_what_is_no_npz_is_said(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    for content in (b"", b"not a zip", saved(tmp_path, features=FEATURES, labels=LABELS).read_bytes()[:300]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"some\.npz"):
            load(path)
    with path.open("wb") as file:
        np.save(file, FEATURES)
    with pytest.raises(DataError, match=r"is a single array\."):
        load(path)
    path.rename(tmp_path / "some.npy")
    with pytest.raises(DataError, match=r"\(\.npy\)\. A single array has no labels"):
        load(tmp_path / "some.npy")


def test_an_image_size_for_features_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="image_size has no meaning for the features"):
        load(saved(tmp_path, features=FEATURES, labels=LABELS), image_size=32)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 6), min_size=8, max_size=40), st.integers(0, 99))
def test_every_labelled_row_is_kept_once_with_its_own_label(values: list[int], seed: int) -> None:
    import tempfile
    from collections import Counter

    counts = Counter(value for value in values if value >= 0)
    if len(counts) < 2 or max(counts.values()) < 2:
        return
    with tempfile.TemporaryDirectory() as name:
        features = np.arange(len(values), dtype=np.float32)[:, None]
        dataset = load(saved(Path(name), features=features, labels=np.array(values)), seed=seed)
    found = {
        int(row): int(dataset.classes[label])
        for part in (dataset.train, dataset.test)
        for row, label in zip(part.images[:, 0].tolist(), part.labels.tolist(), strict=True)
    }
    assert found == {row: value for row, value in enumerate(values) if value >= 0}

"""Known sets: from the cache, or fetched into it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from arcwise.data import cache
from arcwise.data._layouts import Arrays
from arcwise.data._registry import KNOWN, KnownSet
from arcwise.data._sources import Folder, Source, obtain
from arcwise.data.dataset import ROWS_AT_ONCE, Dataset, Split
from arcwise.data.one_shot import OneShot
from arcwise.data.splitting import stratified_split
from arcwise.errors import DataError, MissingExtraError
from arcwise.progress import Reporter


@dataclass(frozen=True)
class Status:
    """What is known of a set without loading it.

    Args:
        cached: whether it can be loaded without a network.
        bytes_on_disk: what it takes in the cache; 0 where it is not there.
        bytes_to_fetch: what has to be downloaded to have it; 0 where it is embedded.
        num_classes: in training, and in the test too where `num_test_classes` is 0.
        num_test_classes: how many other classes the test part has.
    """

    name: str
    about: str
    cached: bool
    embedded: bool
    bytes_on_disk: int
    bytes_to_fetch: int
    num_classes: int
    num_train: int
    num_test: int
    shape: tuple[int, int, int]
    licence: str
    source: str
    path: str
    num_test_classes: int = 0


def status() -> tuple[Status, ...]:
    """Every known set and whether it is cached, by name and length alone: the hash is checked when a set is loaded."""
    rows = []
    for known in KNOWN.values():
        kept = None if known.embedded else cache.manifest(known.name)
        rows.append(
            Status(
                name=known.name,
                about=known.about,
                cached=known.embedded or kept is not None,
                embedded=known.embedded,
                bytes_on_disk=kept.size if kept else 0,
                bytes_to_fetch=known.download_bytes,
                num_classes=len(known.classes),
                num_train=known.num_train,
                num_test=known.num_test,
                shape=known.shape,
                licence=known.licence,
                source=kept.source if kept else "",
                path=str(cache.file_of(known.name)) if kept else "",
                num_test_classes=len(known.test_classes),
            )
        )
    return tuple(rows)


def load_known(
    known: KnownSet,
    *,
    data_dir: Path | None,
    reporter: Reporter,
    test_share: float = 0.2,
    seed: int = 0,
    keep: bool = False,
) -> Dataset:
    """A known set. It is fetched if it is not cached, and kept in the cache if that can be written to.

    Args:
        keep: make it an error that the set cannot be kept, instead of a note.
    """
    if data_dir is not None and not data_dir.exists():
        raise DataError(
            f"data_dir names a folder that does not exist: {data_dir}. Name the folder that holds {known.name}."
        )
    if known.embedded:
        return _digits(known, test_share=test_share, seed=seed)
    kept = _kept(known, reporter)
    return kept if kept is not None else _fetched(known, data_dir, reporter, keep=keep)


def _kept(known: KnownSet, reporter: Reporter, *, quiet: bool = False) -> Dataset | None:
    try:
        found = cache.read(known.name)
    except cache.DamagedCacheError as error:
        if not quiet:
            reporter.warn(f"{error} It is fetched again.")
        return None
    if found is None:
        return None
    tensors, manifest = found
    return _dataset(known, tensors, f"{manifest.source} (cached in {cache.file_of(known.name)})")


def _fetched(known: KnownSet, data_dir: Path | None, reporter: Reporter, *, keep: bool) -> Dataset:
    sources = _sources(known, data_dir)
    try:
        with cache.writing(known.name, reporter) as work:
            kept = _kept(known, reporter, quiet=True)
            if kept is None:
                arrays, source = obtain(known.name, known.layout, known.digest, sources, work=work, reporter=reporter)
                tensors = _tensors(arrays)
                kept = _dataset(known, tensors, source)
                try:
                    cache.write(known.name, tensors, source)
                except cache.UnwritableCacheError as error:
                    if keep:
                        raise
                    return replace(kept, notes=(_not_kept(error),))
            cache.forget_work(work)
            return kept
    except cache.UnwritableCacheError as error:
        if keep:
            raise
        with tempfile.TemporaryDirectory(prefix="arcwise-") as name:
            arrays, source = obtain(known.name, known.layout, known.digest, sources, work=Path(name), reporter=reporter)
        return replace(_dataset(known, _tensors(arrays), source), notes=(_not_kept(error),))


def _not_kept(error: DataError) -> str:
    return f"{error} Until then it is fetched anew each time."


def _sources(known: KnownSet, data_dir: Path | None) -> list[Source]:
    folder = data_dir
    if folder is None and (named := os.environ.get("ARCWISE_DATA")):
        folder = Path(named).expanduser()
    named_by_user: list[Source] = [Folder(folder, known.archives)] if folder is not None else []
    return [*named_by_user, *known.sources]


def _tensors(arrays: Arrays) -> dict[str, Tensor]:
    def tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.array(array, order="C"))

    tensors = {
        "train_images": tensor(arrays.train_images),
        "train_labels": tensor(arrays.train_labels).long(),
        "test_images": tensor(arrays.test_images),
        "test_labels": tensor(arrays.test_labels).long(),
    }
    if arrays.one_shot is not None:
        supports, queries, answers = (tensor(array) for array in arrays.one_shot)
        tensors |= {"one_shot_supports": supports, "one_shot_queries": queries, "one_shot_answers": answers.long()}
    return tensors


def _dataset(known: KnownSet, tensors: dict[str, Tensor], source: str) -> Dataset:
    return Dataset(
        name=known.name,
        kind="image",
        train=Split(tensors["train_images"], tensors["train_labels"]),
        test=Split(tensors["test_images"], tensors["test_labels"]),
        classes=known.classes,
        source=source,
        licence=known.licence,
        test_classes=known.test_classes,
        one_shot=OneShot(*(tensors[f"one_shot_{part}"] for part in ("supports", "queries", "answers")))
        if "one_shot_answers" in tensors
        else None,
    )


def _digits(known: KnownSet, *, test_share: float, seed: int) -> Dataset:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "digits", "The digits data set") from error
    found = load_digits()
    # Grey values run from 0 to 16.
    images = torch.from_numpy(np.rint(found.images * (255 / 16)).astype(np.uint8)).unsqueeze(1)
    labels = torch.from_numpy(found.target.astype(np.int64))
    train, test = stratified_split(labels, test_share=test_share, seed=seed)
    parts = {
        "train_images": images[train],
        "train_labels": labels[train],
        "test_images": images[test],
        "test_labels": labels[test],
    }
    return _dataset(known, parts, "scikit-learn's wheel")


def resized(dataset: Dataset, size: int) -> Dataset:
    """The same images at another size, smoothed where they shrink."""
    if dataset.shape[1:] == (size, size):
        return dataset
    train, test = (replace(part, images=_resized_images(part.images, size)) for part in (dataset.train, dataset.test))
    note = f"The images were scaled from {dataset.shape[1]}×{dataset.shape[2]} to {size}×{size}."
    one_shot = dataset.one_shot
    if one_shot is not None:
        supports, queries = (
            _resized_images(part.flatten(0, 1), size).unflatten(0, part.shape[:2])
            for part in (one_shot.supports, one_shot.queries)
        )
        one_shot = replace(one_shot, supports=supports, queries=queries)
    return replace(dataset, train=train, test=test, one_shot=one_shot, notes=(*dataset.notes, note))


def _resized_images(images: Tensor, size: int) -> Tensor:
    result = torch.empty(*images.shape[:2], size, size, dtype=torch.uint8)
    for rows, target in zip(images.split(ROWS_AT_ONCE), result.split(ROWS_AT_ONCE), strict=True):
        scaled = functional.interpolate(
            rows.float(), size=(size, size), mode="bilinear", antialias=True, align_corners=False
        )
        target.copy_(scaled.add_(0.5).clamp_(0, 255))
    return result

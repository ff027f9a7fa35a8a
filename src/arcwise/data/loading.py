"""One door for every kind of data: `load` takes a known name, a folder, a list of files or an array of features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from arcwise.data._registry import find, names
from arcwise.data._sources import NothingDeliveredError
from arcwise.data.arrays import load_arrays
from arcwise.data.csv_list import load_csv
from arcwise.data.dataset import Dataset
from arcwise.data.folder import load_folder
from arcwise.data.known import load_known, resized
from arcwise.errors import ConfigError, DataError, did_you_mean
from arcwise.progress import Reporter

MIN_IMAGE_SIZE = 8
MAX_IMAGE_SIZE = 1024


def load(
    name_or_path: str | Path,
    *,
    image_size: int | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    data_dir: str | Path | None = None,
    fallback: str | None = None,
    reporter: Reporter | None = None,
) -> Dataset:
    """Labelled images or features, in memory and split into a training and a test part.

    Args:
        name_or_path: a known set (`names()`); a folder with one sub-folder for each class, or with train/ and test/ of that kind;
            a .csv with the columns path and label (and split); a .npz with features and labels. A known name goes before a path
            of the same name: write ./mnist for a folder called mnist.
        image_size: the side of the square images; by default that of the known set, or what suits the median of the user's.
        test_share: how much of each class is kept for the test, where the data does not say it itself.
        seed: decides which rows those are.
        data_dir: a folder (or an archive) where the files of a known set may lie.
        fallback: a known set that stands in where the one asked for cannot be fetched; a note says so.
        reporter: where progress is shown; nowhere by default.
    """
    reporter = reporter if reporter is not None else Reporter()
    if not 0 < test_share < 1:
        raise ConfigError(f"test_share must lie between 0 and 1; got {test_share}. 0.2 keeps a fifth for the test.")
    if image_size is not None and not MIN_IMAGE_SIZE <= image_size <= MAX_IMAGE_SIZE:
        raise ConfigError(
            f"image_size must lie between {MIN_IMAGE_SIZE} and {MAX_IMAGE_SIZE} pixels; got {image_size}."
        )
    known = find(str(name_or_path))
    data_dir = Path(data_dir).expanduser() if data_dir is not None else None
    if known is None:
        return _from_path(str(name_or_path), image_size, test_share, seed, reporter)
    stand_in = find(fallback) if fallback is not None else None
    if fallback is not None and stand_in is None:
        raise ConfigError(
            f'There is no data set called "{fallback}" to fall back to. {did_you_mean(fallback, names())}'
        )
    try:
        dataset = load_known(known, data_dir=data_dir, reporter=reporter, test_share=test_share, seed=seed)
    except NothingDeliveredError as error:
        if stand_in is None or stand_in is known:
            raise
        dataset = load_known(stand_in, data_dir=data_dir, reporter=reporter, test_share=test_share, seed=seed)
        which = f"the embedded {stand_in.name}" if stand_in.embedded else stand_in.title
        note = f"{known.title} could not be fetched ({error.short}); {which} stand in."
        dataset = replace(dataset, notes=(note, *dataset.notes))
    return dataset if image_size is None else resized(dataset, image_size)


def _from_path(text: str, image_size: int | None, test_share: float, seed: int, reporter: Reporter) -> Dataset:
    path = Path(text).expanduser()
    if path.is_dir():
        return load_folder(path, image_size=image_size, test_share=test_share, seed=seed, reporter=reporter)
    if not path.exists():
        if path.suffix or len(path.parts) > 1 or text.startswith((".", "~")):
            raise DataError(
                f"There is no file or folder {text}. Check the path, or name a known set: {', '.join(names())}."
            )
        raise ConfigError(
            f'There is no data set called "{text}", and no file or folder of that name. {did_you_mean(text, names())}'
        )
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return load_csv(path, image_size=image_size, test_share=test_share, seed=seed, reporter=reporter)
    if ending == ".npz":
        if image_size is not None:
            raise ConfigError(f"image_size has no meaning for the features in {path}. Leave it out.")
        return load_arrays(path, test_share=test_share, seed=seed, reporter=reporter)
    advice = (
        " A single array has no labels beside it: numpy.savez(FILE, features=..., labels=...) keeps both."
        if ending == ".npy"
        else ""
    )
    raise DataError(
        f"{path} is of a kind that cannot be read ({ending or 'no ending'}).{advice} "
        "Give a folder with one sub-folder for each class, a .csv with path and label, or a .npz with features and labels."
    )

"""A folder of pictures with one sub-folder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from arcwise.data.dataset import Dataset
from arcwise.data.labelled_pictures import Listing, listed, load_listing, natural_order
from arcwise.data.pictures import ENDINGS
from arcwise.errors import DataError
from arcwise.progress import Reporter

TRAIN_NAMES = ("train", "training")
TEST_NAMES = ("test", "testing", "val", "valid", "validation")


@dataclass
class _Found:
    paths: list[Path] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed_over: int = 0


def load_folder(folder: Path, *, image_size: int | None, test_share: float, seed: int, reporter: Reporter) -> Dataset:
    """Pictures from `folder/CLASS/...`, or from `folder/train/CLASS/...` and `folder/test/CLASS/...` (or val/)."""
    found = _Found()
    with reporter.stage(f"Looking for pictures in {folder}") as stage:
        root = _descend(folder, found)
        training, testing = _part_folders(root, found)
        if training is not None:
            for part, place in (("train", training), ("test", testing)):
                if place is not None:
                    _collect(place, part, found)
        else:
            _collect(root, "train", found)
        stage.update(done=len(found.paths))
    if not found.paths:
        raise DataError(_nothing(folder, root, found))
    if found.passed_over:
        found.notes.append(f"{found.passed_over} files are passed over: their endings are not those of pictures.")
    listing = Listing(
        where=f"the folder {folder}",
        stem=folder.resolve().name or "folder",
        paths=found.paths,
        names=[str(path) for path in found.paths],
        labels=found.labels,
        parts=found.parts if training is not None and testing is not None else None,
        notes=found.notes,
    )
    return load_listing(listing, image_size=image_size, test_share=test_share, seed=seed, reporter=reporter)


def _descend(folder: Path, found: _Found) -> Path:
    """Step into a lone sub-folder that holds only folders: archives often unpack to photos/photos/CLASS."""
    root = folder
    for _ in range(3):
        inside = _subfolders(root)
        if len(inside) != 1 or _pictures_in(root) or _pictures_in(inside[0]) or len(_subfolders(inside[0])) < 2:
            break
        root = inside[0]
    if root != folder:
        found.notes.append(f"The class folders are taken from {root}.")
    return root


def _part_folders(root: Path, found: _Found) -> tuple[Path | None, Path | None]:
    """The folders of a split that the user made. A folder called train that holds pictures itself is a class: trains, say."""
    by_name = {path.name.lower(): path for path in _subfolders(root)}

    def holding_classes(names: tuple[str, ...]) -> list[Path]:
        paths = [by_name[name] for name in names if name in by_name]
        return [path for path in paths if _subfolders(path) and not _pictures_in(path)]

    training, testing = holding_classes(TRAIN_NAMES), holding_classes(TEST_NAMES)
    if not training or (len(by_name) > 1 and not testing):
        return None, None
    unused = sorted(path.name for path in by_name.values() if path not in (training[0], *testing[:1]))
    if unused:
        found.notes.append(
            f"Beside {training[0].name} and {testing[0].name}, these folders are left out: {listed(unused)}."
        )
    return training[0], testing[0] if testing else None


def _collect(place: Path, part: str, found: _Found) -> None:
    beside = _pictures_in(place)
    if beside:
        found.notes.append(
            f"{len(beside)} pictures lie beside the class folders in {place} and have no class, so they are left out: "
            f"{listed([path.name for path in beside])}."
        )
    empty = []
    for class_folder in _subfolders(place):
        before = len(found.paths)
        for path in _walk(class_folder):
            if path.suffix.lower() in ENDINGS:
                found.paths.append(path)
            else:
                found.passed_over += 1
        added = len(found.paths) - before
        found.labels += [class_folder.name] * added
        found.parts += [part] * added
        if not added:
            empty.append(class_folder.name)
    if empty:
        which = "This class folder holds" if len(empty) == 1 else "These class folders hold"
        found.notes.append(f"{which} no pictures, and so there is no such class in {place}: {listed(empty)}.")


def _walk(folder: Path) -> Iterator[Path]:
    """Files at any depth, in order. Links to folders are followed, but no folder is entered twice: a link may lead back up."""
    seen: set[tuple[int, int]] = set()
    for place, subfolders, names in os.walk(folder, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in seen:
            subfolders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        subfolders[:] = sorted((name for name in subfolders if not name.startswith(".")), key=natural_order)
        for name in sorted(names, key=natural_order):
            if not name.startswith("."):
                yield Path(place, name)


def _subfolders(folder: Path) -> list[Path]:
    try:
        inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX")) and path.is_dir()]
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be read: {error.strerror}. Check its permissions.") from error
    return sorted(inside, key=lambda path: natural_order(path.name))


def _pictures_in(folder: Path) -> list[Path]:
    try:
        inside = [path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and not path.name.startswith(".")]
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be read: {error.strerror}. Check its permissions.") from error
    return sorted((path for path in inside if path.is_file()), key=lambda path: natural_order(path.name))


def _nothing(folder: Path, root: Path, found: _Found) -> str:
    layout = "Put the pictures into one sub-folder for each class: FOLDER/cat/1.jpg, FOLDER/dog/1.jpg."
    if loose := len(_pictures_in(root)):
        return f"The folder {folder} holds {loose} pictures but no class folders. {layout}"
    if found.passed_over:
        return f"The folder {folder} holds {found.passed_over} files and none of them is a picture. {layout}"
    return f"The folder {folder} is empty: no pictures in it or below it. {layout}"

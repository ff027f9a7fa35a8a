from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from arcwise.data import Dataset, load
from arcwise.errors import DataError


def picture(path: Path, shade: int = 90, size: int = 20, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (size, size), shade if mode == "L" else (shade, 10, 30)).save(path)


def noted(dataset: Dataset, text: str) -> bool:
    return any(text in note for note in dataset.notes)


def test_each_sub_folder_is_a_class(photos: Path) -> None:
    dataset = load(str(photos))
    assert dataset.name == "photos"
    assert dataset.kind == "image"
    assert dataset.classes == ("cat", "dog")
    assert dataset.shape == (3, 28, 28)
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    for part in (dataset.train, dataset.test):
        for image, label, path in zip(part.images, part.labels.tolist(), part.paths, strict=True):
            assert Path(path).parent.name == dataset.classes[label]
            red, green, blue = Image.open(path).getpixel((0, 0))  # type: ignore[misc]
            assert image[:, 14, 14].tolist() == [red, green, blue]


def test_the_split_depends_on_the_seed_alone(photos: Path) -> None:
    first, second = load(photos, seed=3), load(photos, seed=3)
    assert first.test.paths == second.test.paths
    assert torch.equal(first.train.images, second.train.images)
    assert len({load(photos, seed=seed).test.paths for seed in range(6)}) > 1


def test_classes_are_in_natural_order(tmp_path: Path) -> None:
    for name in ("10", "2", "1"):
        for number in range(2):
            picture(tmp_path / name / f"{number}.png")
    assert load(tmp_path).classes == ("1", "2", "10")


@pytest.mark.parametrize("test_name", ["test", "val", "Test", "validation"])
def test_a_split_that_is_there_is_kept(tmp_path: Path, test_name: str) -> None:
    for part, num in (("train", 3), (test_name, 2)):
        for name in ("cat", "dog"):
            for number in range(num):
                picture(tmp_path / part / name / f"{number}.png")
    dataset = load(tmp_path)
    assert (len(dataset.train), len(dataset.test)) == (6, 4)
    assert all(Path(path).parts[-3] == test_name for path in dataset.test.paths)


def test_a_class_that_only_the_test_part_has_is_left_out_and_named(tmp_path: Path) -> None:
    for part, classes in (("train", ("cat", "dog")), ("test", ("cat", "dog", "emu"))):
        for name in classes:
            picture(tmp_path / part / name / "1.png")
    dataset = load(tmp_path)
    assert dataset.classes == ("cat", "dog")
    assert len(dataset.test) == 2
    assert noted(dataset, "1 test pictures are left out: nothing in the training part is of their class (emu)")


def test_a_train_folder_alone_is_split(tmp_path: Path, photos: Path) -> None:
    shutil.move(photos, tmp_path / "set" / "train")
    dataset = load(tmp_path / "set")
    assert dataset.classes == ("cat", "dog")
    assert (len(dataset.train), len(dataset.test)) == (8, 2)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for name in ("train", "tram"):
        for number in range(3):
            picture(tmp_path / name / f"{number}.png")
    assert load(tmp_path).classes == ("train", "tram")


def test_a_third_part_is_left_out_and_named(tmp_path: Path) -> None:
    for part in ("train", "test", "val"):
        for name in ("cat", "dog"):
            picture(tmp_path / part / name / "1.png")
    dataset = load(tmp_path)
    assert noted(dataset, "these folders are left out: val")
    assert len(dataset.test) == 2


def test_a_folder_in_a_folder_is_stepped_into(photos: Path) -> None:
    dataset = load(photos.parent)
    assert dataset.classes == ("cat", "dog")
    assert noted(dataset, f"The class folders are taken from {photos}")


def test_pictures_at_any_depth_of_a_class_count(photos: Path) -> None:
    picture(photos / "cat" / "more" / "and more" / "x.JPEG")
    assert len(load(photos).train) + len(load(photos).test) == 11


def test_broken_pictures_are_counted_and_named_and_cost_nothing_else(photos: Path) -> None:
    (photos / "cat" / "a.jpg").write_bytes(b"no picture")
    (photos / "dog" / "b.png").write_bytes((photos / "dog" / "1.png").read_bytes()[:40])
    (photos / "dog" / "c.gif").write_bytes(b"")
    dataset = load(photos)
    assert len(dataset.train) + len(dataset.test) == 10
    (note,) = [note for note in dataset.notes if "cannot be read" in note]
    assert note.startswith("3 of 13 pictures cannot be read and are left out: ")
    assert f"{photos / 'cat' / 'a.jpg'} (not a picture)" in note
    assert f"{photos / 'dog' / 'c.gif'} (an empty file)" in note


def test_many_broken_pictures_are_counted_and_the_first_named(photos: Path) -> None:
    for number in range(20):
        (photos / "cat" / f"broken{number}.jpg").write_bytes(b"x")
    (note,) = [note for note in load(photos).notes if "cannot be read" in note]
    assert note.startswith("20 of 30 pictures")
    assert note.endswith("and 15 more.")


def test_a_class_with_one_picture_is_trained_on_and_said(photos: Path) -> None:
    picture(photos / "emu" / "only.png")
    dataset = load(photos)
    assert "emu" in dataset.classes
    assert dataset.classes.index("emu") in dataset.train.labels.tolist()
    assert dataset.classes.index("emu") not in dataset.test.labels.tolist()
    assert noted(dataset, "The class emu has only one picture: it is used for training")


def test_a_class_of_broken_pictures_only_is_no_class(photos: Path) -> None:
    (photos / "bad").mkdir()
    (photos / "bad" / "1.png").write_bytes(b"x")
    dataset = load(photos)
    assert dataset.classes == ("cat", "dog")
    assert noted(dataset, "Left out because none of their pictures can be read: bad.")
    assert set(dataset.train.labels.tolist()) == {0, 1}


def test_other_files_loose_pictures_and_empty_classes_are_said(photos: Path) -> None:
    (photos / "cat" / "notes.txt").write_text("x")
    (photos / "cat" / ".DS_Store").write_text("x")
    (photos / "empty").mkdir()
    picture(photos / "loose.png")
    dataset = load(photos)
    assert noted(dataset, "1 files are passed over")
    assert noted(dataset, "This class folder holds no pictures")
    assert noted(dataset, "1 pictures lie beside the class folders")
    assert dataset.classes == ("cat", "dog")


def test_grey_folders_have_one_channel_and_one_colour_makes_it_three(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for number in range(3):
            picture(tmp_path / name / f"{number}.png", mode="L", shade=60 * number)
    assert load(tmp_path).shape == (1, 28, 28)
    picture(tmp_path / "b" / "tinted.png")
    assert load(tmp_path).shape == (3, 28, 28)


@pytest.mark.parametrize(("side", "size"), [(10, 28), (28, 28), (30, 32), (50, 64), (64, 64), (90, 112), (500, 112)])
def test_the_size_follows_the_median_and_is_said_where_it_changes_anything(
    tmp_path: Path, side: int, size: int
) -> None:
    for name in ("a", "b"):
        for number in range(2):
            picture(tmp_path / name / f"{number}.png", size=side)
    dataset = load(tmp_path)
    assert dataset.shape[1:] == (size, size)
    assert noted(dataset, f"scaled to {size}×{size}") == (side != size)
    assert load(tmp_path, image_size=16).shape[1:] == (16, 16)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_links_that_lead_back_up_are_entered_once(photos: Path) -> None:
    (photos / "cat" / "again").symlink_to(photos / "cat", target_is_directory=True)
    (photos / "cat" / "up").symlink_to(photos / "cat" / "..", target_is_directory=True)
    (photos / "dog" / "gone.png").symlink_to(photos / "nothing.png")
    dataset = load(photos)
    assert "cat" in dataset.classes
    assert len(dataset.train) + len(dataset.test) <= 15
    assert noted(dataset, "gone.png (missing)")


def test_an_empty_folder_says_what_to_put_into_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"The folder .* is empty: .* one sub-folder for each class: FOLDER/cat/1.jpg"):
        load(tmp_path)


def test_pictures_without_class_folders_are_said(tmp_path: Path) -> None:
    picture(tmp_path / "1.png")
    with pytest.raises(DataError, match=r"holds 1 pictures but no class folders\. Put"):
        load(tmp_path)


def test_files_that_are_no_pictures_are_said(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.txt").write_text("x")
    with pytest.raises(DataError, match="holds 1 files and none of them is a picture"):
        load(tmp_path)


def test_one_class_only_is_said(tmp_path: Path) -> None:
    for number in range(3):
        picture(tmp_path / "cat" / f"{number}.png")
    with pytest.raises(DataError, match=r"holds one class only \(cat\): there is nothing to tell apart"):
        load(tmp_path)


def test_one_picture_a_class_is_said(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        picture(tmp_path / name / "1.png")
    with pytest.raises(DataError, match="has one picture only, so none is left to test with"):
        load(tmp_path)


def test_nothing_but_broken_pictures_is_said(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"None of the 2 pictures in .* can be read\. 2 of 2 .*\(not a picture\)"):
        load(tmp_path)


def test_reading_is_reported(photos: Path, said: Any) -> None:
    load(photos, reporter=said)
    assert any(line.startswith("Reading the pictures 10/10") for line in said.lines)

from __future__ import annotations

from pathlib import Path

import pytest

from arcwise.data import load
from arcwise.errors import DataError


def table(photos: Path, text: str, encoding: str = "utf-8") -> Path:
    path = photos / "list.csv"
    path.write_bytes(text.encode(encoding))
    return path


def rows(photos: Path, split: bool = False) -> list[str]:
    lines = []
    for name in ("cat", "dog"):
        lines += [f"{name}/{number}.png,{name}" + (",test" if number == 4 else ",train") * split for number in range(5)]
    return lines


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["path,label", "Path,Label", "filename,class"])
def test_paths_start_at_the_folder_of_the_list(photos: Path, separator: str, header: str) -> None:
    dataset = load(table(photos, "\n".join([header, *rows(photos)]).replace(",", separator), "utf-8-sig"))
    assert dataset.name == "list"
    assert dataset.classes == ("cat", "dog")
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    assert dataset.train.paths[0] == "cat/0.png"


def test_absolute_paths_extra_columns_and_blank_lines_are_fine(photos: Path) -> None:
    lines = [
        "id,label,path",
        "",
        *(f"7,{line.split(',')[1]},{photos / line.split(',')[0]}" for line in rows(photos)),
        "",
    ]
    assert len(load(table(photos, "\r\n".join(lines))).train) == 8


def test_a_split_column_is_kept(photos: Path) -> None:
    dataset = load(table(photos, "\n".join(["path,label,split", *rows(photos, split=True)])))
    assert dataset.test.paths == ("cat/4.png", "dog/4.png")
    assert dataset.notes == load(table(photos, "\n".join(["path,label", *rows(photos)]))).notes


def test_a_missing_file_and_a_missing_label_are_left_out_and_named(photos: Path) -> None:
    dataset = load(
        table(photos, "\n".join(["path,label", *rows(photos), "cat/9.png,cat", "cat/1.png,", "cat/2.png,-1"]))
    )
    assert len(dataset.train) + len(dataset.test) == 10
    assert any(note == "1 picture cannot be read and is left out: cat/9.png (missing)." for note in dataset.notes)
    assert any(
        "2 lines of list.csv have no path or no label and are left out: line 13, 14." in note for note in dataset.notes
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty. Its first line names the columns: path,label"),
        ("path,label\n", "lists no pictures below its header"),
        ("cat/1.png,cat\n", "has no column called path; its first line is: cat/1.png, cat"),
        ("path,kind\ncat/1.png,cat\n", "has no column called label"),
        ("path,label,split\ncat/1.png,cat,maybe\n", 'Line 2 of .* has the split "maybe". Use train or test'),
        ("path,label\ncat/1.png,cat\ncat/2.png,cat\n", r"one class only \(cat\)"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(photos: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(table(photos, text))


def test_a_list_that_is_not_text_is_said(photos: Path) -> None:
    path = photos / "list.csv"
    path.write_bytes(b"path,label\n\xff\xfe,x\n")
    with pytest.raises(DataError, match=r"is not UTF-8 text \(byte 11\)"):
        load(path)

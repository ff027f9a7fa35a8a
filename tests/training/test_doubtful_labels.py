from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import arcwise
from arcwise.data import Dataset, Split
from arcwise.errors import ConfigError
from arcwise.training import load_run
from arcwise.training.config import Config, with_settings
from arcwise.training.doubtful_labels import with_suggested, without_listed
from arcwise.training.suspects import HEADER

TOP = ",".join(HEADER)


@pytest.fixture
def data() -> Dataset:
    """Six samples of two classes, the last one without a label."""
    train = Split(torch.rand(6, 3), torch.tensor([0, 0, 1, 1, 1, -1]))
    return Dataset(
        "mine", "features", train, Split(torch.rand(2, 3), torch.tensor([0, 1])), ("a", "b"), "a test", "none"
    )


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Rows 3, 0 and 2, which lie nearer to the other class by 60, 20 and −5 degrees."""
    file = tmp_path / "mislabelled.csv"
    file.write_text(f"{TOP}\n3,,b,a,90,30,60\n0,,a,b,50,30,20\n2,,b,a,30,35,-5\n")
    return file


@pytest.mark.parametrize(
    ("by", "left"), [(59.0, [0, 0, 1, -1, 1, -1]), (19.9, [-1, 0, 1, -1, 1, -1]), (20.0, [0, 0, 1, -1, 1, -1])]
)
def test_what_lies_nearer_by_more_than_so_much_is_ignored_in_its_place(
    data: Dataset, listed: Path, by: float, left: list[int]
) -> None:
    made = without_listed(data, str(listed), by)
    assert made.train.labels.tolist() == left
    assert torch.equal(made.train.images, data.train.images)
    said = {
        1: "1 training sample that mislabelled.csv lists is",
        2: "2 training samples that mislabelled.csv lists are",
    }
    told = (
        f"{said[left.count(-1) - 1]} left out"
        if left.count(-1) > 1
        else "0 training samples that mislabelled.csv lists are left out"
    )
    assert made.notes == (f"{told}: nearer to another class by more than {by:g}°.",)


def test_what_is_suggested_becomes_the_label(data: Dataset, listed: Path) -> None:
    made = with_suggested(data, str(listed), 19.9)
    assert made.train.labels.tolist() == [1, 0, 1, 0, 1, -1]
    said = (
        "2 training samples take the labels that mislabelled.csv suggests: nearer to another class by more than 19.9°."
    )
    assert made.notes == (said,)


def test_a_suggestion_that_is_no_class_is_refused(data: Dataset, listed: Path) -> None:
    listed.write_text(listed.read_text().replace("3,,b,a", "3,,b,z"))
    with pytest.raises(
        ConfigError, match=r"line 2 of .*mislabelled\.csv suggests the class z, which mine does not have"
    ):
        with_suggested(data, str(listed), 20.0)
    without_listed(data, str(listed), 20.0)


def test_the_data_that_came_in_and_its_test_part_stay_as_they_were(data: Dataset, listed: Path) -> None:
    made = without_listed(data, str(listed), 0)
    assert data.train.labels.tolist() == [0, 0, 1, 1, 1, -1]
    assert made.test is data.test


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TOP}\n0,,b,a,90,30,60\n", "says that training sample 0 is of the class b; here it has the class a."),
        (f"{TOP}\n9,,b,a,90,30,60\n", "says that training sample 9 is of the class b; here it has no label."),
        (f"{TOP}\n-1,,b,a,90,30,60\n", "says that training sample -1 is of the class b; here it has no label."),
        (f"{TOP}\n5,,b,a,90,30,60\n", "says that training sample 5 is of the class b; here it has no label."),
        (f"{TOP}\nfirst,,b,a,90,30,60\n", "line 2 of {file} has no number where a row and degrees should stand."),
        (f"{TOP}\n3\n", "line 2 of {file} has no number where a row and degrees should stand."),
        ("row,label,suggested\n3,b,a\n", "{file} has no column nearer_by. Give the mislabelled.csv of a run, whose columns are row, path"),
        ("", "{file} has no column row."),
        (TOP + "".join(f"\n{row},,{'a' if row < 2 else 'b'},a,90,0,90" for row in range(5)), "{file} lists every training sample"),
    ],
)  # fmt: skip
def test_a_list_that_does_not_fit_is_refused_with_its_line(
    data: Dataset, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "list.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message.replace("{file}", str(file)))):
        without_listed(data, str(file), 20.0)


def test_a_list_that_is_missing_or_no_text_is_refused(data: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the list .*none\.csv cannot be read: No such file"):
        without_listed(data, str(tmp_path / "none.csv"), 20.0)
    (tmp_path / "picture.csv").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(ConfigError, match=r"picture\.csv is not a text file"):
        without_listed(data, str(tmp_path / "picture.csv"), 20.0)


@pytest.mark.parametrize(("setting", "least_judged"), [("leave_out", 0.9 * (1438 - 431)), ("relabel", 1437)])
def test_a_second_training_that_heeds_the_list_is_better_and_keeps_few_wrong_labels(
    setting: str, least_judged: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"loss": "arcface", "dim": 16, "epochs": 6, "device": "cpu"}
    settings = {"data.label_noise": "0.3"}
    first = arcwise.train("digits", **options, settings=settings, out="first")
    again = {**settings, f"data.{setting}": "first/mislabelled.csv"}
    second = arcwise.train("digits", **options, settings=again, out="second")
    assert first.evaluation is not None
    assert second.evaluation is not None
    assert first.evaluation["num_shuffled"] == 431
    assert second.evaluation["num_shuffled"] < 0.25 * 431
    assert second.evaluation["num_judged"] > least_judged
    assert second.evaluation["own_angle"] < 0.8 * first.evaluation["own_angle"]
    assert Path(getattr(second.config.data, setting)).is_absolute()
    Path("first/mislabelled.csv").write_text("another list by now")
    resumed = arcwise.train("second", resume=True)
    assert resumed.evaluation == second.evaluation
    assert torch.equal(load_run("second").model.head.weight, second.model.head.weight)


def test_the_list_of_a_run_that_left_samples_out_holds_these_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"loss": "arcface", "dim": 16, "epochs": 4, "device": "cpu"}
    noise = {"data.label_noise": "0.3"}
    arcwise.train("digits", **options, settings=noise, out="first")
    second = arcwise.train(
        "digits", **options, settings={**noise, "data.leave_out": "first/mislabelled.csv"}, out="second"
    )
    left_out = {row for row, by in rows_of("first/mislabelled.csv") if by > 20}
    listed = {row for row, _ in rows_of("second/mislabelled.csv")}
    assert len(left_out) > 300
    assert left_out < listed
    assert second.evaluation is not None
    assert len(listed) >= len(left_out) + second.evaluation["num_suspect"]


def rows_of(file: str) -> list[tuple[int, float]]:
    with Path(file).open(newline="") as text:
        return [(int(entry["row"]), float(entry["nearer_by"])) for entry in csv.DictReader(text)]


def test_no_folder_is_begun_with_a_list_that_is_not_there(tmp_path: Path, small_digits: Dataset) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        arcwise.train(small_digits, settings={"data.leave_out": "none.csv"}, out=tmp_path / "run", announce=False)
    assert not (tmp_path / "run").exists()


def test_a_list_is_for_one_of_the_two(make_config: Callable[..., Config]) -> None:
    config = make_config()
    with pytest.raises(
        ConfigError, match=r"left out or labelled anew; got data\.leave_out .*a\.csv and data\.relabel .*b\.csv"
    ):
        with_settings(config, {"data.leave_out": "a.csv", "data.relabel": "b.csv"})

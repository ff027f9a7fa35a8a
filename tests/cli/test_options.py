from __future__ import annotations

import sys

import pytest
from rich.cells import cell_len

from arcwise.cli.options import OutputOptions, TrainingOptions, command_line, next_command, print_table
from arcwise.errors import ConfigError

FEW = [["loss", "accuracy", "EER"], ["softmax", "98.76 ± 0.05 %", "1.2 %*"], ["arcface", "99.01 ± 0.02 %*", "1.3 %"]]
WIDE = [
    ["loss", *(f"column {n}" for n in range(9))],
    *([name, *["99.01 ± 0.02 %*"] * 9] for name in ("softmax", "norm-softmax", "arcface", "cosface", "sphereface")),
]
MANY = [WIDE[0], *([f"arcface+proxy-anchor0.{n}", *["99.01 ± 0.02 %*"] * 9] for n in range(23))]
LONG = [["measured", ""], ["a name: and a long explanation of what it is, word by word, for the reader", "98.76 %"]]


@pytest.mark.parametrize("table", [FEW, WIDE, MANY, LONG], ids=["few", "wide", "many", "long"])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 300])
def test_no_table_is_wider_than_the_terminal_and_no_value_is_cut(
    table: list[list[str]], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(table)
    printed = capsys.readouterr().out
    assert max(map(cell_len, printed.splitlines())) <= width
    assert "…" not in printed
    for row in table[1:]:
        for value in row[1:]:
            assert printed.count(value) >= sum(other[1:].count(value) for other in table)


def test_many_columns_become_rows_in_as_many_tables_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table(WIDE)
    printed = capsys.readouterr().out
    headers = [line for line in printed.splitlines() if "loss" in line]
    assert [[name for name in ("softmax", "arcface", "sphereface") if name in line] for line in headers] == [
        ["softmax", "arcface"],
        ["sphereface"],
    ]


def test_many_rows_stay_rows_with_the_first_column_in_each_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table(MANY)
    printed = capsys.readouterr().out
    headers = [line for line in printed.splitlines() if "loss" in line]
    assert [line.count("column") for line in headers] == [3, 3, 3]
    assert printed.count("arcface+proxy-anchor0.22") == 3


@pytest.mark.parametrize("width", [60, 80, 300])
def test_a_last_column_of_text_is_folded_and_leaves_the_values_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [["arcface+triplet0.5", "97.56 %", "96.52 %", "scale 6.246, m 0.414, triplet.weight 0.7, triplet.m 0.2"]]
    print_table([["loss", "best", "default", "setting"], *rows], text_last=True)
    printed = capsys.readouterr().out
    assert max(map(cell_len, printed.splitlines())) <= width
    assert "…" not in printed
    assert all(value in printed for value in ["97.56 %", "96.52 %", "6.246", "triplet.weight"])


def test_square_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([["name", "value"], ["[bold]", "[/nothing]"]])
    printed = capsys.readouterr().out
    assert "[bold]" in printed
    assert "[/nothing]" in printed


def test_the_command_is_kept_as_it_could_be_typed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/arcwise", "train", "my photos", "--loss", "arcface(m=0.3)"])
    assert command_line() == "arcwise train 'my photos' --loss 'arcface(m=0.3)'"


@pytest.mark.parametrize(("json", "quiet", "said"), [(False, False, True), (True, False, False), (False, True, False)])
def test_the_next_command_is_said_to_a_person_only(
    json: bool, quiet: bool, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    next_command("arcwise data list", OutputOptions(json=json, quiet=quiet))
    assert (capsys.readouterr().out == "\nNext: arcwise data list\n") == said


def test_settings_are_split_at_the_first_equals_sign() -> None:
    settings = TrainingOptions(set=["data.name=a=b", " train.lr = 0.1 "]).keywords()["settings"]
    assert settings == {"data.name": "a=b", "train.lr": "0.1"}
    with pytest.raises(ConfigError, match=r"--set takes section\.key=value, as in train\.lr=0\.05; got 'train\.lr'"):
        TrainingOptions(set=["train.lr"]).keywords()

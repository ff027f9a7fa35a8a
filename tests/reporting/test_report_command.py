from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from arcwise.cli import main

Maker = Callable[..., Path]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["report", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_command_writes_a_report_and_names_the_next_one(
    tmp_path: Path, make_run: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "my run")
    assert run(str(folder)) == 0
    shown = capsys.readouterr()
    assert f"Report: {folder / 'report.pdf'}" in shown.out
    assert f"Next: arcwise report '{folder}' --bundle lastname_firstname_ID_Project1.zip" in shown.out
    assert "Writing the report" in shown.err


def test_a_bundle_is_named_exactly_as_given(
    tmp_path: Path, comparison: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "lastname_firstname_ID_Project1.zip"
    assert run(str(comparison), "--bundle", str(target), "-o", str(tmp_path / "mine.pdf")) == 0
    assert zipfile.ZipFile(target).read("report.pdf") == (tmp_path / "mine.pdf").read_bytes()
    assert f"Next: python -m zipfile --list {target}" in capsys.readouterr().out


def test_json_is_all_that_is_printed(tmp_path: Path, comparison: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(comparison), "--json", "--quiet", "--out", str(tmp_path / "r.pdf")) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"report": str(tmp_path / "r.pdf"), "bundle": None}
    assert shown.err == ""


def test_a_folder_that_is_no_run_ends_with_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path)) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("arcwise: ")
    assert message.endswith("Give a folder that arcwise train or arcwise compare wrote.")


def test_an_existing_bundle_is_refused_before_anything_is_written(
    tmp_path: Path, make_run: Maker, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "run")
    (tmp_path / "mine.zip").write_text("mine")
    assert run(str(folder), "--bundle", str(tmp_path / "mine.zip")) == 2
    assert "exists already" in capsys.readouterr().err
    assert not (folder / "report.pdf").exists()

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from arcwise.atomic_write import remove_partial_files, write_file


def test_a_written_file_holds_exactly_what_was_given(tmp_path: Path) -> None:
    write_file(tmp_path / "bytes", b"\x00\xff\n")
    write_file(tmp_path / "text", "θ is an angle")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff\n"
    assert (tmp_path / "text").read_text(encoding="utf-8") == "θ is an angle"


def test_writing_again_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "old, and longer than the new one")
    write_file(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_system_call_leaves_the_old_file_and_no_partial_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    write_file(tmp_path / "a", "old")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_file(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_content_reaches_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        calls.append("fsync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "fsync file")
        fsync(descriptor)

    def recorded_replace(source: Path, target: Path) -> None:
        assert source.read_text() == "content"
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    write_file(tmp_path / "a", "content")
    assert calls == ["fsync file", "rename", "fsync folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_written_file_has_the_permissions_that_the_umask_allows(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "a"
    code = (
        f"import os; os.umask({umask}); from pathlib import Path; "
        f"from arcwise.atomic_write import write_file; write_file(Path({str(path)!r}), 'x'); "
        f"assert os.umask(0) == {umask}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_folder_that_is_not_there_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_file(tmp_path / "absent" / "a", "x")
    assert list(tmp_path.iterdir()) == []


def test_only_partial_files_are_removed(tmp_path: Path) -> None:
    for name in (".a.0123abcd.partial", ".hidden", "b.partial", "c"):
        (tmp_path / name).touch()
    remove_partial_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "b.partial", "c"]

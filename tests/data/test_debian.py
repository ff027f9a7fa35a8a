from __future__ import annotations

from pathlib import Path

import pytest

from arcwise.data._debian import data_archive


def member(name: str, content: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def test_the_data_member_is_found_behind_members_of_odd_length(tmp_path: Path) -> None:
    package = tmp_path / "a.deb"
    package.write_bytes(
        b"!<arch>\n"
        + member("debian-binary", b"2.0")
        + member("control.tar.gz/", b"12345")
        + member("data.tar.gz/", b"the data")
    )
    assert data_archive(package).read() == b"the data"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04", "not a Debian package"),
        (b"!<arch>\n" + member("debian-binary", b"2.0\n"), "no data.tar"),
        (b"!<arch>\n" + member("data.tar.xz", b"12345678")[:-4], "cut short"),
        (b"!<arch>\n" + b"x" * 60, "header is damaged"),
    ],
)
def test_what_is_no_package_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.deb").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        data_archive(tmp_path / "a.deb")

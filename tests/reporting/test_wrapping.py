from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arcwise.reporting.wrapping import breakable


@given(st.text(), st.integers(1, 30))
def test_only_invisible_breaks_are_added(text: str, longest: int) -> None:
    assert breakable(text, longest).replace("\u200b", "") == text.replace("\u200b", "")


@given(st.text(alphabet="abc/_-. ", max_size=200), st.integers(1, 30))
def test_no_piece_is_longer_than_asked(text: str, longest: int) -> None:
    assert all(len(piece) <= longest for word in breakable(text, longest).split() for piece in word.split("\u200b"))


def test_breaks_come_after_punctuation() -> None:
    assert breakable("very/long/path", 8) == "very/\u200blong/\u200bpath"


def test_short_words_are_left_alone() -> None:
    assert breakable("a/b c_d", 8) == "a/b c_d"

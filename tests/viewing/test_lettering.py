"""Names are printed literally, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise.viewing.lettering import class_names, plain, shorten, width, wrap


@pytest.mark.parametrize("name", ["$x_1$", "$", "a $ b $ c", r"cost \$5 $", r"$\frac{1"])
def test_a_dollar_sign_is_a_dollar_sign_and_not_mathematics(name: str) -> None:
    from matplotlib.cbook import is_math_text

    assert not is_math_text(plain(name))


def test_what_no_font_can_draw_becomes_a_box_and_a_name_of_only_such_its_number() -> None:
    private = "\ue123\ue124"
    assert plain(f"a{private}") == "a□□"
    assert class_names(("cat", private, "", "  "), 20) == ["cat", "class 1", "class 2", "class 3"]


def test_line_breaks_and_control_characters_do_not_reach_the_picture() -> None:
    assert plain("a\nb\tc\x07\u202ed") == "a b cd"


def test_a_long_name_is_cut_with_an_ellipsis_and_a_short_one_is_not() -> None:
    assert shorten("aeroplane", 9) == "aeroplane"
    assert shorten("a very long name", 8) == "a very…"
    assert width(shorten("日本語の名前です", 8)) <= 8


@given(st.text(max_size=200), st.integers(2, 60))
def test_wrapping_keeps_every_word_and_breaks_only_lines_that_are_too_long(text: str, columns: int) -> None:
    lines = wrap(text, columns).split("\n")
    assert " ".join(lines).split() == text.split()
    assert all(width(line) <= columns or " " not in line.strip() for line in lines)


@given(st.text(max_size=40), st.integers(1, 30))
def test_a_shortened_name_is_never_wider_than_asked(text: str, columns: int) -> None:
    assert width(shorten(text, columns)) <= columns

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcwise.data import load
from arcwise.data.labelled_pictures import listed, natural_order
from arcwise.errors import DataError


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbered_names_are_sorted_by_their_numbers(numbers: list[int]) -> None:
    names = sorted((f"class {number}" for number in numbers), key=natural_order)
    assert names == [f"class {number}" for number in sorted(numbers)]


@given(st.lists(st.text(max_size=6), unique=True), st.randoms())
def test_any_names_can_be_sorted_and_always_come_out_the_same(names: list[str], random: Random) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)
    assert sorted(names, key=natural_order) == sorted(shuffled, key=natural_order)


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_pictures_that_do_not_fit_into_memory_are_said_before_they_are_read(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 1 if name == "SC_PAGE_SIZE" else 100_000)
    with pytest.raises(DataError, match=r"The 10 pictures in .* need .* at 512×512, and .* Pass a smaller image_size"):
        load(photos, image_size=512)

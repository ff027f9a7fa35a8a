from __future__ import annotations

from collections.abc import Sequence

import pytest

from arcwise.reporting.measured import standing
from arcwise.reporting.reading import Column
from arcwise.reporting.sentences import (
    column_sentence,
    counted,
    listing,
    seeds_sentence,
)

ACCURACY = Column("accuracy", "accuracy", "%", "higher")
ANGLE = Column("own_angle", "angle to own centre", "°", "lower")
SECONDS = Column("train_seconds", "training time", "s", "lower")


def said(column: Column, values: dict[str, Sequence[float]]) -> str:
    return column_sentence(standing(column, {loss: {column.key: listed} for loss, listed in values.items()}))


def test_the_winner_the_gap_and_the_spread_are_said() -> None:
    assert said(ACCURACY, {"softmax": [0.97, 0.99], "arcface": [0.995, 0.997]}) == (
        "ArcFace has the highest test accuracy, 99.60 ± 0.14 %; softmax follows with 98.00 ± 1.41 %, 1.60 percentage points "
        "lower. That gap is 1.6 times the spread between seeds (1.00 percentage points): a hint, not a proof."
    )


def test_softmax_is_named_where_it_wins() -> None:
    assert said(ACCURACY, {"softmax": [0.99], "arcface": [0.98]}).startswith(
        "Softmax has the highest test accuracy, 99.00 %"
    )


def test_with_one_seed_no_spread_is_claimed() -> None:
    assert "spread" not in said(ACCURACY, {"softmax": [0.97], "arcface": [0.99]})


def test_a_gap_below_the_spread_decides_nothing() -> None:
    assert "do not decide this column" in said(ACCURACY, {"softmax": [0.97, 0.99], "arcface": [0.975, 0.991]})


def test_a_gap_far_above_the_spread_is_counted_in_spreads() -> None:
    assert said(ANGLE, {"softmax": [12.0, 12.2], "arcface": [5.0, 5.2]}).endswith(
        "7.0° higher. That gap is 49.5 times the spread between seeds (0.1°)."
    )


def test_seeds_that_agree_exactly_leave_no_chance() -> None:
    words = said(ACCURACY, {"softmax": [0.97, 0.97], "arcface": [0.99, 0.99]})
    assert words.endswith("Every seed gave the same values, so the gap is not chance between seeds.")


@pytest.mark.parametrize(
    ("values", "beginning"),
    [
        ({"softmax": [0.99], "arcface": [0.99]}, "Both losses have the same test accuracy"),
        ({"a": [0.99], "b": [0.99], "c": [0.99]}, "All three losses have the same test accuracy"),
        ({"softmax": [0.98], "arcface": [0.99], "cosface": [0.99]}, "ArcFace and CosFace share the highest test accuracy, 99.00 %;"),
        ({"arcface": [0.99]}, "ArcFace reaches a test accuracy of 99.00 %."),
    ],
)  # fmt: skip
def test_ties_and_single_losses_are_said_in_whole_sentences(values: dict[str, Sequence[float]], beginning: str) -> None:
    assert said(ACCURACY, values).startswith(beginning)


def test_five_losses_are_all_named() -> None:
    words = said(ACCURACY, {"a": [0.95], "b": [0.96], "c": [0.97], "d": [0.98], "e": [0.99]})
    assert words == (
        "E has the highest test accuracy, 99.00 %; d follows with 98.00 %, 1.00 percentage points lower. "
        "Behind them: c 97.00 %, b 96.00 % and a 95.00 %."
    )


MANY: dict[str, Sequence[float]] = {
    "softmax": [0.90], "norm-softmax": [0.91], "arcface": [0.95], "cosface": [0.99], "sphereface": [0.97], "adacos": [0.98],
    "magface": [0.96], "arcface+intra0.1": [0.95], "uniface": [0.89],
}  # fmt: skip


def test_of_many_losses_the_first_the_next_and_the_baselines_are_named() -> None:
    assert said(ACCURACY, MANY) == (
        "CosFace has the highest test accuracy, 99.00 %; AdaCos follows with 98.00 %, 1.00 percentage points lower. "
        "Behind them: SphereFace 97.00 %, MagFace 96.00 %, ArcFace 95.00 % and one more with 95.00 %; "
        "the baselines norm-softmax and softmax have 91.00 % and 90.00 %. The table has the other one."
    )


def test_a_baseline_that_is_among_the_first_is_named_once() -> None:
    words = said(ACCURACY, {**MANY, "softmax": [0.985]})
    assert words.count("softmax") == 2
    assert "softmax follows with 98.50 %" in words
    assert words.endswith("the baseline norm-softmax has 91.00 %. The table has the other three.")


def test_a_first_place_that_many_share_is_counted() -> None:
    words = said(ACCURACY, {**MANY, **dict.fromkeys(["adaface", "li-arcface", "long-tail", "magface"], (0.99,))})
    assert words.startswith("CosFace, MagFace, AdaFace and two others share the highest test accuracy, 99.00 %;")


def test_a_scale_without_a_better_end_shows_the_two_ends_of_many() -> None:
    words = said(Column("norm", "length", "", ""), {loss: [100 * value[0]] for loss, value in MANY.items()})
    assert words.startswith("The length lies between 89.00 (UniFace) and 99.00 (CosFace). Neither end")


def test_many_losses_without_a_measurement_are_counted() -> None:
    assert said(ACCURACY, {**dict.fromkeys(MANY, ()), "a": [0.9]}).endswith("It was not measured for nine losses.")


def test_no_value_stands_right_behind_a_number_of_the_loss() -> None:
    assert "Behind them: ArcFace + intra 0.1 (95.00 %) and softmax (90.00 %)." in said(
        ACCURACY, {"a": [0.99], "b": [0.98], "arcface+intra0.1": [0.95], "softmax": [0.9]}
    )


def test_times_are_shorter_and_longer_not_lower_and_higher() -> None:
    assert "shortest training time, 60.0 s; ArcFace follows with 63.0 s, 3.0 s longer" in said(
        SECONDS, {"softmax": [60.0], "arcface": [63.0]}
    )


def test_what_was_not_measured_is_said() -> None:
    assert said(ACCURACY, {"softmax": [], "arcface": [0.9]}).endswith("It was not measured for softmax.")
    assert said(ACCURACY, {"softmax": [], "arcface": []}) == "The test accuracy was not measured."


def test_lists_and_counts_are_grammatical() -> None:
    assert [listing(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [counted(n, "class", "classes") for n in (1, 2, 100)] == ["one class", "two classes", "100 classes"]


def test_one_seed_is_said_to_give_no_spread() -> None:
    assert "no spread between seeds to judge" in seeds_sentence(1, 2)
    assert "single loss" in seeds_sentence(1, 1)
    assert "standard deviation over three seeds" in seeds_sentence(3, 2)
    assert "gap" not in seeds_sentence(3, 1)

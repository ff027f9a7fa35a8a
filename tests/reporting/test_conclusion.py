from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest

from arcwise.reporting.conclusion import NoisePoint, conclusion, noise_sentence, summary, tally
from arcwise.reporting.measured import Standing, standing
from arcwise.reporting.reading import Column

COLUMNS = (
    Column("accuracy", "accuracy", "%", "higher"),
    Column("own_angle", "angle to own centre", "°", "lower"),
    Column("train_seconds", "training time", "s", "lower"),
)
Values = Mapping[str, Mapping[str, Sequence[float]]]


def values(**losses: tuple[Sequence[float], Sequence[float], Sequence[float]]) -> Values:
    return {
        loss: dict(zip(("accuracy", "own_angle", "train_seconds"), row, strict=True)) for loss, row in losses.items()
    }


def standings(measured: Values) -> list[Standing]:
    return [standing(column, measured) for column in COLUMNS]


def concluded(measured: Values, *, num_seeds: int = 1, noise: Sequence[NoisePoint] = (), events: int = 0) -> str:
    return " ".join(
        conclusion(
            standings=standings(measured),
            losses=tuple(measured),
            noise=noise,
            data="MNIST",
            dim=3,
            num_seeds=num_seeds,
            num_health_events=events,
            data_argument="mnist",
        )
    )


SOFTMAX = ([0.98], [12.0], [60.0])


def test_a_margin_that_wins_everything_is_said_to() -> None:
    text = concluded(values(softmax=SOFTMAX, arcface=([0.99], [5.0], [66.0])))
    assert "ArcFace is best in all two measured qualities." in text
    assert "under ArcFace the angle is 5.0°, 58 % smaller" in text
    assert "The tighter classes came with a higher test accuracy for ArcFace (by 1.00 percentage points)." in text
    assert "The slowest training, ArcFace, took 10 % longer than the fastest, softmax (66.0 s against 60.0 s)." in text


def test_a_column_that_softmax_wins_is_given_to_softmax() -> None:
    text = concluded(values(softmax=SOFTMAX, arcface=([0.97], [5.0], [60.0])))
    assert "softmax is best in one" in text
    assert "The tighter classes came with a lower test accuracy for ArcFace (by 1.00 percentage points)." in text
    assert "Training took the same time under every loss." in text


def test_a_margin_without_effect_is_said_to_have_none() -> None:
    text = concluded(values(softmax=SOFTMAX, arcface=([0.98], [14.0], [60.0])))
    assert "17 % larger" in text
    assert "the expected effect of a margin does not show here" in text


def test_equal_angles_are_called_equal() -> None:
    assert "under ArcFace they lie at the same angle" in concluded(values(softmax=SOFTMAX, arcface=SOFTMAX))


def test_ties_in_everything_are_no_victory() -> None:
    words = tally(standings(values(softmax=SOFTMAX, arcface=SOFTMAX)), ("softmax", "arcface"))
    assert words == "The best losses share the first place in all two measured qualities."


def test_a_tie_in_one_column_is_counted_as_one() -> None:
    words = tally(standings(values(softmax=SOFTMAX, arcface=([0.98], [5.0], [1.0]))), ("softmax", "arcface"))
    assert words == "Of the two measured qualities, ArcFace is best in one; one is a tie (test accuracy)."


def test_one_loss_is_described_and_the_command_that_compares_it_is_named() -> None:
    text = concluded(values(arcface=([0.99], [5.0], [60.0])))
    assert text.startswith(
        "ArcFace was trained alone. It reaches: test accuracy 99.00 % and mean angle to the own class 5.0°."
    )
    assert "arcwise compare mnist --losses softmax,arcface" in text
    assert "best" not in text


def test_softmax_alone_is_sent_to_arcface() -> None:
    assert "--losses softmax,arcface" in concluded(values(softmax=SOFTMAX))


def test_leads_within_the_spread_are_called_undecided() -> None:
    text = concluded(
        values(softmax=([0.97, 0.99], [11.0, 13.0], [60.0, 60.0]), arcface=([0.975, 0.99], [11.5, 12.0], [60.0, 60.0])),
        num_seeds=2,
    )
    assert "the ranking should be read as undecided" in text


def test_a_tie_in_everything_has_no_lead_to_doubt() -> None:
    row = ([0.98, 0.99], [12.0, 12.1], [60.0, 61.0])
    assert "lead" not in concluded(values(softmax=row, arcface=row), num_seeds=2)


def test_only_leads_beyond_the_spread_are_vouched_for() -> None:
    text = concluded(
        values(softmax=([0.97, 0.99], [12.0, 12.1], [60.0, 61.0]), arcface=([0.975, 0.99], [5.0, 5.1], [60.0, 61.0])),
        num_seeds=2,
    )
    assert "Only the lead in mean angle to the own class is larger than twice the spread" in text


def test_a_single_doubtful_lead_among_many_is_the_exception() -> None:
    columns = [Column(f"c{i}", f"quality {i}", "%", "higher") for i in range(4)]
    better = {f"c{i}": [0.9, 0.901] for i in range(3)} | {"c3": [0.80, 0.82]}
    worse = {f"c{i}": [0.8, 0.801] for i in range(3)} | {"c3": [0.79, 0.82]}
    measured = {"softmax": worse, "arcface": better}
    paragraphs = conclusion(
        standings=[standing(column, measured) for column in columns], losses=("softmax", "arcface"), noise=(), data="MNIST",
        dim=None, num_seeds=2, num_health_events=0, data_argument="mnist",
    )  # fmt: skip
    assert paragraphs[0].endswith("larger than twice the spread between seeds, except that in quality 3.")


def test_health_events_are_kept_in_mind() -> None:
    assert "One health event was reported" in concluded(values(softmax=SOFTMAX), events=1)
    assert "Two health events were reported" in concluded(values(softmax=SOFTMAX), events=2)


@pytest.mark.parametrize("num_losses", [1, 2, 3, 5, 13])
@pytest.mark.parametrize("num_seeds", [1, 3])
@pytest.mark.parametrize("step", [0.0, 0.001])
def test_any_number_of_losses_gives_whole_sentences(num_losses: int, num_seeds: int, step: float) -> None:
    names = ["softmax", "arcface", "cosface", *(f"loss{index}" for index in range(10))][:num_losses]
    measured = {
        name: {
            "accuracy": [0.9 + step * index + 0.0001 * seed for seed in range(num_seeds)],
            "own_angle": [12.0 - 100 * step * index + 0.01 * seed for seed in range(num_seeds)],
            "train_seconds": [60.0 + index for _ in range(num_seeds)],
        }
        for index, name in enumerate(names)
    }
    head = summary(
        data="MNIST", num_classes=10, backbone="vgg8", dim=3, epochs=1, num_seeds=num_seeds, standings=standings(measured), losses=names
    )  # fmt: skip
    text = head + " " + concluded(measured, num_seeds=num_seeds)
    assert "  " not in text
    assert text.count("(") == text.count(")")
    assert not any(
        bad in text
        for bad in (
            " ,",
            " .",
            "..",
            "None,",
            "None)",
            "None.",
            "None dim",
            "nan ",
            "()",
            "one epochs",
            "one seeds",
            ", and",
        )
    )
    assert all(sentence[0].isupper() or sentence[0].isdigit() for sentence in text.split(". ") if sentence)
    assert text.endswith(".")


def test_the_summary_names_what_was_done() -> None:
    measured = values(softmax=SOFTMAX, arcface=([0.99], [5.0], [60.0]))
    words = summary(
        data="MNIST", num_classes=10, backbone="vgg8", dim=3, epochs=1, num_seeds=1, standings=standings(measured), losses=tuple(measured)
    )  # fmt: skip
    assert words.startswith(
        "This report compares softmax and ArcFace on MNIST (ten classes), with the backbone vgg8 and embeddings of three "
        "dimensions, trained for one epoch, with one seed each. The highest test accuracy is that of ArcFace (99.00 %), against "
        "softmax 98.00 %."
    )


MANY = {
    "softmax": SOFTMAX, "norm-softmax": ([0.97], [13.0], [60.0]), "arcface": ([0.99], [5.0], [66.0]),
    "cosface": ([0.98], [6.0], [66.0]), "adacos": ([0.975], [7.0], [66.0]), "magface": ([0.96], [8.0], [66.0]),
    "uniface": ([0.95], [12.0], [66.0]), "sphereface": ([0.94], [9.0], [66.0]), "li-arcface": ([0.93], [10.0], [66.0]),
}  # fmt: skip


def test_the_summary_of_many_losses_counts_them_and_names_the_first_the_next_and_the_baselines() -> None:
    measured = values(**MANY)
    words = summary(
        data="MNIST", num_classes=10, backbone="vgg8", dim=3, epochs=1, num_seeds=1, standings=standings(measured), losses=tuple(measured)
    )  # fmt: skip
    assert words.startswith("This report compares nine losses on MNIST")
    assert (
        "The highest test accuracy is that of ArcFace (99.00 %), against softmax 98.00 %, CosFace 98.00 % and AdaCos 97.50 %; "
        "the baseline norm-softmax has 97.00 %." in words
    )
    assert "The table of results has all values." in words


def test_of_many_losses_the_conclusion_names_the_tightest_and_counts_the_others() -> None:
    text = concluded(values(**MANY))
    assert (
        "Under softmax, a test embedding lies on average 12.0° from the mean direction of its class; the angle is smallest under "
        "ArcFace (5.0°, 58 % less); of the eight other losses, it is smaller under six, the same under one and larger under one."
    ) in text
    assert (
        "The tighter classes came with a higher test accuracy for ArcFace (by 1.00 percentage points), left the test accuracy "
        "unchanged for CosFace and came with a lower test accuracy for four losses (by 0.50 to 5.00 percentage points)."
    ) in text


def points(gaps: Sequence[float]) -> list[NoisePoint]:
    losses = itertools.cycle(["softmax", "arcface"])
    return [NoisePoint(f"noise {i}", next(losses), 0.9 + gap, 0.9) for i, gap in enumerate(gaps)]


def test_the_noise_claim_holds_only_where_the_angle_never_loses() -> None:
    assert "holds in these runs" in noise_sentence(points([0.01, 0.02, 0.0]))
    assert "holds only in part" in noise_sentence(points([0.01, -0.02, 0.0]))
    assert "does not hold in these runs" in noise_sentence(points([-0.01, -0.02, 0.0]))


def test_the_noise_sentence_counts_wins_losses_and_ties() -> None:
    assert noise_sentence(points([0.01, 0.03, -0.01, 0.0])).startswith(
        "Against noise, deciding by angle is more accurate than deciding by distance in two of four combinations of noise and "
        "loss, less accurate in one and equal in one; on average it is 0.75 percentage points more accurate."
    )


def test_no_difference_on_average_is_said_so() -> None:
    assert noise_sentence(points([0.01, -0.01])).endswith("on average there is no difference.")


def test_a_single_noise_is_one_plain_sentence() -> None:
    assert (
        noise_sentence(points([-0.01]))
        == "Under noise 0, deciding by distance is 1.00 percentage points more accurate."
    )
    assert noise_sentence(points([0.0])) == "Under noise 0, the angle and the distance decide equally well."
    assert noise_sentence([]) == ""

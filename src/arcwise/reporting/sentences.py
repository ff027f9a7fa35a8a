"""Plain sentences made from numbers. Pure functions: the same numbers always give the same words, for any number of losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arcwise.loss_titles import is_alone, title_of
from arcwise.reporting.measured import Place, Standing, spread_between_seeds
from arcwise.reporting.reading import Column

_NOUNS = {
    "accuracy": "test accuracy",
    "classifier_accuracy": "accuracy of the trained classifier",
    "eer": "equal error rate",
    "own_angle": "mean angle to the own class",
    "smallest_centre_angle": "smallest angle between two classes",
    "fisher": "ratio of between to within",
    "noise_accuracy": "accuracy under noise by angle",
    "noise_accuracy_distance": "accuracy under noise by distance",
    "train_seconds": "training time",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

FEW = 6
"""As many losses as a sentence names one by one; of more it names the first, the next and the baselines, and leaves the rest to a table."""

NEXT = 3
"""How many are named behind the first where there are more than a few."""

BASELINES = ("softmax", "norm-softmax")

CLEAR = 2.0
"""A gap of at least this many spreads between seeds is called clear; one of less than a single spread decides nothing."""


def noun(column: Column) -> str:
    """What a column measures, as a noun that stands in a sentence; a table's heading is often too short for that."""
    return _NOUNS.get(column.key, column.title)


def capitalised(text: str) -> str:
    """The text with a capital first letter, and the rest as it was."""
    return text[:1].upper() + text[1:]


def listing(items: Sequence[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def in_words(count: int) -> str:
    return _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)


def counted(count: int, thing: str, plural: str | None = None) -> str:
    """`one seed`, `three seeds`."""
    return f"{in_words(count)} {thing if count == 1 else plural or thing + 's'}"


def column_sentence(standing: Standing) -> str:
    """Who is best in a column, by how much, and whether the seeds agree on it."""
    title = noun(standing.column)
    units = standing.units
    unmeasured = ""
    if standing.unmeasured and standing.places:
        unmeasured = f" It was not measured for {named(standing.unmeasured)}."
    if not standing.places:
        return f"The {title} was not measured."
    if not standing.has_direction:
        return f"The {title}{_span(standing)}. Neither end of this scale is better in itself.{unmeasured}"
    if len(standing.places) == 1:
        place = standing.places[0]
        return f"{capitalised(title_of(place.loss))} reaches {_article(title)} of {units.over_seeds(place.values)}.{unmeasured}"
    best = standing.best
    extreme = extreme_word(standing)
    if len(best) == len(standing.places):
        who = "Both losses" if len(best) == 2 else f"All {in_words(len(best))} losses"
        return f"{who} have the same {title} as printed, {units.value(best[0].mean)}: a tie.{unmeasured}"
    runner_up = standing.runner_up
    assert runner_up is not None
    gap = best[0].mean - runner_up.mean
    if len(best) > 1:
        lead = f"{capitalised(sharing(standing))} share the {extreme} {title}, {units.value(best[0].mean)};"
    else:
        lead = f"{capitalised(title_of(best[0].loss))} has the {extreme} {title}, {units.over_seeds(best[0].values)};"
    is_time = units.unit == "s"
    direction = ("shorter" if is_time else "lower") if gap > 0 else ("longer" if is_time else "higher")
    follow = (
        f" {title_of(runner_up.loss)} follows with {units.over_seeds(runner_up.values)},"
        f" {units.difference(gap)} {direction}."
    )
    rest = standing.places[len(best) + 1 :]
    others = ""
    if rest:
        words, num_left = behind(standing, rest)
        table = f" The table has the other {in_words(num_left)}." if num_left else ""
        others = f" Behind them: {words}.{table}"
    return lead + follow + gap_sentence(standing) + others + unmeasured


def _span(standing: Standing) -> str:
    """What stands in a column that has no better end: every value, or the two ends of many."""
    units = standing.units
    if len(standing.places) <= FEW:
        return ": " + listing(with_values({place.loss: units.over_seeds(place.values) for place in standing.places}))
    low, high = (end(standing.places, key=lambda place: place.mean) for end in (min, max))
    if low.printed == high.printed:
        return f" is {units.value(low.mean)} under every loss"
    return f" lies between {units.value(low.mean)} ({title_of(low.loss)}) and {units.value(high.mean)} ({title_of(high.loss)})"


def named(losses: Sequence[str]) -> str:
    """A few losses by name, many by their number."""
    return listing([title_of(loss) for loss in losses]) if len(losses) <= FEW else f"{in_words(len(losses))} losses"


def with_values(values: Mapping[str, str]) -> list[str]:
    """`ArcFace 99 %`; where a name ends in a digit, all values are in brackets, so that no two numbers meet."""
    titles = {loss: title_of(loss) for loss in values}
    if any(title[-1:].isdigit() for title in titles.values()):
        return [f"{titles[loss]} ({value})" for loss, value in values.items()]
    return [f"{titles[loss]} {value}" for loss, value in values.items()]


def sharing(standing: Standing) -> str:
    """Who shares the first place: `A and B`, and among many `A, B, C and two others`."""
    names = [title_of(place.loss) for place in standing.best]
    if len(standing.places) <= FEW or len(names) <= NEXT + 1:
        return listing(names)
    return listing([*names[:NEXT], f"{in_words(len(names) - NEXT)} others"])


def behind(standing: Standing, rest: Sequence[Place]) -> tuple[str, int]:
    """Those who follow with their values, and how many are left out: none of a few; of many, all but the next and the baselines."""
    units = standing.units
    values = {place.loss: units.over_seeds(place.values) for place in rest}
    if len(standing.places) <= FEW or len(rest) <= NEXT:
        return listing(with_values(values)), 0
    following, later = rest[:NEXT], rest[NEXT:]
    baselines = [place for place in later if any(is_alone(place.loss, name) for name in BASELINES)]
    equal = [place for place in later if place.printed == following[-1].printed and place not in baselines]
    items = with_values({place.loss: values[place.loss] for place in following})
    if equal:
        items.append(f"{in_words(len(equal))} more with {units.value(equal[0].mean)}")
    words = listing(items)
    if baselines:
        who = f"baseline{'s' * (len(baselines) > 1)} {listing([title_of(place.loss) for place in baselines])}"
        have = "have" if len(baselines) > 1 else "has"
        words += f"; the {who} {have} {listing([values[place.loss] for place in baselines])}"
    return words, len(later) - len(baselines) - len(equal)


def extreme_word(standing: Standing) -> str:
    """The good end of a column as a word."""
    if standing.units.unit == "s":
        return "longest" if standing.column.better == "higher" else "shortest"
    return "highest" if standing.column.better == "higher" else "lowest"


def gap_sentence(standing: Standing) -> str:
    """How the gap between the first and the second compares with the spread between seeds; empty without a spread."""
    best, runner_up = standing.best, standing.runner_up
    if not best or runner_up is None:
        return ""
    ratio = gap_in_spreads(standing)
    spread = spread_between_seeds(best[0].values, runner_up.values)
    if spread is None:
        return ""
    if ratio is None:
        return " Every seed gave the same values, so the gap is not chance between seeds."
    shown = _spread_words(standing, spread)
    if ratio < 1:
        return f" That gap is smaller than the spread between seeds ({shown}), so these runs do not decide this column."
    times = f"{ratio:.1f} times" if ratio < 100 else "more than a hundred times"
    if ratio < CLEAR:
        return f" That gap is {times} the spread between seeds ({shown}): a hint, not a proof."
    return f" That gap is {times} the spread between seeds ({shown})."


def _spread_words(standing: Standing, spread: float) -> str:
    units = standing.units
    if float(units.bare(spread)) == 0:
        return f"below {units.difference(10.0**-units.digits / units.factor)}"
    return units.difference(spread)


def gap_in_spreads(standing: Standing) -> float | None:
    """The gap between the first and the second in pooled standard deviations; None with one seed or no spread at all."""
    best, runner_up = standing.best, standing.runner_up
    if not best or runner_up is None:
        return None
    spread = spread_between_seeds(best[0].values, runner_up.values)
    return abs(best[0].mean - runner_up.mean) / spread if spread else None


def seeds_sentence(num_seeds: int, num_losses: int) -> str:
    """What the ± in the table means, or that there is none to judge by."""
    alone = " With a single loss there is nothing to hold its numbers against." if num_losses < 2 else ""
    if num_seeds < 2:
        if num_losses < 2:
            return (
                f"The run was made with a single seed, so nothing says how far another seed would land from it.{alone}"
            )
        return (
            "Every loss was trained with a single seed. There is therefore no spread between seeds to judge a difference by: "
            "a small gap below may be chance, and another seed may turn it round."
        )
    gaps = (
        " Where a gap is compared with “the spread between seeds”, the spread is the root mean square of the two standard "
        "deviations."
        if num_losses > 1
        else ""
    )
    return f"Numbers are the mean ± the sample standard deviation over {counted(num_seeds, 'seed')}.{gaps}{alone}"


def _article(title: str) -> str:
    return f"{'an' if title[:1].lower() in 'aeiou' else 'a'} {title}"

"""The summary and the conclusion of a report, decided by the measured numbers and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arcwise.loss_titles import base_of, is_alone, title_of
from arcwise.reporting.measured import Place, Standing, mean
from arcwise.reporting.sentences import (
    CLEAR,
    FEW,
    NEXT,
    behind,
    capitalised,
    counted,
    extreme_word,
    gap_in_spreads,
    in_words,
    listing,
    named,
    noun,
    sharing,
)


@dataclass(frozen=True)
class NoisePoint:
    """Accuracy under one kind of noise, by angle and by distance, as the mean over the seeds of one loss."""

    noise: str
    loss: str
    angle: float
    distance: float


def summary(
    *,
    data: str,
    num_classes: int | None,
    backbone: str,
    dim: int | None,
    epochs: int | None,
    num_seeds: int,
    standings: Sequence[Standing],
    losses: Sequence[str],
) -> str:
    """A few sentences at the head of the report: what was done and what came out."""
    classes = f" ({counted(num_classes, 'class', 'classes')})" if num_classes else ""
    width = f" and embeddings of {in_words(dim)} dimensions" if dim else ""
    time = f" for {counted(epochs, 'epoch')}" if epochs else ""
    seeds = f", with {counted(num_seeds, 'seed')}" + (" each" if len(losses) > 1 else "") if num_seeds else ""
    verb = "compares" if len(losses) > 1 else "describes"
    first = f"This report {verb} {named(losses)} on {data}{classes}, with the backbone {backbone}{width}, trained{time}{seeds}."
    by_key = {standing.column.key: standing for standing in standings}
    parts = [first]
    for key in ("accuracy", "own_angle", "eer"):
        if key in by_key and (words := _short(by_key[key])):
            parts.append(words)
    if len(losses) > FEW and len(parts) > 1:
        parts.append("The table of results has all values.")
    if len(losses) > 1:
        parts.append(tally(standings, losses))
    return " ".join(part for part in parts if part)


def _short(standing: Standing) -> str:
    """`The highest test accuracy is that of ArcFace (99.0 %), before softmax (98.8 %).`"""
    title, units, best = noun(standing.column), standing.units, standing.best
    if not best:
        return ""
    if len(standing.places) == 1:
        return f"The {title} of {title_of(best[0].loss)} is {units.over_seeds(best[0].values)}."
    if len(best) == len(standing.places):
        return f"The {title} is {units.value(best[0].mean)} under {'both' if len(best) == 2 else 'every loss'}."
    others, _ = behind(standing, standing.places[len(best) :])
    return (
        f"The {extreme_word(standing)} {title} is that of {sharing(standing)} ({units.over_seeds(best[0].values)}), "
        f"against {others}."
    )


def tally(standings: Sequence[Standing], losses: Sequence[str]) -> str:
    """Which loss is best in how many of the measured qualities, ties counted as shared."""
    qualities = [standing for standing in standings if _is_quality(standing) and len(standing.places) > 1]
    if not qualities:
        return ""
    alone: dict[str, list[str]] = {loss: [] for loss in losses}
    shared: list[str] = []
    for standing in qualities:
        if len(standing.best) == 1:
            alone[standing.best[0].loss].append(noun(standing.column))
        else:
            shared.append(noun(standing.column))
    winners = sorted((loss for loss in losses if alone[loss]), key=lambda loss: -len(alone[loss]))
    total = len(qualities)
    if not winners:
        what = "the only measured quality" if total == 1 else f"all {in_words(total)} measured qualities"
        return f"The best losses share the first place in {what}."
    if total == 1:
        return f"{capitalised(title_of(winners[0]))} is best in the only measured quality."
    if len(winners) == 1 and not shared:
        return f"{capitalised(title_of(winners[0]))} is best in all {in_words(total)} measured qualities."
    parts = [
        f"{title_of(loss)} is best in {in_words(len(alone[loss]))}"
        + (f" ({listing(alone[loss])})" if len(alone[loss]) < total / 2 else "")
        for loss in winners
    ]
    tied = (
        f"; {in_words(len(shared))} {'is a tie' if len(shared) == 1 else 'are ties'} ({listing(shared)})"
        if shared
        else ""
    )
    return f"Of the {in_words(total)} measured qualities, {listing(parts)}{tied}."


def conclusion(
    *,
    standings: Sequence[Standing],
    losses: Sequence[str],
    noise: Sequence[NoisePoint],
    data: str,
    dim: int | None,
    num_seeds: int,
    num_health_events: int,
    data_argument: str,
) -> tuple[str, ...]:
    """The paragraphs of the conclusion."""
    paragraphs = [_verdict(standings, losses, num_seeds)]
    if len(losses) > 1:
        paragraphs.append(_geometry_and_accuracy(standings, losses))
    paragraphs.append(noise_sentence(noise))
    if len(losses) > 1:
        paragraphs.append(_cost(standings))
    paragraphs.append(
        _limits(
            data=data, dim=dim, num_seeds=num_seeds, losses=losses, events=num_health_events, argument=data_argument
        )
    )
    return tuple(paragraph for paragraph in paragraphs if paragraph)


def _verdict(standings: Sequence[Standing], losses: Sequence[str], num_seeds: int) -> str:
    if len(losses) == 1:
        measured = [
            f"{noun(standing.column)} {standing.units.over_seeds(standing.places[0].values)}"
            for standing in standings
            if _is_quality(standing) and standing.places
        ]
        return (
            f"{capitalised(title_of(losses[0]))} was trained alone. It reaches: {listing(measured)}."
            if measured
            else ""
        )
    qualities = [standing for standing in standings if _is_quality(standing) and len(standing.places) > 1]
    words = tally(standings, losses)
    decided = [standing for standing in qualities if (gap_in_spreads(standing) or 0.0) >= CLEAR]
    if num_seeds < 2 or not any(standing.runner_up for standing in qualities):
        return words
    if not decided:
        return (
            f"{words} None of these leads is larger than twice the spread between seeds, so the ranking should be read as "
            "undecided."
        )
    others = [standing for standing in qualities if standing.runner_up and standing not in decided]
    if not others:
        what = "That lead is" if len(decided) == 1 else "All of these leads are"
        return f"{words} {what} larger than twice the spread between seeds."
    if len(others) < len(decided):
        return (
            f"{words} All of these leads are larger than twice the spread between seeds, except "
            f"{'that' if len(others) == 1 else 'those'} in {_titles(others)}."
        )
    which = "lead" if len(decided) == 1 else "leads"
    return (
        f"{words} Only the {which} in {_titles(decided)} {'is' if len(decided) == 1 else 'are'} larger than twice the spread "
        "between seeds; the rest could turn round with other seeds."
    )


def _titles(standings: Sequence[Standing]) -> str:
    return listing([noun(standing.column) for standing in standings])


def _geometry_and_accuracy(standings: Sequence[Standing], losses: Sequence[str]) -> str:
    """The claim under test: a margin on the angle pulls classes together, and that helps to tell them apart. Held or not?"""
    by_key = {standing.column.key: standing for standing in standings}
    angles, accuracy = by_key.get("own_angle"), by_key.get("accuracy")
    if angles is None:
        return ""
    measured = [loss for loss in losses if angles.place_of(loss)]
    baseline = next((loss for loss in measured if is_alone(loss, "softmax")), measured[0] if measured else "")
    base = angles.place_of(baseline)
    if base is None or base.mean <= 0:
        return ""
    said = []
    outcomes: dict[str, tuple[bool, float | None]] = {}
    for loss in losses:
        place = angles.place_of(loss)
        if place is None or loss == baseline:
            continue
        if place.printed == base.printed:
            said.append(f"under {title_of(loss)} they lie at the same angle")
        else:
            tighter = place.mean < base.mean
            share = 100 * abs(place.mean - base.mean) / base.mean
            by = f"{share:.0f} %" if share >= 1 else "less than 1 %"
            said.append(
                f"under {title_of(loss)} the angle is {angles.units.value(place.mean)}, {by} {'smaller' if tighter else 'larger'}"
            )
        tighter = place.mean < base.mean and place.printed != base.printed
        outcomes[loss] = (tighter, _accuracy_gain(accuracy, loss, baseline))
    if not said:
        return ""
    if len(losses) > FEW:
        said = _among_many(angles, base, list(outcomes))
    first = (
        f"Under {title_of(baseline)}, a test embedding lies on average {angles.units.value(base.mean)} from the mean direction "
        f"of its class; {listing(said)}."
    )
    return " ".join(part for part in (first, _what_it_bought(outcomes, accuracy, baseline)) if part)


def _among_many(angles: Standing, base: Place, losses: Sequence[str]) -> list[str]:
    """The smallest angle by name, and under how many losses it is smaller, the same or larger than under the baseline."""
    places = [place for place in angles.places if place.loss in losses]
    smaller = [place for place in places if place.mean < base.mean and place.printed != base.printed]
    same = [place for place in places if place.printed == base.printed]
    larger = len(places) - len(smaller) - len(same)
    counts = [
        f"{how} under {in_words(count)}"
        for how, count in (("smaller", len(smaller)), ("the same", len(same)), ("larger", larger))
        if count
    ]
    said = []
    if smaller:
        tightest = min(smaller, key=lambda place: place.mean)
        share = 100 * (base.mean - tightest.mean) / base.mean
        by = f"{share:.0f} %" if share >= 1 else "less than 1 %"
        others = sum(place.printed == tightest.printed for place in smaller) - 1
        also = f" and {counted(others, 'other loss', 'other losses')}" if others else ""
        said.append(
            f"the angle is smallest under {title_of(tightest.loss)}{also} ({angles.units.value(tightest.mean)}, {by} less)"
        )
    said.append(f"of the {in_words(len(places))} other losses, it is {listing(counts)}")
    return ["; ".join(said)]


def _accuracy_gain(accuracy: Standing | None, loss: str, baseline: str) -> float | None:
    if accuracy is None:
        return None
    own, base = accuracy.place_of(loss), accuracy.place_of(baseline)
    if own is None or base is None:
        return None
    return 0.0 if own.printed == base.printed else own.mean - base.mean


def _what_it_bought(outcomes: Mapping[str, tuple[bool, float | None]], accuracy: Standing | None, baseline: str) -> str:
    """For the losses that tightened the classes: did accuracy follow?"""
    if accuracy is None:
        return ""
    tightened = [loss for loss, (tighter, _) in outcomes.items() if tighter]
    if not tightened:
        return (
            f"No loss drew the classes together more than {title_of(baseline)} did, so the expected effect of a margin "
            "does not show here."
        )

    def too_many(wanted: Sequence[str]) -> bool:
        return len(outcomes) >= FEW and len(wanted) > NEXT

    def those(wanted: Sequence[str]) -> str:
        return f"{in_words(len(wanted))} losses" if too_many(wanted) else listing([title_of(loss) for loss in wanted])

    gains = {loss: outcomes[loss][1] for loss in tightened}
    up = [loss for loss, gain in gains.items() if gain is not None and gain > 0]
    same = [loss for loss, gain in gains.items() if gain is not None and gain == 0]
    down = [loss for loss, gain in gains.items() if gain is not None and gain < 0]

    def amount(group: Sequence[str]) -> str:
        if too_many(group):
            ends = [end(abs(gains[loss] or 0.0) for loss in group) for end in (min, max)]
            low, high = accuracy.units.bare(ends[0]), accuracy.units.difference(ends[1])
            return high if accuracy.units.bare(ends[1]) == low else f"{low} to {high}"
        bare = [accuracy.units.bare(abs(gains[loss] or 0.0)) for loss in group[:-1]]
        return listing([*bare, accuracy.units.difference(gains[group[-1]] or 0.0)])

    parts = []
    if up:
        parts.append(f"came with a higher {noun(accuracy.column)} for {those(up)} (by {amount(up)})")
    if same:
        parts.append(f"left the {noun(accuracy.column)} unchanged for {those(same)}")
    if down:
        parts.append(f"came with a lower {noun(accuracy.column)} for {those(down)} (by {amount(down)})")
    return f"The tighter classes {listing(parts)}." if parts else ""


def noise_sentence(points: Sequence[NoisePoint]) -> str:
    """Whether deciding by angle stood the noise better than deciding by distance, counted over all kinds and losses."""
    if not points:
        return ""
    # To a hundredth of a percentage point, as the table prints it.
    gaps = [round(100 * point.angle, 2) - round(100 * point.distance, 2) for point in points]
    better = sum(gap > 0 for gap in gaps)
    worse = sum(gap < 0 for gap in gaps)
    same = len(gaps) - better - worse
    average = mean(gaps)
    losses = len({point.loss for point in points})
    case = "combinations of noise and loss" if losses > 1 else "kinds of noise"
    if len(points) == 1:
        point = points[0]
        if same:
            return f"Under {point.noise}, the angle and the distance decide equally well."
        by = "angle" if better else "distance"
        return f"Under {point.noise}, deciding by {by} is {abs(average):.2f} percentage points more accurate."
    ties = f" and equal in {in_words(same)}" if same else ""
    counts = (
        f"Against noise, deciding by angle is more accurate than deciding by distance in {in_words(better)} of "
        f"{in_words(len(gaps))} {case}, less accurate in {in_words(worse)}{ties}"
    )
    if abs(average) < 0.005:
        return f"{counts}; on average there is no difference."
    word = "more" if average > 0 else "less"
    held = (
        "The claim that angles stand noise better than distances holds in these runs."
        if better and not worse
        else "The claim that angles stand noise better than distances does not hold in these runs."
        if not better
        else "The claim that angles stand noise better than distances holds only in part."
    )
    return f"{counts}; on average it is {abs(average):.2f} percentage points {word} accurate. {held}"


def _cost(standings: Sequence[Standing]) -> str:
    for standing in standings:
        if _is_cost(standing) and len(standing.places) > 1:
            fastest, slowest = standing.places[0], standing.places[-1]
            if fastest.printed == slowest.printed or not fastest.mean:
                return "Training took the same time under every loss."
            share = 100 * (slowest.mean - fastest.mean) / fastest.mean
            much = "less than 1 %" if share < 1 else f"{share:.0f} %"
            return (
                f"The slowest training, {title_of(slowest.loss)}, took {much} longer than the fastest, {title_of(fastest.loss)} "
                f"({standing.units.value(slowest.mean)} against {standing.units.value(fastest.mean)})."
            )
    return ""


def _limits(*, data: str, dim: int | None, num_seeds: int, losses: Sequence[str], events: int, argument: str) -> str:
    width = f", one width ({dim} dimensions)" if dim else ""
    parts = [f"How far this reaches: one data set ({data}), one network{width} and {counted(num_seeds, 'seed')}."]
    if num_seeds < 2 and len(losses) > 1:
        parts.append(
            "With one seed the order of close losses is not established; a repetition with --seeds 3 would show it."
        )
    if len(losses) == 1:
        own = base_of(losses[0])
        pair = "softmax,arcface" if own == "softmax" else f"softmax,{own}"
        parts.append(f"What the loss adds can only be seen beside another: arcwise compare {argument} --losses {pair}.")
    if events:
        verb = "was" if events == 1 else "were"
        parts.append(
            f"{capitalised(counted(events, 'health event'))} {verb} reported during training and should be kept in mind."
        )
    return " ".join(parts)


def _is_quality(standing: Standing) -> bool:
    return standing.has_direction and not _is_cost(standing)


def _is_cost(standing: Standing) -> bool:
    """Time is what a loss costs, not how good it is."""
    return standing.units.unit == "s"

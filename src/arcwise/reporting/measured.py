"""Numbers over seeds: mean, standard deviation, how they are printed, and who stands where in a column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arcwise.reporting.reading import Column

_PERCENT = {"%", "percent"}
_DEGREES = {"°", "deg", "degree", "degrees"}
_SECONDS = {"s", "sec", "second", "seconds"}


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n − 1 below the line); None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True)
class Units:
    """How the numbers of a column are printed: raw values times `factor`, `digits` decimals, then the unit."""

    factor: float
    digits: int
    unit: str
    difference_unit: str

    def bare(self, value: float) -> str:
        text = f"{value * self.factor:.{self.digits}f}"
        text = text.removeprefix("-") if float(text) == 0 else text
        return text.replace("-", "−")

    def _with(self, text: str, unit: str) -> str:
        return text + (unit if unit == "°" else f" {unit}" if unit else "")

    def value(self, value: float) -> str:
        return self._with(self.bare(value), self.unit)

    def difference(self, value: float) -> str:
        return self._with(self.bare(abs(value)), self.difference_unit)

    def over_seeds(self, values: Sequence[float]) -> str:
        """`99.05 ± 0.08 %`, or without the ± for a single seed."""
        spread = deviation(values)
        text = self.bare(mean(values)) + (f" ± {self.bare(spread)}" if spread is not None else "")
        return self._with(text, self.unit)

    def in_table(self, values: Sequence[float]) -> str:
        """The same without the unit, which a table says once in its head."""
        spread = deviation(values)
        return self.bare(mean(values)) + (f" ± {self.bare(spread)}" if spread is not None else "")


def units_of(column: Column) -> Units:
    """How a column is printed; fractions become percentages here and nowhere else."""
    unit = column.unit.strip()
    if unit in _PERCENT:
        return Units(100.0, 2, "%", "percentage points")
    if unit in _DEGREES:
        return Units(1.0, 1, "°", "°")
    if unit in _SECONDS:
        return Units(1.0, 1, "s", "s")
    return Units(1.0, 2, unit, unit)


@dataclass(frozen=True)
class Place:
    """One loss in a column: its values, one a seed, and its mean as it is printed."""

    loss: str
    values: tuple[float, ...]
    printed: str

    @property
    def mean(self) -> float:
        return mean(self.values)


@dataclass(frozen=True)
class Standing:
    """A column in order, best first. Losses whose printed means are the same share a place: nobody wins by an invisible digit."""

    column: Column
    units: Units
    places: tuple[Place, ...]
    unmeasured: tuple[str, ...]

    @property
    def has_direction(self) -> bool:
        return self.column.better in {"higher", "lower"}

    @property
    def best(self) -> tuple[Place, ...]:
        """Everyone who shares the first place; empty where the column has no good end or nothing was measured."""
        if not self.places or not self.has_direction:
            return ()
        return tuple(place for place in self.places if place.printed == self.places[0].printed)

    @property
    def runner_up(self) -> Place | None:
        rest = self.places[len(self.best) :]
        return rest[0] if rest and self.best else None

    def place_of(self, loss: str) -> Place | None:
        return next((place for place in self.places if place.loss == loss), None)


def standing(column: Column, values: Mapping[str, Mapping[str, Sequence[float]]]) -> Standing:
    """Order the losses of `values` (loss → column key → one value a seed) by the mean of this column."""
    units = units_of(column)
    measured = {loss: tuple(row.get(column.key, ())) for loss, row in values.items()}
    places = [Place(loss, listed, units.bare(mean(listed))) for loss, listed in measured.items() if listed]
    if column.better in {"higher", "lower"}:
        places.sort(key=lambda place: place.mean, reverse=column.better == "higher")
    return Standing(column, units, tuple(places), tuple(loss for loss, listed in measured.items() if not listed))


def spread_between_seeds(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The pooled standard deviation of two losses: root of the mean of their variances. None where either has one seed."""
    first, second = deviation(one), deviation(other)
    if first is None or second is None:
        return None
    return math.sqrt((first**2 + second**2) / 2)

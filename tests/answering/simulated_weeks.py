"""Weeks of a release as it would be published, invented: seasons, feasts, overdispersed chance, and noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.period_sums import TOTAL, AxisSums, PeriodSums
from dphist_pipeline.answering.sudden_changes import LAST, AxisChanges, Season, sudden_changes
from dphist_pipeline.estimates import noise_law

Reals = NDArray[np.float64]
WEEKS, VALUES, AXES, BEFORE = 52, 100, 4, 60  # 60 weeks lie before the year that is judged
CELLS, CELLS_OF_VALUE = 600, 24  # that are summed: of a cube of 4 axes of 25 values would be more noise still
FEASTS = ((50, 0.3), (51, 0.3), (14, 0.15))  # a week of each year, and what part of the records it takes


class Year:
    """112 weeks of a release with 100 values along four axes; the last 52 are a year with one before it.

    Args:
        generator: of all chance.
        dispersion: variance over mean of a count given its rate.
        of_itself: relative deviation of a value's rate from week to week; the total's has 3 % more.
        scale: of the noise in a cell.
        rows: a week.
    """

    def __init__(
        self,
        generator: np.random.Generator,
        dispersion: float = 3.0,
        of_itself: float = 0.15,
        scale: int = 4,
        rows: int = 13_000,
    ) -> None:
        self.scale, draw = Fraction(scale), generator
        weeks, each = BEFORE + WEEKS, VALUES // AXES
        # Of each axis some values are never there, and the largest are hundreds of times the smallest.
        sizes = np.where(np.arange(VALUES) % 10 == 0, 0.0, np.exp(draw.normal(2.5, 1.5, VALUES))).reshape(AXES, each)
        means = (rows * sizes / sizes.sum(axis=1, keepdims=True)).ravel()
        time = np.arange(weeks)[:, None]
        season = 1 + 0.3 * np.sin(2 * np.pi * time / WEEKS + draw.normal(0, 0.6, VALUES))
        feasts = np.ones(weeks)
        for year in range(3):
            for week, part in FEASTS:
                moved = week + int(draw.integers(-2, 3)) if week == 14 else week  # Easter moves
                if WEEKS * year + moved < weeks:
                    feasts[WEEKS * year + moved] = 1 - part
        feast = 1 - (1 - feasts[:, None]) * draw.uniform(0.5, 1.5, VALUES)  # some values feel it more
        rate = means * season * feast * draw.gamma(1 / 0.03**2, 0.03**2, (weeks, 1))
        rate = rate * draw.gamma(1 / of_itself**2, of_itself**2, rate.shape)
        whole = draw.negative_binomial(np.maximum(rate, 1e-9) / (dispersion - 1), 1 / dispersion)
        self.counts = np.where(rate > 0, whole, 0).astype(np.float64)
        self.noise = self._noise(draw, CELLS_OF_VALUE, (weeks, VALUES))
        self.noise_of_total = self._noise(draw, CELLS, (weeks,))

    def _noise(self, draw: np.random.Generator, cells: int, shape: tuple[int, ...]) -> Reals:
        """Sums of two-sided geometric draws."""
        p = 1 - float(np.exp(-1 / float(self.scale)))
        return (draw.negative_binomial(cells, p, shape) - draw.negative_binomial(cells, p, shape)).astype(np.float64)

    def sums(self, week: int, counts: Reals | None = None) -> PeriodSums:
        """What is published of a week; other counts may be planted in it."""
        counts, each = self.counts[week] if counts is None else counts, VALUES // AXES
        variance = noise_law.variance(self.scale)
        values, total = counts + self.noise[week], counts[:each].sum() + self.noise_of_total[week]
        found = {TOTAL: AxisSums(TOTAL, ("",), np.array([total]), np.array([CELLS * variance]), self.scale)}
        for number in range(AXES):
            labels = (*(f"v{place}" for place in range(each - 1)), "other")
            noise, name = np.full(each, CELLS_OF_VALUE * variance), f"axis_{number}"
            found[name] = AxisSums(name, labels, values[each * number : each * (number + 1)], noise, self.scale)
        return found

    def rings(self, week: int, counts: Reals | None = None, seasons: bool = True, last: int = LAST) -> int:
        """How many sums of a week ring."""
        now, before = self.sums(week, counts), [self.sums(week - back) for back in range(1, last + 1)]
        rang = _number(sudden_changes(now, before, [], WEEKS))
        if not (rang and seasons):
            return rang
        there = [week - WEEKS + moved for moved in range(-2, 3) if week - WEEKS + moved >= LAST]
        past = [Season(self.sums(one), [self.sums(one - back) for back in range(1, LAST + 1)]) for one in there]
        return _number(sudden_changes(now, before, past, WEEKS))

    def false_alarms(self) -> tuple[int, int]:
        """In how many weeks of the year something rings: without a year before it, and with."""
        weeks = range(BEFORE, BEFORE + WEEKS)
        rang = [week for week in weeks if self.rings(week, seasons=False)]
        return len(rang), sum(self.rings(week) > 0 for week in rang)


def _number(found: Sequence[AxisChanges]) -> int:
    return sum(int(axis.rings.sum()) for axis in found)


def generator(number: int) -> np.random.Generator:
    """The chance of one simulated year."""
    return np.random.default_rng([37, number])

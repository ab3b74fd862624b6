"""What changes suddenly rings, and chance, noise, feasts and seasons do not: by published sums alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist_pipeline.answering._period_sums import TOTAL, AxisSums, PeriodSums
from dphist_pipeline.answering._sudden_changes import (
    LAST,
    AxisChanges,
    Season,
    changes_in_words,
    level_for,
    ringing,
    sudden_changes,
)
from dphist_pipeline.estimates.laws import noise_law
from examples import SOAKING

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
        # Some values of each axis are never there, and the largest are hundreds of times the smallest.
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
        variance = noise_law(self.scale).variance
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


EACH = VALUES // 4


def week(total: float | None = None, variance: float = 40.0, **axes: dict[str, float]) -> PeriodSums:
    """Sums of a week by axis and value; the total is that of the first axis."""
    scale = Fraction(4)
    found = {
        TOTAL: AxisSums(
            TOTAL, ("",), np.array([total or sum(next(iter(axes.values())).values())]), np.array([100.0]), scale
        )
    }
    for axis, values in axes.items():
        sums = np.array(list(values.values()), dtype=np.float64)
        found[axis] = AxisSums(axis, tuple(values), sums, np.full(sums.size, variance), scale, named=axis != "age")
    return found


WARDS = {"surgery": 2_149.0, "medicine": 5_210.0, "other": -18.0}
NOW = {"surgery": 16.0, "medicine": 5_190.0, "other": 2_247.0}


def said(now: PeriodSums, *last: PeriodSums, seasons: Any = ()) -> str:
    return changes_in_words(sudden_changes(now, last, seasons, 52))


def test_a_renamed_code_is_told_in_one_sentence_from_the_second_week_on() -> None:
    sentence = "surgery fell from about 2,150 to about 16 while other rose by as much: was a code renamed?"
    assert said(week(ward=NOW), week(ward=WARDS)) == sentence
    assert said(week(ward=NOW), *[week(ward=WARDS)] * 5) == sentence


def test_a_renamed_code_rings_for_three_periods_and_is_then_the_past() -> None:
    old, new = week(ward=WARDS), week(ward=NOW)
    rings = [bool(said(new, *[new] * weeks, *[old] * (5 - weeks))) for weeks in range(5)]
    assert rings == [True, True, True, False, False]
    assert said(new, *[new] * 2, *[old] * 3, *[new] * 4), "the last five periods alone count"


def test_the_past_of_a_value_is_the_median_of_the_last_periods() -> None:
    for counts, median in (((900.0, 2_000.0, 2_100.0), 2_000.0), ((900.0, 2_000.0, 2_100.0, 3_000.0), 2_050.0)):
        last = [week(9_000, ward={**WARDS, "surgery": count}) for count in counts]
        assert [one["before"] for one in ringing(sudden_changes(week(9_000, ward=NOW), last, [], 52))][1] == median


def test_a_value_that_appears_and_the_values_that_rang_are_listed() -> None:
    found = sudden_changes(week(ward=NOW), [week(ward=WARDS)], [], 52)
    assert [(one["axis"], one["value"], one["now"]) for one in ringing(found)] == [
        ("ward", "other", 2_247.0),
        ("ward", "surgery", 16.0),
    ]
    new = {**WARDS, "medicine": 600.0}
    assert said(week(9_000, ward={**new, "cardiology": 900.0}), week(9_000, ward={**new, "cardiology": 3.0})) == (
        "cardiology rose from about 3 to about 900: is there a new code, or a wrong one?"
    )


def test_half_and_doubled_and_empty_periods_ring_by_their_total() -> None:
    for part, words in (
        (0.5, "are all records there?"),
        (2.0, "was anything delivered twice?"),
        (0.0, "records there?"),
    ):
        then = week(ward={name: part * count for name, count in WARDS.items()})
        for last in ([week(ward=WARDS)], [week(ward=WARDS)] * 5):
            told = said(then, *last)
            assert told.startswith("the total ") and told.endswith(words)


def test_a_code_whose_rows_are_dropped_is_named_with_the_total() -> None:
    kept = {"surgery": 4_000.0, "medicine": 5_000.0}
    assert said(week(ward={**kept, "surgery": 3.0}), week(ward=kept)) == (
        "surgery fell from about 4,000 to about 3, and the total by as much: was a code renamed?"
    )


def test_a_value_that_fell_alone_is_told_without_a_guess_where_its_rows_went() -> None:
    kept = {"surgery": 1_000.0, "medicine": 5_000.0}
    fewer = said(week(ward={**kept, "surgery": 3.0}), week(ward=kept))
    assert fewer == "surgery fell from about 1,000 to about 3, and the total by as much: was a code renamed?"
    alone = said(week(6_010, ward={"surgery": 3.0, "medicine": 5_400.0}), week(6_000, ward=kept))
    assert alone == "surgery fell from about 1,000 to about 3: was a code renamed?"


def test_bins_are_named_with_their_axis_and_other_axes_that_rang_too() -> None:
    ages, now = {"0 to under 50": 4_000.0, "other": 0.0}, {"0 to under 50": 9.0, "other": 4_001.0}
    assert said(week(age=now), week(age=ages)) == (
        "age 0 to under 50 fell from about 4,000 to about 9 while other rose by as much: was a code renamed?"
    )
    told = said(week(9_000, age=now, ward=NOW), week(9_000, age=ages, ward=WARDS))
    assert told.startswith("age 0 to") and told.endswith("renamed?; values of ward changed, too")


def test_what_happened_at_this_time_of_last_year_too_does_not_ring() -> None:
    usual, feast = week(ward={**WARDS, "surgery": 1_500.0}), week(5_400, ward={**WARDS, "surgery": 120.0})
    season = [Season(feast, [usual] * 5)]
    assert said(feast, *[usual] * 5)
    assert not said(feast, *[usual] * 5, seasons=season)
    # A season without such a fall explains nothing, nor one that began as low.
    assert said(feast, *[usual] * 5, seasons=[Season(usual, [usual] * 5)])
    assert said(feast, *[usual] * 5, seasons=[Season(feast, [feast] * 5)])


def test_a_value_is_compared_by_its_name_wherever_it_stands() -> None:
    turned = week(ward={name: WARDS[name] for name in reversed(WARDS)})
    assert not said(week(ward=WARDS), *[turned] * 3)
    assert not said(week(ward=WARDS), week(ward={"medicine": 5_200.0}, total=7_300))


def test_noise_alone_does_not_ring_however_small_the_counts() -> None:
    assert not said(
        week(9_000, variance=1e4, ward={"surgery": 250.0}), *[week(9_000, variance=1e4, ward={"surgery": -30.0})] * 5
    )
    assert said(
        week(9_000, variance=1e2, ward={"surgery": 250.0}), *[week(9_000, variance=1e2, ward={"surgery": -30.0})] * 5
    )


def test_a_few_people_less_or_none_at_all_are_chance() -> None:
    """Without noise to speak of: 12 a week on average are 0 in some weeks, where people come in groups."""
    for count, rings in ((2.0, False), (12.0, False), (60.0, True)):
        last = [week(9_000, variance=1e-4, ward={"surgery": count})] * 5
        assert bool(said(week(9_000, variance=1e-4, ward={"surgery": 0.0}), *last)) is rings


def test_each_comparison_is_made_at_999_per_mille_or_more_where_there_are_many() -> None:
    assert level_for(1, 12) == Fraction(999, 1000)
    assert level_for(100, 52) > Fraction(9_999, 10_000)
    assert level_for(10**7, 52) == Fraction(999_999, 1_000_000)


@pytest.mark.slow
def test_three_years_of_weeks_ring_at_most_once_a_year() -> None:
    """Seasons, feasts, overdispersed chance and noise; `make test-all` does 20 years, `make soak` 200."""
    assert sum(Year(generator(number)).false_alarms()[0] for number in range(3)) <= 3


@pytest.mark.slow
@pytest.mark.many_examples
def test_many_years_of_weeks_ring_at_most_once_a_year_in_the_mean() -> None:
    years = 200 if SOAKING else 10
    without, with_one = np.array([Year(generator(number)).false_alarms() for number in range(years)]).T
    print(f"false alarms a year: {without.mean():.3f} (most {without.max()}), {with_one.mean():.3f} with a year before")
    assert with_one.mean() <= without.mean() <= 1
    assert without.mean() > 0.01  # else the rule would be too dull to find anything


@pytest.mark.slow
@pytest.mark.many_examples
@pytest.mark.parametrize("last", [1, 5], ids=["after one week", "after five weeks"])
def test_planted_faults_are_found(last: int) -> None:
    found: dict[str, list[bool]] = {"half": [], "doubled": [], "empty": [], "renamed": [], "swapped": []}
    for number in range(100 if SOAKING else 20):
        year = Year(generator(1_000 + number))
        at = BEFORE + 7 + number % (WEEKS - 14)
        counts = year.counts[at]
        large = np.flatnonzero(counts[: EACH - 1] > 400)
        if not large.size:
            continue
        renamed, swapped = counts.copy(), counts.copy()
        code = large[number % large.size]
        renamed[[code, EACH - 1]] = 0, counts[code] + counts[EACH - 1]
        swapped[[code, 0]] = counts[[0, code]]  # value 0 of each axis is never there
        for name, planted in {
            **{"half": counts / 2, "doubled": 2 * counts, "empty": 0 * counts},
            **{"renamed": renamed, "swapped": swapped},
        }.items():
            found[name].append(year.rings(at, planted, last=last) > 0)
    shares = {name: np.mean(rang) for name, rang in found.items()}
    print({name: f"{share:.2f} of {len(found[name])}" for name, share in shares.items()})
    assert shares["empty"] == 1
    assert min(shares.values()) >= 0.95, shares


def test_a_period_that_is_not_published_is_told_without_numbers() -> None:
    found = sudden_changes(week(ward=NOW), [week(ward=WARDS)], [], 52)
    assert changes_in_words(found, numbers=False) == "surgery fell while other rose by as much: was a code renamed?"
    for part in (0.0, 0.5, 2.0):
        then = week(ward={name: part * count for name, count in WARDS.items()})
        quiet = changes_in_words(sudden_changes(then, [week(ward=WARDS)], [], 52), numbers=False)
        assert quiet in ("the total fell: are all records there?", "the total rose: was anything delivered twice?")
    hostile = week(9_000, ward={"fell from about 7 to about 9": 4_000.0, "other": 0.0})
    gone = week(9_000, ward={"fell from about 7 to about 9": 0.0, "other": 4_000.0})
    assert "4,000" not in changes_in_words(sudden_changes(gone, [hostile], [], 52), numbers=False)

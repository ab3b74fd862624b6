"""What changes suddenly rings, and chance, noise, feasts and seasons do not: by published sums alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from answering.simulated_weeks import BEFORE, VALUES, WEEKS, Year, generator

from dphist_pipeline.answering.changes_in_words import changes_in_words, ringing
from dphist_pipeline.answering.period_sums import TOTAL, AxisSums, PeriodSums
from dphist_pipeline.answering.sudden_changes import Season, level_for, sudden_changes
from examples import SOAKING

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


def test_three_years_of_weeks_ring_at_most_once_a_year() -> None:
    """Seasons, feasts, overdispersed chance and noise; `make test-all` does 20 years, `make soak` 200."""
    assert sum(Year(generator(number)).false_alarms()[0] for number in range(3)) <= 3


@pytest.mark.many_examples
def test_many_years_of_weeks_ring_at_most_once_a_year_in_the_mean() -> None:
    years = 200 if SOAKING else 20
    without, with_one = np.array([Year(generator(number)).false_alarms() for number in range(years)]).T
    print(f"false alarms a year: {without.mean():.3f} (most {without.max()}), {with_one.mean():.3f} with a year before")
    assert with_one.mean() <= without.mean() <= 1
    assert without.mean() > 0.01  # else the rule would be too dull to find anything


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

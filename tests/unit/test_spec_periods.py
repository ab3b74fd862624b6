"""Periods: their names, their ends at local midnight, and which of them are over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from spec_scenario import spec

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.periods import Length, PeriodRule


def rule(length: str = "week", starts: str = "monday", zone: str = "UTC", delay: int = 0) -> PeriodRule:
    return PeriodRule(length, starts, zone, delay)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "key", "end"),
    [
        ("week", "2026-03-02", date(2026, 3, 9)),
        ("week", "2025-12-29", date(2026, 1, 5)),
        ("month", "2024-02-01", date(2024, 3, 1)),
        ("month", "2025-12-01", date(2026, 1, 1)),
        ("quarter", "2025-10-01", date(2026, 1, 1)),
        ("quarter", "2026-04-01", date(2026, 7, 1)),
        ("year", "2024-01-01", date(2025, 1, 1)),
    ],
)
def test_a_period_starts_on_its_key_and_ends_before_the_next(length: str, key: str, end: date) -> None:
    period = rule(length).period_of(key)
    assert period.key == key and period.start is not None and period.end is not None
    assert period.start.date().isoformat() == key and period.end.date() == end
    assert rule(length).period_of(end.isoformat()).start == period.end


@pytest.mark.parametrize("day", ["2026-02-23", "2026-03-01"])
@pytest.mark.parametrize("delay", [0, 7])
def test_a_release_that_ends_has_no_later_period(day: str, delay: int) -> None:
    ending, going_on = replace(rule(delay=delay), last_day=day), rule(delay=delay)
    assert ending.end == datetime(2026, 3, 2, tzinfo=UTC) and going_on.end is None
    for now in (datetime(2026, 2, 1, tzinfo=UTC) + timedelta(days=passed) for passed in range(90)):
        assert ending.latest(now) == min(going_on.latest(now), ending.period_of("2026-02-23"), key=lambda one: one.key)


def test_weeks_may_start_on_sunday_and_iso_weeks_name_monday_ones() -> None:
    assert rule(starts="sunday").period_of("2026-03-01").end == datetime(2026, 3, 8, tzinfo=UTC)
    assert rule().period_of("2026-W10").key == "2026-03-02"
    assert rule().period_of("2020-W53").key == "2020-12-28"
    for refused in (rule(starts="sunday"), rule("month")):
        with pytest.raises(PeriodError, match="ISO numbers"):
            refused.period_of("2026-W10")
    for missing in ("2025-W53", "2026-W00", "2026-W54", "9001-W01"):
        with pytest.raises(PeriodError, match="not a week"):
            rule().period_of(missing)


@pytest.mark.parametrize(
    ("key", "first"),
    # As the CDC publishes them: 2020 and 2025 have 53 weeks, and week 1 may begin in December.
    [
        ("2020-EW53", "2020-12-27"),
        ("2021-EW01", "2021-01-03"),
        ("2024-EW01", "2023-12-31"),
        ("2025-EW01", "2024-12-29"),
        ("2025-EW53", "2025-12-28"),
        ("2026-EW01", "2026-01-04"),
    ],
)
def test_epidemiological_weeks_name_sunday_ones(key: str, first: str) -> None:
    assert rule(starts="sunday").period_of(key).key == first


def test_a_week_that_a_year_lacks_is_refused() -> None:
    with pytest.raises(PeriodError, match="2026 has no week 53"):
        rule(starts="sunday").period_of("2026-EW53")
    with pytest.raises(PeriodError, match="ISO numbers"):
        rule().period_of("2026-EW10")


def test_every_iso_week_has_the_name_that_python_gives_it() -> None:
    for day in (date(2000, 1, 3) + timedelta(weeks=number) for number in range(1500)):
        year, week, _ = day.isocalendar()
        assert rule().period_of(f"{year}-W{week:02d}").key == day.isoformat()


@pytest.mark.parametrize(
    ("length", "starts", "key", "end"),
    [
        ("quarter", 4, "2026-04-01", date(2026, 7, 1)),
        ("quarter", 2, "2025-11-01", date(2026, 2, 1)),
        ("quarter", 12, "2025-12-01", date(2026, 3, 1)),
        ("year", 4, "2026-04-01", date(2027, 4, 1)),
        ("year", 10, "2025-10-01", date(2026, 10, 1)),
    ],
)
def test_fiscal_quarters_and_years_start_in_their_month(length: str, starts: int, key: str, end: date) -> None:
    fiscal = PeriodRule(length, "monday", "UTC", 0, starts)  # type: ignore[arg-type]
    period = fiscal.period_of(key)
    assert period.end is not None and period.end.date() == end
    with pytest.raises(PeriodError, match=f"named {key}"):
        fiscal.period_of((end - timedelta(days=1)).isoformat())


@pytest.mark.parametrize(
    ("length", "day", "key"),
    [
        ("week", "2026-03-05", "2026-03-02"),
        ("month", "2026-03-05", "2026-03-01"),
        ("quarter", "2026-02-01", "2026-01-01"),
    ],
)
def test_a_day_inside_a_period_is_refused_naming_that_period(length: str, day: str, key: str) -> None:
    with pytest.raises(PeriodError, match=f"named {key}"):
        rule(length).period_of(day)


@pytest.mark.parametrize(
    "key",
    [
        "../x",
        "/etc/passwd",
        "",
        "all",
        "2026",
        "2026-3-2",
        "20260302",
        "2026-02-30",
        "2026-03-02T00:00",
        " 2026-03-02",
        "2026-03-02\n",
        "0001-01-01",
        "9999-12-27",
        "0000-00-00",
        "２０２６-03-02",
        "2026-W00",
        "9999-W52",
        pytest.param("x" * 10**6, id="long"),
        None,
        5,
    ],
)
def test_anything_but_a_first_day_is_refused(key: str) -> None:
    with pytest.raises(PeriodError) as caught:
        spec().period_named(key)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("length", ["week", "month", "quarter", "year"])
def test_every_hostile_year_gives_a_period_or_a_refusal(length: str) -> None:
    for year in (1, 2, 999, 1000, 1001, 8999, 9000, 9001, 9998, 9999):
        for day in range(1, 8):
            for zone in ("Pacific/Kiritimati", "America/Los_Angeles", "UTC"):
                try:
                    period = rule(length, zone=zone, delay=36_500).period_of(f"{year:04}-01-{day:02}")
                except PeriodError:
                    continue
                rule(length, zone=zone).refuse_unfinished(period, datetime(9999, 12, 31, tzinfo=UTC))


def test_without_periods_there_is_one_named_all_and_it_is_always_over() -> None:
    whole = spec(period="none", period_column=...)
    everything = whole.period_named("all")
    assert (everything.key, everything.start, everything.end) == ("all", None, None)
    assert whole.latest_period(datetime.now(UTC)) == everything
    whole.refuse_unfinished(everything, datetime.now(UTC))
    with pytest.raises(PeriodError, match="only period is 'all'"):
        whole.period_named("2026-03-02")


def test_a_week_with_a_change_of_clocks_is_an_hour_shorter() -> None:
    week = rule(zone="Europe/Brussels").period_of("2026-03-23")
    assert week.start is not None and week.end is not None
    assert week.end.astimezone(UTC) - week.start.astimezone(UTC) == timedelta(days=7, hours=-1)
    assert week.start.tzinfo == ZoneInfo("Europe/Brussels") and week.start.hour == week.end.hour == 0


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Brussels", "America/Los_Angeles", "Pacific/Kiritimati", "Africa/Cairo"]
)
@pytest.mark.parametrize("delay", [0, 7])
def test_the_latest_period_turns_exactly_at_local_midnight(zone: str, delay: int) -> None:
    turn = datetime(2026, 3, 30, tzinfo=ZoneInfo(zone)) + timedelta(days=delay)
    weeks = rule(zone=zone, delay=delay)
    assert weeks.latest(turn.astimezone(UTC)).key == "2026-03-23"
    assert weeks.latest(turn.astimezone(UTC) - timedelta(microseconds=1)).key == "2026-03-16"


@pytest.mark.parametrize("length", ["week", "month", "quarter", "year"])
@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "Asia/Beirut"])
def test_the_latest_period_is_over_and_the_next_is_not(length: str, zone: str) -> None:
    periods = rule(length, zone=zone, delay=3)
    now = datetime(2009, 10, 1, tzinfo=UTC)
    while now < datetime(2012, 4, 1, tzinfo=UTC):
        latest = periods.latest(now)
        periods.refuse_unfinished(latest, now)
        assert latest.end is not None
        with pytest.raises(PeriodError, match="can be released from"):
            periods.refuse_unfinished(periods.period_of(latest.end.date().isoformat()), now)
        now += timedelta(days=5, hours=7, minutes=31)


def test_ends_are_compared_as_instants_where_the_clock_shows_an_hour_twice() -> None:
    zone = ZoneInfo("America/St_Johns")  # in 2010 the clock went from 00:01 on 7 November back to 23:01 on the 6th
    weeks = rule(starts="sunday", zone=zone.key)
    before, after = (datetime(2010, 11, 6, 23, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    assert weeks.latest(before).key == "2010-10-24" and weeks.latest(after).key == "2010-10-31"


def test_a_period_that_is_not_over_is_refused_until_its_delay_has_passed() -> None:
    delayed: ReleaseSpec = spec(release_delay_days=7)
    week = delayed.period_named("2026-03-02")
    with pytest.raises(PeriodError, match="from 2026-03-16 on"):
        delayed.refuse_unfinished(week, datetime(2026, 3, 15, 23, 59, tzinfo=UTC))
    delayed.refuse_unfinished(week, datetime(2026, 3, 16, tzinfo=UTC))


def test_the_next_release_is_told_until_the_last_one() -> None:
    weekly = rule(delay=3)
    assert weekly.next_release(weekly.period_of("2026-03-02")) == date(2026, 3, 19)
    ending = PeriodRule("month", "monday", "UTC", 0, last_day="2026-02-10")
    assert ending.next_release(ending.period_of("2026-01-01")) == date(2026, 3, 1)
    assert ending.next_release(ending.period_of("2026-02-01")) is None
    endless = PeriodRule("none", "monday", "UTC", 0)
    assert endless.next_release(endless.period_of("all")) is None


def test_a_clock_that_cannot_be_right_is_refused() -> None:
    for year in (1, 1100, 9999):
        with pytest.raises(PeriodError, match="clock"):
            rule(delay=36_500).latest(datetime(year, 1, 1, tzinfo=UTC))
    with pytest.raises(TypeError, match="time zone"):
        rule().latest(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("length", "key", "advice"),
    [
        ("month", "2026-2", "as 2026-03-01"),
        ("month", "2026-02", "as 2026-02-01"),
        ("quarter", "2026-02", "as 2026-01-01"),
        ("week", "march", "as 2026-03-02 or its week"),
    ],
)
def test_the_advised_period_is_one_of_the_release(length: Length, key: str, advice: str) -> None:
    with pytest.raises(PeriodError, match=advice):
        PeriodRule(length, "monday", "UTC", 0).period_of(key)

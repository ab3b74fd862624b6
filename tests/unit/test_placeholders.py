"""Placeholders of a source: which files a period needs, by the calendar alone."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from office import SPEC

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.periods import PeriodRule

BASE = Path("/office")


def spec(source: str, period: str = "week", **more: Any) -> ReleaseSpec:
    column = {} if period == "none" else {"period_column": "admitted_on"}
    return ReleaseSpec.from_attributes({**SPEC, "source": source, "period": period, **column, **more}, BASE)


def needed(source: str, key: str, period: str = "week", **more: Any) -> list[str]:
    made = spec(source, period, **more)
    return [called for called, _ in made.expected_files(made.period_named(key))]


@pytest.mark.parametrize(
    ("source", "period", "key", "files"),
    [
        ("{year}-{month}.csv", "week", "2026-03-30", ["2026-03.csv", "2026-04.csv"]),
        ("{year}-{month}.csv", "week", "2026-04-06", ["2026-04.csv"]),
        ("{year}-{month}.csv", "week", "2022-01-31", ["2022-01.csv", "2022-02.csv"]),
        ("{year}-{month}.csv", "quarter", "2026-10-01", ["2026-10.csv", "2026-11.csv", "2026-12.csv"]),
        ("{year}.csv", "week", "2025-12-29", ["2025.csv", "2026.csv"]),
        ("{year}/W{week}/*.csv", "week", "2025-12-29", ["2026/W01/*.csv"]),
        ("{year}-{week}.csv", "month", "2026-02-01", [f"2026-{week:02}.csv" for week in (5, 6, 7, 8, 9)]),
        ("{period}.csv", "month", "2026-02-01", ["2026-02-01.csv"]),
        ("{period}/*.csv", "quarter", "2026-01-01", ["2026-01-01/*.csv"]),
        ("all.csv", "month", "2026-02-01", []),
    ],
)
def test_a_period_needs_a_file_for_each_stretch_that_it_touches(
    source: str, period: str, key: str, files: list[str]
) -> None:
    assert needed(source, key, period) == files


@pytest.mark.parametrize(
    ("source", "period", "key", "around", "files"),
    [
        ("{year}-{month}.csv", "month", "2025-12-01", (0, 1), ["2025-12.csv", "2026-01.csv"]),
        ("{year}-{month}.csv", "month", "2026-01-01", (1, 0), ["2025-12.csv", "2026-01.csv"]),
        (
            "{year}-{month}.csv",
            "month",
            "2026-02-01",
            (13, 2),
            [f"{m // 12}-{m % 12 + 1:02}.csv" for m in range(24300, 24316)],
        ),
        (
            "{year}-{month}.csv",
            "week",
            "2026-03-30",
            (1, 1),
            ["2026-02.csv", "2026-03.csv", "2026-04.csv", "2026-05.csv"],
        ),
        ("{year}.csv", "week", "2025-12-29", (1, 1), ["2024.csv", "2025.csv", "2026.csv", "2027.csv"]),
        ("{year}-{week}.csv", "week", "2025-12-29", (1, 1), ["2025-52.csv", "2026-01.csv", "2026-02.csv"]),
        ("{period}.csv", "month", "2026-02-01", (1, 2), [f"2026-{m:02}-01.csv" for m in (1, 2, 3, 4)]),
        (
            "{period}/{year}-{month}.csv",
            "month",
            "2026-02-01",
            (1, 0),
            ["2026-01-01/2026-01.csv", "2026-02-01/2026-02.csv"],
        ),
        ("{year}-{month}-{day}.csv", "week", "2026-03-23", (2, 1), [f"2026-03-{day}.csv" for day in range(21, 31)]),
    ],
)
def test_files_before_and_after_are_those_of_the_finest_stretch(
    source: str, period: str, key: str, around: tuple[int, int], files: list[str]
) -> None:
    before, after = around
    assert needed(source, key, period, files_before=before, files_after=after) == files


def test_a_spec_without_files_around_keeps_its_digest_and_says_what_is_lost() -> None:
    plain = spec("{year}-{month}.csv", "month")
    assert spec("{year}-{month}.csv", "month", files_before=0, files_after=0).digest == plain.digest
    assert spec("{year}-{month}.csv", "month", files_after=1).digest != plain.digest
    (said,) = [remark for remark in plain.remarks if "is counted in no period" in remark]
    assert "`admitted_on`" in said and "`files_after: 1`" in said
    assert not any("is counted in no period" in remark for remark in spec("all.csv", "month").remarks)
    with pytest.raises(SpecError, match=r"files_after: has no use where `source` does not say"):
        spec("all.csv", "month", files_after=1)


def test_a_day_in_the_address_asks_for_every_day_also_when_clocks_change() -> None:
    for zone in ("UTC", "Europe/Paris", "America/Havana"):
        days = needed("{year}-{month}-{day}.csv", "2026-03-23", time_zone=zone)
        assert days == [f"{date(2026, 3, 23) + timedelta(days=passed)}.csv" for passed in range(7)]


def test_weeks_are_numbered_as_their_names_are() -> None:
    for starts in ("monday", "sunday"):
        rule = PeriodRule("week", starts, "UTC", 0)  # type: ignore[arg-type]
        first = rule.period_of("2020-W01" if starts == "monday" else "2020-EW01").start
        assert first is not None
        for passed in range(7 * 53 * 6):
            day = first.date() + timedelta(days=passed)
            year, number = rule.week_number(day)
            named = rule.period_of(f"{year}-{'W' if starts == 'monday' else 'EW'}{number:02}")
            assert named.start is not None and 0 <= (day - named.start.date()).days < 7
        assert starts == "sunday" or rule.week_number(date(2027, 1, 3)) == date(2027, 1, 3).isocalendar()[:2]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{mont}.csv", "Did you mean 'month'"),
        ("{}.csv", "none of {year}, {month}"),
        ("{month}.csv", "only together with {year}"),
        ("{year}-{day}.csv", "only together with {month}"),
        ("{day}.csv", "only together with {year} and {month}"),
        ("{year}-{week}-{day}.csv", "weeks cross the ends of months"),
    ],
)
def test_placeholders_that_name_no_stretch_of_time_are_refused(source: str, told: str) -> None:
    with pytest.raises(SpecError) as refused:
        spec(source)
    ((where, what),) = refused.value.problems
    assert where == "attributes.source" and told in what


def test_placeholders_need_periods_and_files_need_placeholders() -> None:
    for fields, where in (
        ({"source": "{year}.csv", "period": "none"}, "period"),
        ({"source": "a.csv", "require": "files"}, "require"),
        ({"source": "a.csv", "require": "partitions"}, "require"),
        ({"source": "a.csv", "deps": ["raw visits"]}, "deps[0]"),
        ({"source": "a.csv", "deps": ["raw", "raw"]}, "deps[1]"),
    ):
        with pytest.raises(SpecError) as refused:
            spec(**fields)  # type: ignore[arg-type]
        assert [at for at, _ in refused.value.problems] == [f"attributes.{where}"]


def test_what_is_required_follows_from_what_can_be_looked_at() -> None:
    both = {"source": "{year}.csv", "deps": ["raw/visits"]}
    assert spec("a.csv").requires == frozenset()
    assert spec("{year}.csv").requires == {"files"}
    assert spec("a.csv", deps=["raw/visits"]).requires == {"partitions"}
    assert spec(**both).requires == {"files", "partitions"}  # type: ignore[arg-type]
    assert spec(**both, require="none").requires == frozenset()  # type: ignore[arg-type]
    assert spec("a.csv").digest == spec("a.csv", deps=["raw/visits"], require="none").digest


def test_the_ledger_sees_the_address_as_written_and_the_folder_above_placeholders() -> None:
    reading = spec("in/{year}/w_{week}.csv").reading
    assert (reading.address, reading.folder, reading.name) == (
        "in/{year}/w_{week}.csv",
        "/office/in",
        "{year}/w_{week}.csv",
    )
    env = Reading("{{ env.X }}/in/{year}.csv", "/office/in", "csv")
    assert env.name == "{year}.csv"


def test_what_the_environment_gave_is_in_no_name_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from dphist_pipeline.releasing.release_spec import ReleaseSpec

    monkeypatch.setenv("RECORDS", "/secret/{year}")
    fields = {**SPEC, "source": "{{ env.RECORDS }}/{month}.csv", "period": "month", "period_column": "admitted_on"}
    made = ReleaseSpec.of_fields(fields, BASE)
    ((called, pattern),) = made.expected_files(made.period_named("2026-02-01"))
    assert (called, pattern) == ("{{ env.RECORDS }}/02.csv", "/secret/2026/02.csv")

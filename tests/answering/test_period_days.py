"""Every macro tells the days of its periods as dates: the first one, and the day after the last."""

from __future__ import annotations

import datetime
from pathlib import Path

import by_hand
import duckdb
import pytest
from answering_scenario import attached
from by_hand import AGE, WARD
from quick_catalogue import build_catalogue

from dphist_pipeline.answering._macros import MACROS
from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.releasing.releases import Release

WEEKS = ("2026-03-02", "2026-03-09")
ASKED = {
    "dph_total": "'r.weekly'",
    "dph_box": "'r.weekly', {'ward': 'surgery'}",
    "dph_range": "'r.weekly', 'age', 18, NULL",
    "dph_marginal": "'r.weekly', ['ward']",
    "dph_share": "'r.weekly', {'ward': 'surgery'}",
    "dph_quantile": "'r.weekly', 'age'",
    "dph_mean": "'r.weekly', 'age', -5, 120",
    "dph_sum": "'r.weekly', 'age', -5, 120",
    "dph_rate": "'r.weekly', ['ward'], 'people'",
    "dph_standardised": "'r.weekly', ['ward'], 'age', 'people_by_age'",
    "dph_ranks": "'r.weekly', 'ward'",
    "dph_difference": "'r.weekly', {'ward': 'surgery'}, {'ward': 'medicine'}",
    "dph_ratio": "'r.weekly', {'ward': 'surgery'}, {'ward': 'medicine'}",
    "dph_compare": "'r.weekly', '2026-03-02', '2026-03-09'",
    "dph_compare_releases": "'r.weekly', 'r.others'",
    "dph_changes": "'r.weekly'",
    "dph_over": "'r.weekly'",
    "dph_band": "'r.weekly'",
    "dph_whole": "'r.weekly'",
    "dph_distances": "'r.weekly'",
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    public = tmp_path_factory.mktemp("public")
    for release in ("weekly", "others"):
        for week in WEEKS:
            start = datetime.date.fromisoformat(week)
            ends = {"period_start": f"{start}T00:00:00+01:00", "period_end": f"{_after(start)}T00:00:00+01:00"}
            by_hand.publish(public, by_hand.estimate([AGE, WARD]), [AGE, WARD], release, week, **ends)
    odd = [{"column": name, "values": ["x"]} for name in ("period_start", "period_end")]
    by_hand.publish(public, by_hand.estimate(odd), odd, "odd", "all")
    (public / "scratch").mkdir()
    return build_catalogue(public, public / "scratch")


def _after(start: datetime.date) -> datetime.date:
    return start + datetime.timedelta(7)


def _rows(connection: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, object]]:
    asked = connection.execute(f"FROM r.{question}")
    names = [column[0] for column in asked.description]
    return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]


@pytest.mark.slow
def test_every_macro_that_tells_periods_tells_their_days(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        connection.execute("CREATE TABLE people AS SELECT DISTINCT ward, 100 AS population FROM r.weekly")
        connection.execute(
            "CREATE TABLE people_by_age AS SELECT DISTINCT ward, age_lower, age_upper, 9 AS population, 5 AS standard "
            "FROM r.weekly"
        )
        assert {*MACROS} - {*ASKED} == {"dph_quality"}  # these publications have no quality table
        for macro, arguments in ASKED.items():
            rows = _rows(connection, f"{macro}({arguments})")
            assert rows
            for row in rows:
                told = {name: str(day) for name, day in row.items() if name.startswith("period_")}
                if macro in ("dph_changes", "dph_compare"):
                    told = {name: str(day) for name, day in row.items() if "_period_" in name}
                    assert told == {
                        "first_period_start": "2026-03-02",
                        "first_period_end": "2026-03-09",
                        "second_period_start": "2026-03-09",
                        "second_period_end": "2026-03-16",
                    }, macro
                elif macro == "dph_over":
                    assert told == {"period_start": "2026-03-02", "period_end": "2026-03-16"}
                else:
                    start = datetime.date.fromisoformat(str(row["period"]))
                    assert told == {"period_start": str(start), "period_end": str(_after(start))}, macro


@pytest.mark.slow
def test_a_release_without_periods_has_no_days_and_axes_keep_their_names(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        (total,) = _rows(connection, "dph_total('r.odd')")
        assert (total["period"], total["period_start"], total["period_end"]) == ("all", None, None)
        (row,) = _rows(connection, "dph_marginal('r.odd', ['period_start'])")
        assert row["period_start"] == "x"


def publish(public: Path, start: str, end: str) -> Release:
    ends = {"period_start": f"{start}T00:00:00+01:00", "period_end": f"{end}T00:00:00+01:00"}
    return by_hand.publish(public, by_hand.estimate([AGE, WARD]), [AGE, WARD], "weekly", start, **ends)


def with_gap(public: Path) -> Path:
    """A catalogue of three weeks of which the second one follows the first after two weeks."""
    for week in ("2026-03-02", "2026-03-16", "2026-03-23"):
        publish(public, week, str(_after(datetime.date.fromisoformat(week))))
    (public / "scratch").mkdir()
    return build_catalogue(public, public / "scratch")


@pytest.mark.slow
def test_a_sum_over_periods_says_how_many_days_between_them_are_missing(tmp_path: Path) -> None:
    with attached(with_gap(tmp_path / "public")) as connection:
        (gap,) = _rows(connection, "dph_over('r.weekly')")
        assert str(gap["note"]).startswith("7 days between them are in no published period, and not in this sum")
        (whole,) = _rows(connection, "dph_over('r.weekly', '2026-03-16', '2026-03-23')")
        assert "days between" not in str(whole["note"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "last", "cut"),
    [
        ("2026-03-04", "2026-03-22", "2026-03-04 lies within the period 2026-03-02"),
        ("2026-03-02", "2026-03-20", "2026-03-20 lies within the period 2026-03-16"),
        ("2026-03-02", "2026-03-22", ""),
        ("2026-03-10", "2026-03-23", ""),  # a day without a published period
    ],
)
def test_a_sum_cuts_no_period(tmp_path: Path, first: str, last: str, cut: str) -> None:
    with attached(with_gap(tmp_path / "public")) as connection:
        question = f"dph_over('r.weekly', '{first}', '{last}')"
        if not cut:
            assert _rows(connection, question)[0]["periods"] == 2
        else:
            with pytest.raises(duckdb.Error, match=cut):
                _rows(connection, question)


@pytest.mark.slow
def test_ends_of_a_sum_may_be_named_by_their_weeks(tmp_path: Path) -> None:
    for week in ("2026-03-02", "2026-03-09", "2026-03-16"):
        made = publish(tmp_path / "public", week, str(_after(datetime.date.fromisoformat(week))))
    read = Publication.read(made.path)
    assert read.span("2026-W10", "2026-W11", {})["last_period"] == "2026-03-09"
    with pytest.raises(QuestionRefused, match="named by its first day, as in 2026-03-02, not 2026-W40"):
        read.span("2026-03-02", "2026-W40", {})


def test_a_publication_is_not_compared_with_itself(tmp_path: Path) -> None:
    made = publish(tmp_path / "public", "2026-03-02", "2026-03-09")
    with pytest.raises(QuestionRefused, match="would be compared with itself"):
        Publication.read(made.path).change_since(Publication.read(made.path), {})


@pytest.mark.slow
def test_a_change_over_a_missing_period_says_so_and_from_which_day(tmp_path: Path) -> None:
    with attached(with_gap(tmp_path / "public")) as connection:
        notes = [row["note"] for row in _rows(connection, "dph_changes('r.weekly')")]
        assert notes == ["7 days between them are in no published period, from 2026-03-09 on", None]
        (one,) = _rows(connection, "dph_changes('r.weekly', period := '2026-03-16')")
        assert one["note"] == notes[0]
        (asked,) = _rows(connection, "dph_compare('r.weekly', '2026-03-02', '2026-03-16')")
        assert asked["note"] is None  # two periods that were named


@pytest.mark.slow
def test_one_missing_day_is_a_day_and_the_command_names_it_too(tmp_path: Path) -> None:
    for start, end in (("2026-03-02", "2026-03-03"), ("2026-03-04", "2026-03-05")):
        last = publish(tmp_path / "public", start, end)
    said = "1 day between them is in no published period"
    assert last.changes()["note"].to_list() == [f"{said}, from 2026-03-03 on"]
    assert last.over().note == f"{said}, and not in this sum"

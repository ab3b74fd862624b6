"""The plain views of the catalogue: what a tool finds that calls no macros."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import polars as pl
import pytest
from answering_scenario import attached, rows_of
from by_hand import AGE, WARD
from quick_catalogue import build_catalogue

from dphist_pipeline.answering._macros import INNER, MACROS
from dphist_pipeline.integrations.duckdb import install
from dphist_pipeline.publishing.published_files import PublishedFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="views hold numbers; cards are tried in publishing/"),
]

WEEKS = ("2026-03-02", "2026-03-09", "2026-03-16")
COUNTY = {"column": "county", "values": ["01", "02"], "labels": ["North", ""], "levels": {"state": ["A", "B"]}}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-01-19", "other": True}
AXES = [AGE, COUNTY | {"other": True}, DAY]


def publish(public: Path, axes: list[dict[str, Any]], period: str = "2026-03-02", **more: Any) -> Path:
    start = datetime.date.fromisoformat(period)
    ends = {"period_start": f"{start}T00:00:00+01:00", "period_end": f"{start + datetime.timedelta(7)}T00:00:00+01:00"}
    facts = ends | {"title": f"Admissions of {period}"} | more
    return by_hand.publish(public, by_hand.estimate(axes), axes, period=period, **facts).path


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks, the second of which was revised, and the third by other axes; beside it one with odd columns."""
    public = tmp_path_factory.mktemp("public")
    for period, revision, axes in (
        (WEEKS[0], 1, AXES),
        (WEEKS[1], 1, AXES),
        (WEEKS[1], 2, AXES),
        (WEEKS[2], 1, [AGE, WARD]),
    ):
        publish(public, axes, period, revision=revision)
    odd = [{"column": name, "values": ["x"]} for name in ("period_start", "is_latest", "ward", "ward_is_other")]
    publish(public, odd, release="odd")
    return built(public)


def built(public: Path) -> Path:
    scratch = public / "scratch"
    scratch.mkdir(exist_ok=True)
    return build_catalogue(public, scratch)


def test_a_view_has_the_latest_revisions_and_another_every_one(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        asked = "SELECT period, revision, count(*) AS cells FROM r.{} GROUP BY ALL ORDER BY ALL"
        latest = connection.execute(asked.format("weekly")).fetchall()
        assert latest == [(WEEKS[0], 1, 45), (WEEKS[1], 2, 45), (WEEKS[2], 1, 15)]
        every = connection.execute(asked.format("weekly_all")).fetchall()
        assert every == [(WEEKS[0], 1, 45), (WEEKS[1], 1, 45), (WEEKS[1], 2, 45), (WEEKS[2], 1, 15)]
        flagged = connection.execute("SELECT DISTINCT period, revision FROM r.weekly_all WHERE is_latest ORDER BY ALL")
        assert flagged.fetchall() == [row[:2] for row in latest]


def test_the_columns_of_a_view_are_typed_and_explained(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        described = rows_of(connection, "DESCRIBE r.weekly")
        types = {row["column_name"]: row["column_type"] for row in described}
        assert list(types)[:6] == ["period", "period_start", "period_end", "revision", "age_lower", "age_upper"]
        # Its publications have several grids, so no column tells a place in declared order.
        assert list(types)[6:10] == ["age_is_other", "age_label", "age_from", "age_to"]
        assert list(types)[10:14] == ["county", "state", "county_is_other", "county_label"]
        assert {name for name, kind in types.items() if kind == "DATE"} == {"period_start", "period_end"}
        assert {name for name, kind in types.items() if kind == "BOOLEAN"} == {
            "age_is_other",
            "county_is_other",
            "day_is_other",
            "ward_is_other",
        }
        assert types["estimate"] == types["ci_lower"] == types["ci_upper"] == "DOUBLE"
        days = connection.execute("SELECT DISTINCT period_start, period_end FROM r.weekly ORDER BY ALL").fetchall()
        assert days[0] == (datetime.date(2026, 3, 2), datetime.date(2026, 3, 9))


def test_other_is_told_from_an_open_end_and_from_an_axis_that_is_not_there(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        asked = "SELECT DISTINCT age_lower, age_upper, age_is_other FROM r.weekly WHERE {} ORDER BY ALL"
        ages = connection.execute(asked.format(f"period = '{WEEKS[0]}'")).fetchall()
        assert set(ages) == {
            *((None, 0.0, False), (0.0, 18.0, False), (18.0, 65.0, False), (65.0, None, False), (None, None, True))
        }
        asked = "SELECT DISTINCT county, county_is_other, ward, ward_is_other FROM r.weekly WHERE period = ?"
        counties = connection.execute(asked, [WEEKS[0]]).fetchall()
        assert set(counties) == {("01", False, None, None), ("02", False, None, None), (None, True, None, None)}
        wards = connection.execute(asked, [WEEKS[2]]).fetchall()
        assert (None, None, None, True) in wards and (None, None, "surgery", False) in wards


def test_published_columns_keep_their_names_beside_those_of_a_view(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        (row,) = rows_of(connection, "FROM r.odd_all")
    assert (row["period_start"], row["is_latest"], row["ward_is_other"]) == ("x", "x", "x")
    assert row["period_end"] == datetime.date(2026, 3, 9) and row["period_start_is_other"] is False


def test_everything_is_explained_by_a_comment(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        for kind, name in (("tables", "table_name"), ("views", "view_name")):
            asked = f"SELECT {name}, comment FROM duckdb_{kind}() WHERE database_name = 'r' AND NOT internal"
            comments = dict(connection.execute(asked).fetchall())
            assert comments and all(comments.values())
        assert comments["weekly"].startswith(f"Admissions of {WEEKS[2]}: the latest revision of each period")
        asked = (
            "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE database_name = 'r' AND NOT internal"
        )
        columns = connection.execute(asked).fetchall()
        assert [row for row in columns if not row[2]] == []
        macros = connection.execute(
            "SELECT function_name, comment FROM duckdb_functions() WHERE database_name = 'r' AND NOT internal"
        ).fetchall()
        assert len(macros) >= 9 and all(comment for _, comment in macros)
        assert "In: the release's table" in dict(macros)["dph_box"]


def test_a_client_lists_what_users_ask_and_nothing_else(catalogue: Path) -> None:
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        shown = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        assert shown == {"weekly", "weekly_all", "odd", "odd_all", "dph_releases", "dph_charges", "dph_better"}
        asked = "SELECT DISTINCT schema_name, function_name FROM duckdb_functions() WHERE NOT internal"
        macros = {("main", name) for name in MACROS} | {("internals", name) for name in INNER}
        assert set(connection.execute(asked).fetchall()) == macros
        every = {(row[1], row[2]) for row in connection.execute("SHOW ALL TABLES").fetchall()}
        apart = {name for schema, name in every if schema == "internals"}
        assert {"dph_bins", "dph_version", "dph_cells_weekly", "dph_asked_weekly", "dph_asked_weekly_all"} < apart
        assert every == {*(("main", name) for name in shown), *(("internals", name) for name in apart)}


@pytest.mark.parametrize("question", ["dph_total('{}.weekli')", "dph_quality('{}.weekli')", "dph_whole('{}.weekli')"])
def test_a_wrong_name_is_answered_with_the_nearest_release(catalogue: Path, question: str) -> None:
    with attached(catalogue) as connection:
        for before in ("r", "r.main"):
            with pytest.raises(duckdb.CatalogException) as refused:
                connection.execute(f"FROM r.{question.format(before)}")
            assert re.search(r'Did you mean "(r\.)?weekly', str(refused.value)), refused.value
            assert "internals" not in str(refused.value) and "dph_cells" not in str(refused.value)


def test_the_releases_are_listed_with_title_and_days(catalogue: Path) -> None:
    with attached(catalogue) as connection:
        rows = rows_of(connection, "FROM r.dph_releases WHERE release = 'weekly' ORDER BY period, revision")
    assert [row["is_latest"] for row in rows] == [True, False, True, True]
    assert rows[0]["title"] == f"Admissions of {WEEKS[0]}" and rows[0]["period_end"] == datetime.date(2026, 3, 9)
    assert rows[0]["axes"] == ["age", "county", "day"]


def test_a_release_keeps_its_name_where_another_has_a_view_of_it(tmp_path: Path) -> None:
    publish(tmp_path, [WARD], release="beds", title="Beds")
    publish(tmp_path, [AGE], release="beds_all", title="All beds")
    with attached(built(tmp_path)) as connection:
        names = {
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        }
        assert names >= {"beds", "beds_all", "beds_all_all"}
        assert "age_lower" in rows_of(connection, "FROM r.beds_all LIMIT 1")[0]
        assert connection.execute("SELECT cells FROM r.dph_total('r.beds')").fetchall() == [(3,)]
        assert connection.execute("SELECT cells FROM r.dph_total('r.beds_all')").fetchall() == [(5,)]


def test_a_withdrawn_period_is_in_no_view(tmp_path: Path) -> None:
    folder = publish(tmp_path, [WARD])
    publish(tmp_path, [WARD], WEEKS[1])
    (tmp_path / "scratch").mkdir()
    PublishedFolder(folder).mark_withdrawn(
        {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}, tmp_path / "scratch"
    )
    with attached(built(tmp_path)) as connection:
        assert connection.execute("SELECT DISTINCT period FROM r.weekly_all").fetchall() == [(WEEKS[1],)]


def test_views_are_installed_in_a_database_of_ones_own(catalogue: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE weekly AS SELECT 1 AS mine")
        install(connection, catalogue.parent, schema="Published 1")
        found = connection.execute('SELECT DISTINCT revision FROM "Published 1".weekly WHERE period = ?', [WEEKS[1]])
        assert found.fetchall() == [(2,)]
        assert connection.execute('SELECT count(*) FROM "Published 1".weekly_all').fetchall() == [(150,)]


@pytest.mark.parametrize("name", ["wekly", "weekly_al"])
def test_a_wrong_name_is_answered_with_the_nearest_view(catalogue: Path, name: str) -> None:
    with attached(catalogue) as connection, pytest.raises(duckdb.CatalogException, match='Did you mean "weekly'):
        connection.execute(f"FROM r.dph_total('r.{name}')")


def test_a_forgotten_name_of_the_catalogue_is_named(catalogue: Path) -> None:
    message = r'Table with name weekly does not exist!\s+Did you mean "r.weekly"'
    for question in ("dph_total('weekly')", "dph_marginal('weekly', ['ward'])", "dph_quantile('weekly', 'age')"):
        with attached(catalogue) as connection, pytest.raises(duckdb.CatalogException, match=message):
            connection.execute(f"FROM r.{question}")


def test_what_was_published_comes_out_as_polars_and_as_arrow(tmp_path: Path) -> None:
    made = by_hand.estimate(AXES)
    release = by_hand.publish(tmp_path / "public", made, AXES)
    assert release.arrow.num_rows == release.table.height == release.audit["cells"]
    assert pl.DataFrame(release.arrow).equals(release.table)
    assert np.array_equal(release.table["estimate"].to_numpy(), made.values.ravel())

"""The catalogue as plain DuckDB reads it: boxes and totals, by every way of opening it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest
from answering_scenario import assert_told, attached, rows_of
from by_hand import AGE, HEIGHT, WARD
from oracle import Oracle
from quick_catalogue import build_catalogue

from dphist_pipeline.estimates.chosen_cells import Condition, QuestionRefused
from dphist_pipeline.releasing.releases import Release
from examples import mostly_soaked

# Signs that SQL, JSON or a pattern could take for their own; all are legal in a spec.
ODD = ["<=50K", "O'Brien", "select", "münchen", "a,b", "[x]", "null", "{a: 1}", "50%", "$x", "Null, None", "x;y"]
CLASS: dict[str, Any] = {"column": "class", "values": ODD, "other": True}
PERIODS = ["2026-03-02", "2026-03-09", "2026-03-16"]
COLUMNS = [
    "period",
    "revision",
    "estimate",
    "unbiased",
    "noise_error",
    "ci_lower",
    "ci_upper",
    "basis",
    "cells",
    "note",
    "reliability",
]
Box = dict[str, Condition]
BOXES: list[Box] = [
    *[{}, {"age": (18, 65)}, {"age": (None, 18)}, {"age": (0, None)}, {"age": (None, None)}, {"ward": "surgery"}],
    *[{"ward": None}, {"ward": ["medicine", None]}, {"age": (18, 65), "ward": ["surgery"]}],
    *[{"ward": ["medicine", "surgery", None], "age": (65, None)}],
]


@pytest.fixture(scope="module")
def latest(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Release]:
    """Two releases of several periods and revisions, with a catalogue; the latest revision of each period."""
    public = tmp_path_factory.mktemp("store")
    found = {}

    def publish(
        axes: list[dict[str, Any]], *key: Any, scale: Fraction | None = by_hand.SCALE, off: float = 0.25
    ) -> None:
        made = by_hand.estimate(axes, scale=scale, off=off)
        found[key[0], key[1]] = by_hand.publish(public, made, axes, *key)

    publish([AGE, WARD], "weekly", PERIODS[0])
    publish([AGE], "weekly", PERIODS[1])
    publish([WARD, AGE], "weekly", PERIODS[1], 2, off=7, scale=Fraction(20))  # other axes, another scale
    publish([AGE, WARD], "weekly", PERIODS[2])
    publish([AGE, WARD], "weekly", PERIODS[2], 2, scale=None)  # no noisy cells any more
    publish([AGE, WARD], "weekly", PERIODS[2], 10, scale=None, off=9)
    publish([CLASS, HEIGHT], "classes", "all")
    scratch = tmp_path_factory.mktemp("scratch")
    build_catalogue(public, scratch)
    assert list(scratch.iterdir()) == []
    return found


@pytest.fixture(scope="module")
def catalogue(latest: dict[tuple[str, str], Release]) -> Path:
    return latest["classes", "all"].path.parents[2] / "catalog.duckdb"


def ask(catalogue: Path, query: str, *parameters: object) -> list[dict[str, Any]]:
    """Rows of a query to the catalogue, attached as `r`."""
    with attached(catalogue) as connection:
        return rows_of(connection, query, *parameters)


def assert_answers(row: dict[str, Any], release: Release, box: Box) -> None:
    """The row is what the release tells, and what is worked out cell by cell."""
    assert row["revision"] == release.audit["revision"]
    assert_told(row, Oracle.of(release).answer(**box), release.answer(**box))


@pytest.mark.slow
@pytest.mark.parametrize("box", mostly_soaked(BOXES, [0, 4, 8]), ids=str)
def test_a_box_is_answered_for_every_period_as_by_its_latest_revision(
    latest: dict[tuple[str, str], Release], catalogue: Path, box: Box
) -> None:
    rows = ask(catalogue, "FROM r.dph_box('r.weekly', ?)", json.dumps(box))
    assert [row["period"] for row in rows] == PERIODS
    assert [list(row) for row in rows] == [[*COLUMNS, "period_start", "period_end"]] * 3
    for row in rows:
        assert_answers(row, latest["weekly", row["period"]], box)
        assert ask(catalogue, f"FROM r.dph_box('r.weekly', ?, period := '{row['period']}')", json.dumps(box)) == [row]


@pytest.mark.slow
def test_the_total_is_the_box_of_everything(latest: dict[tuple[str, str], Release], catalogue: Path) -> None:
    rows = ask(catalogue, "FROM r.dph_total('r.weekly')")
    assert rows == ask(catalogue, "FROM r.dph_box('r.weekly')")
    assert [row["period"] for row in rows] == PERIODS
    for row in rows:
        assert_answers(row, latest["weekly", row["period"]], {})
    assert ask(catalogue, "FROM r.dph_total('r.weekly', period := DATE '2026-03-09')") == rows[1:2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "category",
    mostly_soaked([*ODD, None, [ODD[1], ODD[6]], ["null", None]], [0, 6, len(ODD) + 2]),
    ids=str,
)
def test_odd_names_are_found_as_they_are(
    latest: dict[tuple[str, str], Release], catalogue: Path, category: Condition
) -> None:
    rows = ask(catalogue, "FROM r.dph_box('r.classes', ?)", json.dumps({"class": category}))
    assert_answers(rows[0], latest["classes", "all"], {"class": category})
    whole = latest["classes", "all"].answer(**{"class": category})
    assert rows[0]["estimate"] == whole.estimate


@pytest.mark.slow
def test_a_struct_means_what_its_json_means(catalogue: Path) -> None:
    for struct, text in {
        "{'age': [18, 65]}": '{"age": [18, 65]}',
        "{'age': [NULL, 18.0], 'ward': 'surgery'}": '{"age": [null, 18], "ward": "surgery"}',
        "{'ward': NULL}": '{"ward": null}',
        "{'ward': ['surgery', NULL]}": '{"ward": ["surgery", null]}',
        "{ward: ['surgery']}": '{"ward": "surgery"}',
        "NULL": "{}",
    }.items():
        given = ask(catalogue, f"FROM r.dph_box('r.weekly', {struct})")
        assert given == ask(catalogue, "FROM r.dph_box('r.weekly', ?)", text)
        assert len(given) == 3
    steps = ask(catalogue, "FROM r.dph_box('r.classes', {'height': [0.1, 0.3]})")
    assert steps[0]["cells"] == 2 * (len(ODD) + 1)


Way = Callable[[Path, Path, pytest.MonkeyPatch], tuple[Any, str, str]]


def opened(catalogue: Path, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str, str]:
    return duckdb.connect(str(catalogue), read_only=True), "", ""


def as_attached(catalogue: Path, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str, str]:
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{catalogue}' AS \"Our numbers.2026\" (READ_ONLY)")
    return connection, '"Our numbers.2026".', '"Our numbers.2026".'


def copied(catalogue: Path, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str, str]:
    connection = duckdb.connect(str(folder / "mine.duckdb"))
    connection.execute(f"ATTACH '{shutil.copy(catalogue, folder / 'copy.db')}' AS c (READ_ONLY)")
    return connection, "c.", "c.main."


def from_another_folder(catalogue: Path, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, str, str]:
    shutil.copy(catalogue, folder)
    patch.chdir(folder)
    connection = duckdb.connect()
    connection.execute("ATTACH 'catalog.duckdb' AS r (READ_ONLY)")
    connection.execute("USE r")
    return connection, "", ""


@pytest.mark.slow
@pytest.mark.parametrize("way", mostly_soaked([opened, as_attached, copied, from_another_folder], [0, 1]))
def test_it_answers_however_it_is_opened(
    catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    expected = [tuple(row.values()) for row in ask(catalogue, "FROM r.dph_box('r.weekly', {'ward': 'surgery'})")]
    connection, before_macro, before_table = way(catalogue, tmp_path, monkeypatch)
    with connection:
        for name in ("weekly", "WEEKLY", '"weekly"'):
            table = f"{before_table}{name}"
            found = connection.execute(f"FROM {before_macro}dph_box('{table}', {{'ward': 'surgery'}})")
            assert found.fetchall() == expected
            assert len(connection.execute(f"FROM {before_macro}dph_total('{table}')").fetchall()) == 3


REFUSED = {
    "{'wrad': 'surgery'}": "there is no axis wrad in period 2026-03-02; the axes are age, ward",
    "{'age': [18, 66]}": "axis age: 66 is not an edge; the nearest are 65.0",
    '\'{"age": [18, "NaN"]}\'': "axis age takes a range as [low, high]",
    "{'age': [18]}": "axis age takes a range as [low, high]",
    "{'age': [18, 18]}": "axis age takes a range as [low, high], half-open, low below high, null for an open end",
    "{'age': 18}": "axis age takes a range",
    "{'age': NULL}": "axis age takes a range",
    "{'age': ['young', 'old']}": "axis age takes a range",
    "{'ward': 'surgey'}": "surgey; it has surgery, medicine; a value that is none of these lies in other",
    "{'ward': ['surgery', 'medecine']}": "axis ward has no category medecine; it has surgery, medicine",
    "{'ward': []}": "no cells lie where axis ward is asked",
    "'[18, 65]'": "the box is a struct or a JSON object",
    "'\"surgery\"'": "the box is a struct or a JSON object",
    '\'{"ward": "surgery", "ward": "medicine"}\'': "with each axis once",
    "{}, period := '2026-03-03'": "there is no period 2026-03-03; it has 2026-03-02 to 2026-03-16 (3 in all; others",
}


@pytest.mark.parametrize(("box", "message"), REFUSED.items())
@pytest.mark.parametrize("columns", mostly_soaked(["*", "estimate"], [0]))
def test_a_wrong_question_is_refused_whatever_is_read_of_its_answer(
    catalogue: Path, box: str, message: str, columns: str
) -> None:
    query = f"SELECT {columns} FROM r.dph_box('r.weekly', {box})".replace("{}, ", "'{}', ")
    with pytest.raises(duckdb.Error, match=f"dph_box: .*{re.escape(message)}"):
        ask(catalogue, query)


@pytest.mark.slow
def test_a_box_that_cuts_bins_is_answered_and_other_questions_name_the_calls_that_do(
    latest: dict[tuple[str, str], Release], catalogue: Path
) -> None:
    release = latest["weekly", PERIODS[0]]
    (row, *_) = ask(catalogue, "FROM r.dph_box('r.weekly', {'age': [20, 65]})")
    assert "cut bins of age" in row["note"]
    assert_told(row, found := release.answer(age=(20, 65)), found)
    with pytest.raises(QuestionRefused, match=r"20 cuts the bin from 18 to 65; .* `Release\.answer`"):
        release.band(box={"age": (20, 65)})
    assert release.range("age", 20, 65).covers == "partly"
    for question in ("dph_band('r.weekly', box := {})", "dph_marginal('r.weekly', ['age'], {})"):
        with pytest.raises(duckdb.Error, match=r"nearest are 18\.0 and 65\.0; dph_box and dph_range take any end$"):
            ask(catalogue, "FROM r." + question.format("{'age': [20, 65]}"))
    assert {row["covers"] for row in ask(catalogue, "FROM r.dph_range('r.weekly', 'age', 20, 65)")} == {
        "inner",
        "outer",
    }
    for beyond, edge in (("[-1, 0.1]", "0.0"), ("[0.1, 7]", "0.4")):  # dph_range refuses these, too
        with pytest.raises(duckdb.Error, match=rf"is not an edge; the nearest are {edge}$"):
            ask(catalogue, f"FROM r.dph_box('r.classes', {{'height': {beyond}}})")


REVISIONS = {
    "dph_total('r.weekly', revision := 1)": [(period, 1) for period in PERIODS],
    "dph_box('r.weekly', revision := 2)": [(period, 2) for period in PERIODS[1:]],
    f"dph_range('r.weekly', 'age', 0, 18, period := '{PERIODS[2]}', revision := 10)": [(PERIODS[2], 10)],
    f"dph_marginal('r.weekly', [], period := '{PERIODS[1]}', revision := 1)": [(PERIODS[1], 1)],
    f"dph_band('r.weekly', box := {{'age': [0, 18]}}, period := '{PERIODS[1]}', revision := 1)": [(PERIODS[1], 1)],
    f"dph_quantile('r.weekly', 'age', period := '{PERIODS[1]}', revision := 1)": [(PERIODS[1], 1)],
    "dph_share('r.weekly', {'age': [0, 18]}, revision := 2)": [(period, 2) for period in PERIODS[1:]],
    f"dph_whole('r.weekly', period := '{PERIODS[2]}', revision := 2)": [(PERIODS[2], 2)],
}


@pytest.mark.parametrize(("question", "expected"), REVISIONS.items())
def test_an_earlier_revision_may_be_asked(catalogue: Path, question: str, expected: list[tuple[str, int]]) -> None:
    rows = ask(catalogue, f"SELECT DISTINCT period, revision FROM r.{question} ORDER BY ALL")
    assert [(row["period"], row["revision"]) for row in rows] == expected


@pytest.mark.slow
def test_a_change_may_be_between_two_revisions_of_a_period(catalogue: Path) -> None:
    period, ward = PERIODS[2], "{'ward': 'surgery'}"

    def compared(revisions: str) -> dict[str, Any]:
        question = f"dph_compare('r.weekly', '{period}', '{period}', {ward}, revision := {revisions})"
        return ask(catalogue, f"FROM r.{question}")[0]

    first, second = (
        ask(catalogue, f"FROM r.dph_box('r.weekly', {ward}, '{period}', {number})")[0]["estimate"] for number in (1, 10)
    )
    both, later = compared("[1, 10]"), compared("[1, NULL]")
    assert (both["first_estimate"], both["second_estimate"]) == (first, second) and both == later
    refused = {"[1, 3]": "there is no revision 3 of period", "[1, 1]": "or two revisions of one", "1": "two numbers"}
    for revisions, problem in refused.items():
        with pytest.raises(duckdb.Error, match=problem):
            compared(revisions)
    with pytest.raises(duckdb.Error, match="there is no revision 3; it has 1, 2, 10"):
        ask(catalogue, "FROM r.dph_total('r.weekly', revision := 3)")
    for wrong in ("'x'", "1.5", "[1]", "true", "99999999999999999999"):
        with pytest.raises(duckdb.Error, match="dph_total: a revision is a whole number, as in revision := 1, not"):
            ask(catalogue, f"FROM r.dph_total('r.weekly', revision := {wrong})")


@pytest.mark.parametrize(
    "question", ["dph_total", "dph_whole", "dph_distances", "dph_quality", "dph_changes", "dph_over"]
)
def test_the_view_of_every_revision_is_no_release_for_a_macro(catalogue: Path, question: str) -> None:
    with pytest.raises(duckdb.Error, match="weekly_all is a view of every revision; ask for weekly, with"):
        ask(catalogue, f"FROM r.{question}('r.weekly_all')")


@pytest.mark.slow
def test_a_period_without_the_axis_refuses_instead_of_answering_for_all(tmp_path: Path) -> None:
    by_hand.publish(tmp_path, by_hand.estimate([AGE, WARD]), [AGE, WARD])
    by_hand.publish(tmp_path, by_hand.estimate([AGE]), [AGE], period="2026-03-09")
    (tmp_path / "scratch").mkdir()
    catalogue = build_catalogue(tmp_path, tmp_path / "scratch")
    with pytest.raises(duckdb.Error, match="there is no axis ward in period 2026-03-09; the axes are age"):
        ask(catalogue, "FROM r.dph_box('r.weekly', {'ward': 'surgery'})")
    assert len(ask(catalogue, "FROM r.dph_box('r.weekly', {'ward': 'surgery'}, period := '2026-03-02')")) == 1


def test_other_is_refused_where_there_is_none_and_so_is_a_range_without_cells(catalogue: Path) -> None:
    with pytest.raises(duckdb.Error, match="no cells lie where axis height is asked"):
        ask(catalogue, "FROM r.dph_box('r.classes', {'height': [0.4, NULL]})")
    with pytest.raises(duckdb.Error, match="takes a range"):
        ask(catalogue, "FROM r.dph_box('r.classes', {'height': 'x'})")


def test_an_unknown_release_is_refused_by_duckdb_with_the_nearest_name(catalogue: Path) -> None:
    for question in ("dph_box('r.wekly', {'age': [18, 65]})", "dph_total('r.wekly')"):
        with pytest.raises(duckdb.CatalogException, match='Did you mean "weekly"'):
            ask(catalogue, f"FROM r.{question}")


def test_every_published_row_is_in_the_table_of_its_release(
    latest: dict[tuple[str, str], Release], catalogue: Path
) -> None:
    for (name, period), release in latest.items():
        rows = ask(
            catalogue,
            f"FROM r.{name} WHERE period = ? AND revision = ? ORDER BY cell_number",
            period,
            release.audit["revision"],
        )
        table = release.table
        assert [row["cell_number"] for row in rows] == list(range(table.height))
        for column in table.columns:
            assert [row[column] for row in rows] == table[column].to_list(), column
    assert np.unique([row["revision"] for row in ask(catalogue, "FROM r.weekly")]).tolist() == [1, 2, 10]


@pytest.mark.slow
def test_one_cell_of_a_large_table_is_found_by_its_number(tmp_path: Path) -> None:
    axes = [
        {"column": "age", "start": 0, "stop": 3000, "width": 1},
        {"column": "day", "start": 0, "stop": 100, "width": 1},
    ]
    release = by_hand.publish(tmp_path, by_hand.estimate(axes), axes)
    (tmp_path / "scratch").mkdir()
    catalogue, profile = build_catalogue(tmp_path, tmp_path / "scratch"), tmp_path / "profile.json"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY); PRAGMA enable_profiling = 'json'")
        connection.execute(f"PRAGMA profiling_output = '{profile}'")
        question = "SELECT estimate FROM r.dph_box('r.weekly', {'age': [2000, 2001], 'day': [7, 8]})"
        assert connection.execute(question).fetchall() == [(release.answer(age=(2000, 2001), day=(7, 8)).estimate,)]
        scanned = json.loads(profile.read_bytes())["query"]["total_rows_scanned"]
        assert 100 < scanned < 300_000 / 2, "a row group of DuckDB has 122,880 rows, of which there are three"
    for box in ({"age": (10, 20)}, {"day": (3, 4)}, {"age": (1, 2), "day": (0, 100)}, {"age": (1, 3), "day": (0, 99)}):
        rows = ask(catalogue, "FROM r.dph_box('r.weekly', ?)", json.dumps(box))
        assert rows[0]["cells"] == np.prod(
            [end - start for start, end in ({"age": (0, 3000), "day": (0, 100)} | box).values()]
        )
        chosen = [slice(*({"age": (0, 3000), "day": (0, 100)} | box)[axis]) for axis in ("age", "day")]
        assert rows[0]["estimate"] == by_hand.estimate(axes).values[*chosen].sum()


@pytest.mark.slow
def test_a_band_over_thousands_of_cells_is_as_wide_as_it_must_be(tmp_path: Path) -> None:
    axis = {"column": "age", "start": 0, "stop": 6000, "width": 1}
    release = by_hand.publish(tmp_path, by_hand.estimate([axis]), [axis])
    (tmp_path / "scratch").mkdir()
    catalogue = build_catalogue(tmp_path, tmp_path / "scratch")
    for level in (0.5, 0.95, 0.999):
        rows = ask(catalogue, f"SELECT ci_lower, ci_upper FROM r.dph_band('r.weekly', {level})")
        assert rows == release.band(level).select("ci_lower", "ci_upper").rows(named=True)
        reach = Oracle.of(release).band_reach(np.ones(1, dtype=bool), 6000, level)
        assert {row["ci_upper"] - row["ci_lower"] for row in rows} == {2 * reach}

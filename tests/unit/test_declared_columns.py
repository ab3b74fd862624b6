"""`derive` and `keep`: each form against plain Python, at the ends of every type, however rows are staged."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extreme_values import KINDS, SOME_KINDS, Layout, fits, records, spec_of, stored
from hypothesis import given
from hypothesis import strategies as st
from office import Office
from source_scenario import AGE, SECRET, counted, refused, spec

import dphist_pipeline as dph
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.column_sql import with_derived_columns
from dphist_pipeline.confidential.reading.source import ColumnRefused, OpenedSource
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.frames import as_file
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.declared_columns import Derive, source_columns
from dphist_pipeline.spec.mistakes import SpecError, checker
from examples import examples

HERE: Any = Path()
ZONE = "Europe/Brussels"
YEARS = {"column": "age", "years_between": ["born", "seen"]}
derive = checker(Derive)


def values_of(forms: list[dict[str, Any]], rows: list[dict[str, Any]], schema: pa.Schema, zone: str = ZONE) -> Any:
    """What forms give for rows, a tuple each; read as typed columns, and as text, which must be the same."""
    table = pa.Table.from_pylist(rows, schema)
    texts = [
        {
            name: value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
            if isinstance(value, datetime)
            else None
            if value is None
            else str(value)
            for name, value in row.items()
        }
        for row in rows
    ]
    text = pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in schema.names]))
    names = [form["column"] for form in forms]
    given_values = []
    for read in (table, text):
        with duckdb.connect() as connection:
            connection.execute(f"SET TimeZone = '{zone}'")
            connection.register("read", read)
            kinds = connection.sql("FROM read")
            types = dict(zip(kinds.columns, (str(kind).partition("(")[0] for kind in kinds.types), strict=True))
            source = with_derived_columns(OpenedSource(types, "SELECT * FROM read", {}), derive(forms))
            given_values.append(connection.sql(f"SELECT {', '.join(names)} FROM ({source.relation})").fetchall())
    assert given_values[0] == given_values[1]
    return given_values[0]


def birthdays(born: date, seen: date) -> int:
    """Birthdays passed, day by day; of 29 February on 1 March."""
    passed = seen.year - born.year
    birthday = date(seen.year, 3, 1)
    if (born.month, born.day) != (2, 29) or (seen.year % 4 == 0 and (seen.year % 100 != 0 or seen.year % 400 == 0)):
        birthday = born.replace(year=seen.year)
    return passed - (seen < birthday)


DAYS = st.dates(date(1880, 1, 1), date(2060, 12, 31)) | st.sampled_from([date(1960, 2, 29), date(2000, 2, 29)])
LATER = DAYS | st.sampled_from([date(2026, 2, 28), date(2026, 3, 1), date(2024, 2, 29), date(1900, 2, 28)])


@examples(200)
@given(st.lists(st.tuples(DAYS | st.none(), LATER | st.none()), min_size=1, max_size=20))
def test_years_and_days_between_two_dates_are_those_of_the_calendar(pairs: list[tuple[date, date]]) -> None:
    rows = [{"born": born, "seen": seen} for born, seen in pairs]
    forms = [YEARS, {"column": "stay", "days_between": ["born", "seen"]}]
    schema = pa.schema([("born", pa.date32()), ("seen", pa.date32())])
    expected = [(birthdays(born, seen), (seen - born).days) if born and seen else (None, None) for born, seen in pairs]
    assert values_of(forms, rows, schema) == expected


@examples(50)
@given(st.lists(st.tuples(st.integers(1, 9999) | st.none(), LATER | st.none()), min_size=1, max_size=10))
def test_with_a_year_for_one_of_both_years_between_is_the_difference_of_years(pairs: list[Any]) -> None:
    rows = [{"born": born, "seen": seen} for born, seen in pairs]
    schema = pa.schema([("born", pa.int64()), ("seen", pa.date32())])
    expected = [(None if born is None or seen is None else seen.year - born,) for born, seen in pairs]
    assert values_of([YEARS], rows, schema) == expected
    turned = [{"column": "age", "years_between": ["seen", "born"]}]
    assert values_of(turned, rows, schema) == [(None if age is None else -age,) for (age,) in expected]


@pytest.mark.parametrize(
    ("kind", "born"), [(pa.float64(), [1957.5, 0.0, 10_000.0, float("nan"), -1.0]), (pa.int64(), [0, -3, 19_570_203])]
)
def test_a_number_that_is_no_year_has_no_years(kind: pa.DataType, born: list[Any]) -> None:
    rows = [{"born": value, "seen": date(2026, 3, 2)} for value in born]
    schema = pa.schema([("born", kind), ("seen", pa.date32())])
    expected = [(None,)] * len(born)
    with duckdb.connect() as connection:
        connection.register("read", pa.Table.from_pylist(rows, schema))
        types = {"born": "DOUBLE" if kind == pa.float64() else "BIGINT", "seen": "DATE"}
        source = with_derived_columns(OpenedSource(types, "SELECT * FROM read", {}), derive([YEARS]))
        assert connection.sql(f"SELECT age FROM ({source.relation})").fetchall() == expected


MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2036, 12, 31)).map(lambda moment: moment.replace(microsecond=0))
PARTS = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.isoweekday(),
    "hour": lambda moment: moment.hour,
}


@examples(100)
@given(st.lists(MOMENTS | st.none(), min_size=1, max_size=20), st.booleans())
def test_parts_are_those_of_local_clocks(moments: list[datetime | None], zoned: bool) -> None:
    kind = pa.timestamp("us", "UTC" if zoned else None)
    rows = [{"at": moment.replace(tzinfo=UTC) if zoned and moment else moment} for moment in moments]
    local = [
        moment.replace(tzinfo=UTC).astimezone(ZoneInfo(ZONE)) if zoned and moment else moment for moment in moments
    ]
    forms = [{"column": f"of_{part}", "part": part, "of": "at"} for part in PARTS]
    expected = [tuple(part(moment) if moment else None for part in PARTS.values()) for moment in local]
    assert values_of(forms, rows, pa.schema([("at", kind)])) == expected


@examples(100)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=9) | st.none(), min_size=1), st.integers(1, 5))
def test_letters_are_code_points(texts: list[str | None], number: int) -> None:
    rows, schema = [{"code": text} for text in texts], pa.schema([("code", pa.string())])
    found = values_of([{"column": "start", "first_letters": number, "of": "code"}], rows, schema)
    assert found == [(None if text is None else text[:number],) for text in texts]


def test_letters_of_whole_numbers_are_their_digits_also_where_a_gap_made_them_floats() -> None:
    form = [{"column": "start", "first_letters": 2, "of": "code"}]
    for kind, last in ((pa.int64(), 99_999), (pa.float64(), 99_999.0)):
        table = pa.table({"code": pa.array([12_345, None, -5, last], kind)})
        with duckdb.connect() as connection:
            connection.register("read", table)
            types = {"code": "DOUBLE" if kind == pa.float64() else "BIGINT"}
            source = with_derived_columns(OpenedSource(types, "SELECT * FROM read", {}), derive(form))
            assert connection.sql(f"SELECT start FROM ({source.relation})").fetchall() == [
                ("12",), (None,), ("-5",), ("99",)
            ]  # fmt: skip


@examples(50)
@given(st.lists(st.tuples(DAYS | st.none(), DAYS | st.none(), st.booleans()), min_size=1, max_size=10))
def test_the_first_date_that_can_be_read_is_taken(rows: list[tuple[date | None, date | None, bool]]) -> None:
    written = [
        {"iso": str(iso) if iso and readable else "unknown", "de": german and german.strftime("%d.%m.%Y")}
        for iso, german, readable in rows
    ]
    form = {"column": "noted", "first_of": [{"column": "iso"}, {"column": "de", "format": "%d.%m.%Y"}]}
    schema = pa.schema([("iso", pa.string()), ("de", pa.string())])
    expected = [iso if iso and readable else german for iso, german, readable in rows]
    found = values_of([form], written, schema)
    assert found == [(datetime.combine(day, datetime.min.time()) if day else None,) for day in expected]


def test_a_derived_column_may_be_made_of_an_earlier_one() -> None:
    forms = [
        {"column": "noted", "first_of": [{"column": "at", "format": "%d.%m.%Y %H:%M"}]},
        {"column": "hour_of", "part": "hour", "of": "noted"},
        {"column": "age", "years_between": ["born", "noted"]},
    ]
    rows, schema = [{"at": "05.03.2026 14:30", "born": "1960"}], pa.schema([("at", pa.string()), ("born", pa.string())])
    assert values_of(forms, rows, schema) == [(datetime(2026, 3, 5, 14, 30), 14, 66)]


# At the ends of every type, in both ways of staging.
FORMS: list[dict[str, Any]] = [
    {"column": "made", "years_between": ["v", "v"]},
    {"column": "made", "years_between": ["day", "v"]},
    {"column": "made", "days_between": ["v", "day"]},
    {"column": "made", "days_between": ["day", "v"]},
    *({"column": "made", "part": part, "of": "v"} for part in PARTS),
    {"column": "made", "first_letters": 3, "of": "v"},
    {"column": "made", "first_of": [{"column": "v"}, {"column": "day"}]},
]
DERIVED_AXES: dict[str, dict[str, Any]] = {
    "first_of": {"column": "made", "calendar": "year", "start": "1970-01-01", "stop": "2030-01-01", "other": True},
    "first_letters": {"column": "made", "values": ["5", "sur", "202", "tru"], "other": True},
    "number": {"column": "made", "edges": [-100_000, 0, 1, 12, 1970, 2026, 10**9], "below": True, "above": True},
}
CONDITIONS: list[dict[str, Any]] = [
    {"column": "v", "is": ["5", "surgery"]},
    {"column": "v", "is": ["2026-01-06", "true"]},
    {"column": "v", "from": 0, "to": 5.5},
    {"column": "v", "from": 10**15},
    {"column": "v", "to": "-0.3"},
    {"column": "v", "from": "2026-01-01", "to": "2027-01-01"},
]


@contextmanager
def failing() -> Iterator[None]:
    """The statement over all rows always fails: each is staged alone."""

    def fail(*given: object) -> None:
        raise duckdb.InternalException("as an engine says")

    with patch.object(ingest, "_stage", fail):
        yield


def staged(kind: str, layout: Layout, alone: bool, **changes: Any) -> list[str] | None:
    """The staged rows, sorted; None where the columns do not serve. Fails if the engine failed on a row."""
    with tempfile.TemporaryDirectory() as made:
        folder, run = Path(made), Path(made, "run")
        run.mkdir()
        table = records(KINDS[kind], 3)
        table = table.append_column("day", pa.array([date(2026, 1, 6)] * len(table)))
        fields = spec_of(stored(folder, table, layout), ()) | {"time_zone": "Asia/Kolkata"} | changes
        declared = ReleaseSpec.from_attributes(fields, folder)
        plan = plan_of(declared, declared.period_named("all"))
        try:
            if alone:
                with failing():
                    ingest.stage_rows(plan, run)
            else:
                assert ingest._staged_at_once(plan, run, run / "rows.parquet"), "a template raised"
        except ColumnRefused:
            return None
        return sorted(map(str, pq.read_table(run / "rows.parquet").to_pylist()))


def changes_of(form: dict[str, Any]) -> dict[str, Any]:
    axis = next((axis for name, axis in DERIVED_AXES.items() if name in form), DERIVED_AXES["number"])
    return {"derive": [form], "axes": [axis]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_no_form_raises_at_the_ends_of_a_type_and_both_ways_stage_the_same_rows(kind: str) -> None:
    served = 0
    for layout in [Layout(path) for path in ("parquet", "duckdb", "csv") if fits(kind, Layout(path))]:
        for changes in [*map(changes_of, FORMS), *({"keep": [condition]} for condition in CONDITIONS)]:
            usual = staged(kind, layout, alone=False, **changes)
            assert staged(kind, layout, alone=True, **changes) == usual, (layout, changes)
            served += usual is not None
    assert served or kind == "uuid"


# Rows that count: the same over every kind of source.
PEOPLE = pa.table(
    {
        "person": [f"p{number}" for number in range(6)],
        "born": ["2010-05-03", "2000-02-29", "1990-01-01", None, "2020-07-07", "2011-01-01"],
        "seen": ["2026-03-01", "2026-02-28", "2026-03-05", "2026-03-06", "2026-03-07", "not a day"],
        "kind": ["inpatient", "inpatient", "day case", "inpatient", None, "inpatient"],
    }
)
DECLARED: dict[str, Any] = {
    "derive": [YEARS],
    "keep": [{"column": "kind", "is": ["inpatient"]}, {"column": "age", "from": 0, "to": 120}],
    "axes": [AGE],
}
CSV = "\n".join(
    [",".join(PEOPLE.column_names), *(",".join(value or "" for value in row.values()) for row in PEOPLE.to_pylist())]
).encode()


def typed(table: pa.Table) -> pa.Table:
    seen = pa.array([value if value[0] == "2" else None for value in table["seen"].to_pylist()]).cast(pa.date32())
    return table.set_column(1, "born", table["born"].cast(pa.date32())).set_column(2, "seen", seen)


def of_frame(table: pa.Table, **changes: Any) -> list[int]:
    from dphist_pipeline.confidential.cube import read_and_count

    with tempfile.TemporaryDirectory() as folder:
        declared = spec(Path(folder), source="frame:people", **changes)
        with as_file(plan_of(declared, declared.period_named("all")), table, Path(folder)) as plan:
            return [int(count) for count in read_and_count(plan, Path(folder))]


def test_every_source_counts_the_same_rows() -> None:
    expected = [0, 1, 1, 0, 0]  # 15 and 25 years; of no age no row is kept, though the axis has `other`
    assert counted({"a.parquet": PEOPLE}, **DECLARED) == expected
    assert counted({"a.parquet": typed(PEOPLE)}, **DECLARED) == expected
    assert counted({"a.csv": CSV}, source="*.csv", **DECLARED) == expected
    with failing():
        assert counted({"a.parquet": PEOPLE}, **DECLARED) == expected
        assert counted({"a.csv": CSV}, source="*.csv", **DECLARED) == expected
    for frame in (PEOPLE, typed(PEOPLE), pl.from_arrow(PEOPLE), PEOPLE.to_pandas()):
        assert of_frame(frame, **DECLARED) == expected


def test_rows_that_are_not_kept_are_in_no_quality_table(tmp_path: Path) -> None:
    quality = {"quality": {"rows": 1001}}
    with_keep = staged("int64", Layout(), alone=False, keep=[{"column": "person", "is": ["p0", "p1"]}], **quality)
    assert with_keep is not None and len(with_keep) == 2


def test_a_period_column_may_be_derived() -> None:
    on = {"column": "noted", "first_of": [{"column": "seen", "format": "iso"}]}
    in_march = {"period": "month", "period_column": "noted", "derive": [YEARS, on], "axes": [AGE]}
    assert counted({"a.parquet": PEOPLE}, at="2026-03-01", **in_march) == [1, 1, 0, 1, 1]
    assert counted({"a.parquet": PEOPLE}, at="2026-02-01", **in_march) == [0, 0, 1, 0, 0]


def test_numbers_and_dates_end_where_they_are_declared() -> None:
    table = pa.table({"person": list("abcde"), "age": [4.9, 5.0, 9.9, 10.0, None], "day": pa.array([0, 1, 2, 3, 4])})
    table = table.set_column(2, "day", table["day"].cast(pa.int32()).cast(pa.date32()))
    everybody = {"axes": [{"column": "age", "start": 0, "stop": 30, "width": 30, "other": True}]}
    files = {"a.parquet": table}
    assert sum(counted(files, keep=[{"column": "age", "from": 5, "to": 10}], **everybody)) == 2
    assert sum(counted(files, keep=[{"column": "age", "from": 10}], **everybody)) == 1
    assert sum(counted(files, keep=[{"column": "age", "to": 5}], **everybody)) == 1
    days = [{"column": "day", "from": "1970-01-02", "to": "1970-01-04"}]
    assert sum(counted(files, keep=days, **everybody)) == 2


def test_numbers_in_text_are_read_as_those_of_an_axis() -> None:
    lines = b"person;age\na;4,5\nb;1.004,5\nc;4.5\n"
    changes = {"source": "*.csv", "csv_delimiter": ";", "decimal_comma": True, "thousands": "."}
    for condition, rows in (({"from": "4.5"}, 2), ({"from": 5}, 1), ({"to": 5}, 1)):
        assert sum(counted({"a.csv": lines}, keep=[{"column": "age", **condition}], **changes)) == rows


def test_whole_numbers_are_kept_by_number_and_words_letter_by_letter() -> None:
    table = pa.table({"person": list("abc"), "age": [1.0, 2.0, 3.0], "ward": ["East", "east", "WEST"]})
    assert sum(counted({"a.parquet": table}, keep=[{"column": "age", "is": ["1", "3"]}])) == 2
    assert sum(counted({"a.parquet": table}, keep=[{"column": "ward", "is": ["east", "west"]}])) == 1


# Planted faults: a unit is what the source calls so, and nothing of the source is shadowed.
DERIVED_UNIT = {"column": "person", "first_letters": 1, "of": "name"}


@pytest.mark.parametrize("unit", ["person", ["house", "person"], "Person"])
def test_a_derived_column_is_never_a_unit(unit: Any) -> None:
    with pytest.raises(SpecError, match="names the privacy unit"):
        spec(HERE, privacy_unit=unit, derive=[DERIVED_UNIT])


@pytest.mark.parametrize("name", ["age", "Age", "AGE"])
def test_a_derived_column_shadows_none_of_the_source(name: str) -> None:
    table = pa.table({"person": ["a"], "born": ["2000-01-01"], "seen": ["2026-01-01"], name: [5]})
    lines = f"person,born,seen,{name}\na,2000-01-01,2026-01-01,{SECRET}\n".encode()
    for files, source in (({"a.parquet": table}, "*.parquet"), ({"a.csv": lines}, "*.csv")):
        assert "in upper or lower case" in refused(files, ColumnRefused, source=source, derive=[YEARS])
    with pytest.raises(ColumnRefused, match="in upper or lower case"):
        of_frame(table, derive=[YEARS])


def test_a_column_that_a_later_file_gets_is_refused_then() -> None:
    first = pa.table({"person": ["a"], "born": ["2000-01-01"], "seen": ["2026-01-01"]})
    later = first.append_column("Age", pa.array([3]))
    assert counted({"a.parquet": first}, derive=[YEARS]) == [0, 0, 1, 0, 0]
    assert "in upper or lower case" in refused({"a.parquet": first, "b.parquet": later}, ColumnRefused, derive=[YEARS])


def test_a_folder_is_a_column_too() -> None:
    table = pa.table({"person": ["a"], "born": ["2000-01-01"], "seen": ["2026-01-01"]})
    message = refused({"Age=3/a.parquet": table}, ColumnRefused, source="*/*.parquet", hive=True, derive=[YEARS])
    assert "in upper or lower case" in message


def test_a_header_line_that_may_be_a_record_is_compared_with_no_derived_name() -> None:
    """Else a spec writer could ask whether the first record holds a word."""
    lines = b"zacharias,2000-01-01,2026-01-01,age\n"
    message = refused({"a.csv": lines}, ColumnRefused, source="*.csv", derive=[YEARS])
    assert "upper or lower" not in message and "'person'" in message


def test_an_input_that_is_missing_or_cannot_serve_is_refused() -> None:
    table = pa.table({"person": ["a"], "born": ["2000-01-01"], "Seen": ["2026-01-01"], "flag": [True]})
    assert "'seen' is not in the source" in refused({"a.parquet": table}, ColumnRefused, derive=[YEARS])
    for form in (
        {"column": "age", "years_between": ["born", "flag"]},
        {"column": "age", "part": "hour", "of": "flag"},
        {"column": "age", "first_letters": 2, "of": "flag"},
    ):
        assert "has type BOOLEAN" in refused({"a.parquet": table}, ColumnRefused, derive=[form])
    born = {"axes": [{"column": "born", "values": ["x"]}], "keep": [{"column": "flag", "from": 1}]}
    assert "has type BOOLEAN" in refused({"a.parquet": table}, ColumnRefused, **born)


def test_a_missing_column_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    table = pa.table({"person": ["a"], "born": ["2000-01-01"], "seen": ["2026-01-01"], "Age": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    without = {"axes": [{**AGE, "column": "Age", "name": "age"}], "keep": [{"column": "x", "to": 1}]}
    for changes in ({"derive": [YEARS]}, without):
        declared = spec(tmp_path, **changes)
        (tmp_path / "run").mkdir(exist_ok=True)
        with pytest.raises(ColumnRefused):
            ingest.check_columns(plan_of(declared, declared.period_named("all")), tmp_path / "run")


def test_a_frame_of_a_study_takes_both(tmp_path: Path) -> None:
    age = {"column": "age", "start": 0, "stop": 30, "width": 10}
    more: Any = {
        "derive": DECLARED["derive"],
        "keep": DECLARED["keep"],
        "privacy_unit": "person",
        "max_rows_per_unit": 9,
    }
    for frame in (PEOPLE, pl.from_arrow(PEOPLE), PEOPLE.to_pandas()):
        estimate = dph.sanitize(dph.count_cube(frame, [age], **more), mechanism="geometric", epsilon=50)
        assert np.abs(estimate.values - [0, 1, 1]).max() <= 3
    with pytest.raises(SpecError, match="names the privacy unit"):
        dph.count_cube(PEOPLE, [age], **{**more, "derive": [DERIVED_UNIT]})


@pytest.mark.parametrize("noted", [["1", "2.5", None], [1, 2.5, None], ["1", 2.5, "x"]])
def test_objects_of_a_pandas_frame_are_kept_by_number(noted: list[Any]) -> None:
    frame = pd.DataFrame({"person": list("abc"), "age": [1.0, 2.0, 3.0], "noted": pd.Series(noted, dtype=object)})
    assert sum(of_frame(frame, keep=[{"column": "noted", "is": ["1.0", "2.5"]}], axes=[AGE])) == 2


DOCTORED: dict[str, Any] = {
    "derive": [{"column": "start", "first_letters": 1, "of": "ward"}],
    "keep": [{"column": "age", "from": 0, "to": 100}, {"column": "start", "is": ["s", "m"]}],
    "axes": [{"column": "start", "values": ["s", "m"]}],
}


@pytest.mark.slow
@pytest.mark.stand_in("catalogue", "pictures", why="what check, audit and card say of declared columns")
def test_check_audit_and_card_say_each_in_words(office: Office) -> None:
    office.with_release(**DOCTORED, language="de")
    audit = json.loads((office.published() / "audit.json").read_bytes())
    assert audit["derive"] == DOCTORED["derive"]
    assert audit["keep"] == [{"column": "age", "from": "0", "to": "100"}, DOCTORED["keep"][1]]
    card = (office.published() / "card.html").read_text(encoding="utf-8")
    assert "die ersten Zeichen von ward: 1" in card and "age ist mindestens 0 und kleiner als 100" in card
    for words in (["check", "spec.yaml"], ["check", "spec.yaml", "--explain"]):
        out = " ".join(office.run(*words).out.split())
        assert "the first characters of ward: 1" in out and "start is one of: s, m" in out
        assert office.run(*words, "--json").json["derived"] == {"start": "the first characters of ward: 1"}
    assert "`start` (axis start) is text" in office.run("check", "spec.yaml").out


def test_columns_of_the_source_are_found_through_several_forms() -> None:
    forms = [
        {"column": "noted", "first_of": [{"column": "a"}, {"column": "b"}]},
        {**YEARS, "years_between": ["c", "noted"]},
    ]
    assert source_columns(forms, "age") == ["c", "a", "b"] and source_columns(forms, "ward") == ["ward"]


MISTAKES: list[tuple[Mapping[str, Any], str]] = [
    ({"derive": [{"column": "age"}]}, "needs one of `years_between`"),
    ({"derive": [{"column": "age", "years": ["a", "b"]}]}, "needs one of `years_between`"),
    ({"derive": [{"column": "age", "years_between": ["a"]}]}, r"derive\[0\].years_between: holds 1 items"),
    ({"derive": [{"column": "age", "part": "second", "of": "x"}]}, r"derive\[0\].part: must be one of year"),
    ({"derive": [{"column": "age", "part": "hour"}]}, r"derive\[0\].of"),
    ({"derive": [{"column": "Age", "part": "hour", "of": "x"}]}, "is not a plain name"),
    ({"derive": [{"column": "age", "first_letters": 0, "of": "x"}]}, "must be at least 1"),
    ({"derive": [{"column": "age", "first_of": []}]}, "needs at least 1"),
    ({"derive": [{"column": "age", "first_of": [{"column": "x", "format": "%q"}]}]}, "must say how a date is written"),
    ({"derive": [YEARS, YEARS]}, r"derive\[1\].column: 'age' is derived twice"),
    ({"derive": [{"column": "age", "part": "hour", "of": "age"}]}, "is derived here or further down"),
    ({"derive": "age"}, "must be a list"),
    ({"keep": [{"column": "kind"}]}, "needs `is`, or `from` and `to`"),
    ({"keep": [{"column": "kind", "is": ["a"], "from": 1}]}, "needs `is`, or `from` and `to`"),
    ({"keep": [{"column": "kind", "is": "a"}]}, r"keep\[0\].is: must be a list"),
    ({"keep": [{"column": "kind", "is": [1]}]}, "quote it"),
    ({"keep": [{"column": "kind", "is": ["a", "a"]}]}, "is named twice"),
    ({"keep": [{"column": "age", "from": 5, "to": 5}]}, r"keep\[0\].to: must lie above"),
    ({"keep": [{"column": "age", "from": 5, "to": "2026-01-01"}]}, "a number and with a date"),
    ({"keep": [{"column": "age", "from": None}]}, "needs `from`, `to` or both"),
    ({"keep": [{"column": "age", "above": 5}]}, "needs `is`, or `from` and `to`"),
    ({"keep": [{"column": "age", "from": 5, "until": 6}]}, r"keep\[0\].until: unknown field"),
]


@pytest.mark.parametrize(("changes", "problem"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_named_with_its_place(changes: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        spec(HERE, **changes)


def test_spark_is_refused_in_a_sentence() -> None:
    with pytest.raises(SpecError, match="`spark` does not serve `derive`, `keep`"):
        spec(HERE, engine="spark", derive=[YEARS], keep=[{"column": "kind", "is": ["a"]}])


def test_digests_hold_both_fields_in_one_form_and_are_as_before_without() -> None:
    assert spec(HERE).digest == spec(HERE, derive=[], keep=[]).digest
    first_of = [{"column": "x", "format": "iso"}]
    one = {"derive": [{"column": "noted", "first_of": first_of}], "keep": [{"column": "noted", "from": 1}]}
    other = {
        "derive": [{"first_of": [{"column": "x"}], "column": "noted"}],
        "keep": [{"from": "1.0", "column": "noted"}],
    }
    assert spec(HERE, **one).digest == spec(HERE, **other).digest != spec(HERE).digest
    assert spec(HERE, **one).digest_facts["derive"] == [{"column": "noted", "first_of": [{"column": "x"}]}]
    assert spec(HERE, **one).digest_facts["keep"] == [{"column": "noted", "from": "1"}]

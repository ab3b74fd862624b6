"""On which local day a row happened: by one copy of zone data, in every form of ISO 8601, for every kind of source."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.confidential.cube import load_cube, write_cube
from dphist_pipeline.confidential.reading import _databases as databases
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading._moments import wall_clock
from dphist_pipeline.confidential.reading.source import ColumnRefused, OpenedSource
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.frames import as_file
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import examples

# Both copies of the zone data agree on these years, whatever their versions. Clocks change at midnight in two of them.
ZONES = (
    "UTC",
    "Europe/Brussels",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "America/Havana",
)
FIRST, LAST = date(2019, 1, 7), date(2020, 1, 6)
OFFSETS = (timedelta(0), timedelta(hours=2), timedelta(hours=-8), timedelta(hours=5, minutes=30))


def spec(source: str, zone: str, **fields: Any) -> Mapping[str, Any]:
    return {
        **{"release": "visits", "source": source, "privacy_unit": "row", "neighbours": "add_remove", "epsilon": 1},
        **{"account": "health", "mechanism": "geometric", "time_zone": zone, "csv_delimiter": ";"},
        "axes": [{"column": "day", "calendar": "day", "start": f"{FIRST}", "stop": f"{LAST}", "format": "iso"}],
        **fields,
    }


def written(column: pa.Array, kind: str, folder: Path) -> tuple[str, Any]:
    """The source, and its frame if it is one."""
    records = pa.table({"day": column})
    match kind:
        case "csv":
            lines = "".join(f"{value};1\n" for value in column.to_pylist())
            (folder / "rows.csv").write_bytes(f"day;n\n{lines}".encode())
            return "rows.csv", None
        case "parquet":
            pq.write_table(records, folder / "rows.parquet")
            return "rows.parquet", None
        case "duckdb":
            with duckdb.connect(str(folder / "rows.duckdb")) as office:
                office.execute("CREATE TABLE visits AS SELECT * FROM records")
            return "rows.duckdb", None
        case "arrow":
            return "frame:visits", records
        case "polars":
            return "frame:visits", pl.from_arrow(records)
        case "pandas":
            return "frame:visits", records.to_pandas()
        case _:
            return "frame:visits", duckdb.from_arrow(records)


def counted(
    column: pa.Array, kind: str, zone: str, at: str | None = None, apart: bool = False, **fields: Any
) -> list[int]:
    """Rows of each day from FIRST on, `other` left out, of one period if one is named."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, frame = written(column, kind, folder)
        told = {"source_table": "visits"} if kind == "duckdb" else {}
        told |= {} if at is None else {"period": "week", "period_column": "day", "period_format": "iso"}
        made = ReleaseSpec.from_attributes(spec(source, zone, **told, **fields), folder)
        run = folder / "run"
        run.mkdir()
        with as_file(plan_of(made, made.period_named(at or "all")), frame, run) as plan:
            staged = run / "rows.parquet"
            (ingest._stage_apart if apart else ingest._staged_at_once)(plan, run, staged)
            return load_cube(write_cube(plan, staged, run)).tolist()


def by_day(days: list[date | None]) -> list[int]:
    number = Counter(days)
    return [number[FIRST + timedelta(days=day)] for day in range((LAST - FIRST).days)]


def local_day(instant: datetime, zone: str) -> date:
    return instant.astimezone(ZoneInfo(zone)).date()


DATES: tuple[Callable[[date], str], ...] = (
    date.isoformat,
    lambda day: day.strftime("%Y%m%d"),
    lambda day: "{}-W{:02}-{}".format(*day.isocalendar()),
    lambda day: "{}W{:02}{}".format(*day.isocalendar()),
    lambda day: day.strftime("%Y-%j"),
    lambda day: day.strftime("%Y%j"),
)
CLOCKS = ("%H:%M:%S", "%H:%M", "%H%M%S", "%H%M", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M:%S.%f123", "%H")
BLANKS = ("", " ", "\t", "  ", "\u00a0")
JUNK = (
    "2019-02-30",
    "2019-13-01",
    "2019-366",
    "2019-000",
    "2019-W53-1",
    "2019-W00-1",
    "2019-W01-8",
    "2019-02",
    "x",
    "",
)
JUNK += (
    "2019-02-05T24:01",
    "2019-02-05T10:60",
    "2019-02-05T25:00",
    "2019-02-05T10:00+2",
    "2019-02-05Z2",
    "2019-02-05T",
)


def offset_text(offset: timedelta, form: int) -> str:
    sign, minutes = "-" if offset < timedelta(0) else "+", abs(offset) // timedelta(minutes=1)
    hours, rest = divmod(minutes, 60)
    forms = [f"{sign}{hours:02}:{rest:02}", f"{sign}{hours:02}{rest:02}"]
    return [*forms, f"{sign}{hours:02}" if not rest else forms[0], "Z" if not offset else forms[0]][form]


moments = st.datetimes(datetime(2018, 12, 20), datetime(2020, 1, 20)).map(lambda at: at.replace(tzinfo=UTC))
# Around changes of clocks and ends of days, where rules matter.
near = st.sampled_from(
    [datetime(2019, 3, 31, tzinfo=UTC), datetime(2019, 10, 27, tzinfo=UTC), datetime(2019, 11, 3, tzinfo=UTC)]
)
instants = moments | st.builds(lambda at, minutes: at + timedelta(minutes=minutes), near, st.integers(-1600, 1600))


@st.composite
def dated_texts(draw: Any, zone: str) -> tuple[str, date | None]:
    """A text and the local day that it means, None for no day."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(JUNK)), None
    instant, before, after = draw(instants), draw(st.sampled_from(BLANKS)), draw(st.sampled_from(BLANKS))
    date_of, clock = draw(st.sampled_from(DATES)), draw(st.sampled_from(CLOCKS))
    kind = draw(st.sampled_from(["day", "day with zone", "wall clock", "end of day", "instant"]))
    between = draw(st.sampled_from(["T", "t", " "]))
    if kind == "instant":
        offset = draw(st.sampled_from(OFFSETS))
        if clock == "%H":  # a whole hour where it is stated
            instant = instant.replace(minute=0, second=0, microsecond=0) + offset % timedelta(hours=1)
        elif "%S" not in clock:
            instant = instant.replace(second=0, microsecond=0)
        there = instant.astimezone(timezone(offset))
        text = f"{date_of(there.date())}{between}{there.strftime(clock)}"
        text += draw(st.sampled_from(["", " "])) + offset_text(offset, draw(st.integers(0, 3)))
        return before + text + after, local_day(instant, zone)
    wall = instant.replace(tzinfo=None)
    text = {
        "day": date_of(wall.date()),
        "day with zone": date_of(wall.date()) + draw(st.sampled_from(["Z", "+02:00", "-08:00"])),
        "wall clock": f"{date_of(wall.date())}{between}{wall.strftime(clock)}",
        "end of day": f"{date_of(wall.date())}{between}{draw(st.sampled_from(['24:00', '240000', '24:00:00.0']))}",
    }[kind]
    return before + text + after, wall.date() + timedelta(days=kind == "end of day")


@given(
    st.data(),
    st.sampled_from(ZONES),
    st.sampled_from(["csv", "parquet", "duckdb", "arrow", "polars", "pandas", "duck"]),
)
@examples(40)
def test_text_in_any_form_of_iso_8601_counts_on_its_local_day(data: Any, zone: str, kind: str) -> None:
    texts = data.draw(st.lists(dated_texts(zone), min_size=1, max_size=30))
    column, days = pa.array([text for text, _ in texts]), [day for _, day in texts]
    assert counted(column, kind, zone) == by_day(days)
    week = data.draw(st.sampled_from([FIRST, date(2019, 3, 25), date(2019, 10, 28), date(2019, 11, 4)]))
    here = [day for day in days if day is not None and week <= day < week + timedelta(days=7)]
    assert counted(column, kind, zone, at=f"{week}") == by_day(list(here))
    assert counted(column, kind, zone, at=f"{week}", apart=True) == by_day(list(here))


TYPES = {
    "instants": pa.timestamp("us", "UTC"),
    "instants in nanoseconds": pa.timestamp("ns", "UTC"),
    "wall clock": pa.timestamp("us"),
    "wall clock in nanoseconds": pa.timestamp("ns"),
    "days": pa.date32(),
}


@given(
    st.lists(instants | st.none(), min_size=1, max_size=30),
    st.sampled_from(ZONES),
    st.sampled_from(sorted(TYPES)),
    st.data(),
)
@examples(40)
def test_times_of_every_type_count_on_their_local_day(
    rows: list[datetime | None], zone: str, name: str, data: Any
) -> None:
    kind = data.draw(st.sampled_from(["parquet", "duckdb", "arrow", "polars", "pandas", "duck"]))
    kind = "parquet" if kind == "pandas" and name == "days" else kind  # pandas makes them objects, and so text
    zoned = name.startswith("instants")
    values = [at if zoned or at is None else at.replace(tzinfo=None) for at in rows]
    days = [at and (local_day(at, zone) if zoned else at.date()) for at in values]
    column = pa.array([at and at.date() for at in values] if name == "days" else values, TYPES[name])
    assert counted(column, kind, zone, axes=[DAYS]) == by_day(days)
    here = [day for day in days if day is not None and date(2019, 10, 28) <= day < date(2019, 11, 4)]
    for apart in (False, True):
        assert counted(column, kind, zone, at="2019-10-28", apart=apart, axes=[DAYS]) == by_day(list(here))


DAYS = {"column": "day", "calendar": "day", "start": f"{FIRST}", "stop": f"{LAST}"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
@pytest.mark.parametrize(
    "text",
    [
        *("2019-02-05 ", "2019-02-05\t", "2019-02-05 10:00:00 +0000", "2019-02-05Z", "2019-02-05T10.5Z"),
        *("2019-02-05T23:59:60Z", "2019-02-05T10:30,5", "2019-02-05T10:00\u221202:00", "2019/02/05", "2019-2-5"),
        "2019-02-05 10:00:00 Europe/Brussels",
    ],
)
def test_forms_that_were_in_no_period_are_read(text: str, kind: str) -> None:
    assert counted(pa.array([text]), kind, "UTC", at="2019-02-04") == by_day([date(2019, 2, 5)])


def test_a_date_with_a_zone_and_no_time_is_that_day_everywhere() -> None:
    assert counted(pa.array(["2019-02-05Z"]), "csv", "America/New_York") == by_day([date(2019, 2, 5)])


def test_a_servers_own_dates_are_text_of_a_declared_form() -> None:
    made = ReleaseSpec.from_attributes(
        {**spec("rows.parquet", "UTC"), "period": "week", "period_column": "day", "axes": [DAYS]}, Path("/srv/office")
    )
    plan = plan_of(made, made.period_named("2019-02-04"), will_charge=True)
    text = OpenedSource({"day": "VARCHAR"}, "", {})
    with pytest.raises(ColumnRefused, match="is text, and the spec does not say how its dates are written"):
        ingest._check_types(plan, text)
    ingest._check_types(replace(plan, undeclared_dates={}), text)  # of a charge that was made
    ingest._check_types(plan, replace(text, server_times={"day": "DATE"}))
    with pytest.raises(ColumnRefused, match="has type DATE, which needs no `period_format`"):
        ingest._check_types(replace(plan, period_format="%Y"), replace(text, server_times={"day": "DATE"}))


def test_a_table_of_a_server_names_its_columns_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"patient": "text", "day": "date", "at": "timestamptz", "born": "timestamp"}
    rows = [("r", "UTF8", name, kind, "") for name, kind in kinds.items()]
    monkeypatch.setattr(databases, "query_rows", lambda *given: rows)
    with duckdb.connect() as connection:
        opened = databases.open_server_table(connection, "visits", "postgres:office")
    assert opened.server_times == {"day": "DATE", "at": "TIMESTAMPTZ", "born": "TIMESTAMP"}
    assert set(opened.types.values()) == {"VARCHAR"}


@pytest.mark.parametrize("name", ["iso", "trimmed", "year"])
def test_a_column_may_have_any_name(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT '2019-02-05Z ' AS {name}")
        sql = wall_clock(name, "VARCHAR")
        for source in (name, f"(SELECT * FROM {name})"):
            assert connection.sql(f"SELECT {sql} FROM {source}").fetchall() == [(datetime(2019, 2, 5),)]


def test_a_pattern_takes_blanks_around_a_date_too() -> None:
    column = pa.array(["05.02.2019\u00a0", "\t05.02.2019 ", "05.02.2019"])
    axes = [{**DAYS, "format": "%d.%m.%Y"}]
    assert counted(column, "csv", "UTC", axes=axes) == by_day([date(2019, 2, 5)] * 3)


def test_an_hour_that_clocks_show_twice_counts_for_the_day_that_they_show() -> None:
    """At 00:01 of 29 October 2006, clocks of St. John's were put back to 23:01 of the day before."""
    first = datetime(2006, 10, 29, 2, 30, 30, tzinfo=UTC)  # 00:00:30 on Sunday
    column = pa.array([first, first + timedelta(minutes=31), first + timedelta(minutes=61)], pa.timestamp("us", "UTC"))
    axes = [{**DAYS, "start": "2006-10-28", "stop": "2006-10-30"}]
    assert counted(column, "parquet", "America/St_Johns", axes=axes) == [1, 2]
    weeks = {"week_starts": "sunday", "axes": axes}
    assert counted(column, "parquet", "America/St_Johns", at="2006-10-22", **weeks) == [1, 0]
    assert counted(column, "parquet", "America/St_Johns", at="2006-10-29", **weeks) == [0, 2]


def test_a_day_that_a_zone_left_out_is_still_a_day_in_text() -> None:
    axes = [{**DAYS, "start": "2011-12-29", "stop": "2012-01-01", "format": "iso"}]
    assert counted(pa.array(["2011-12-30"]), "csv", "Pacific/Apia", axes=axes) == [0, 1, 0]

"""Where Python's zone data and DuckDB's differ, records are counted by one of them, and people are told."""

from __future__ import annotations

import struct
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from office import Office
from test_local_days import DAYS, counted

from dphist_pipeline.base.zone_data import spans_of, zone_data_version, zone_difference
from dphist_pipeline.confidential.engines._spark_columns import Columns
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

ZONE = "Europe/Brussels"
MONDAY = datetime(2026, 2, 1, 23, 30, tzinfo=UTC)  # 00:30 on 2 February by DuckDB, the day before by the shifted rules


@pytest.fixture
def shifted(tmp_path: Path) -> Iterator[None]:
    """Python takes Brussels for a place on UTC, whichever versions are installed."""
    before, folder = zoneinfo.TZPATH, tmp_path / "zoneinfo"
    (folder / "Europe").mkdir(parents=True)
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    (folder / ZONE).write_bytes(b"TZif" + bytes(16) + counts + struct.pack(">lbb", 0, 0, 0) + b"AAA\0")
    (folder / "tzdata.zi").write_text("# version 1999z\n# comment\n", encoding="ascii")
    zoneinfo.reset_tzpath([folder])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(before)
    zoneinfo.ZoneInfo.clear_cache()


DAYS_AROUND = {**DAYS, "start": "2026-02-01", "stop": "2026-02-10"}
WEEK: dict[str, Any] = {"axes": [{**DAYS_AROUND, "format": "iso"}], "at": "2026-02-02"}
WEEK_OF_TIMES: dict[str, Any] = {"axes": [DAYS_AROUND], "at": "2026-02-02"}
A_DAY_EACH = [0, *[1] * 7, 0]


@pytest.mark.usefixtures("shifted")
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_text_dates_count_in_their_own_week_whatever_zone_data_python_has(kind: str) -> None:
    days = [f"{date(2026, 1, 31) + timedelta(days=day)}" for day in range(11)]
    assert counted(pa.array(days), kind, ZONE, **WEEK) == A_DAY_EACH
    assert counted(pa.array([f"{day}T00:30:00+01:00" for day in days]), kind, ZONE, **WEEK) == A_DAY_EACH


@pytest.mark.usefixtures("shifted")
@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_week_and_day_of_a_row_agree_for_every_type(kind: pa.DataType) -> None:
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    first = MONDAY - timedelta(days=2) if zoned else datetime(2026, 1, 31, 0, 30)
    rows = [first + timedelta(days=day) for day in range(11)]
    column = pa.array([row.date() for row in rows] if pa.types.is_date(kind) else rows, kind)
    assert counted(column, "parquet", ZONE, **WEEK_OF_TIMES) == A_DAY_EACH


@pytest.mark.usefixtures("shifted")
def test_a_difference_is_told_with_its_first_instant_and_both_offsets() -> None:
    found = zone_difference(ZONE, datetime(2026, 1, 1, 12, 10, tzinfo=UTC))
    assert found is not None and (found.python, found.duckdb) == (0, 3600)
    assert found.instant == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert "(1999z)" in found.says and "from 2026-01-01 12:00 UTC on: UTC+00:00 and UTC+01:00" in found.says
    assert zone_difference("UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None


def test_zones_that_both_know_alike_differ_nowhere() -> None:
    for zone in ("Europe/Brussels", "Australia/Lord_Howe", "Asia/Kolkata"):
        assert zone_difference(zone, datetime(2019, 1, 1, tzinfo=UTC)) is None
    assert zone_data_version("Europe/Brussels")


@pytest.mark.usefixtures("shifted")
def test_check_doctor_and_audit_tell_zone_data(office: Office) -> None:
    office.opened()
    office.write_spec(time_zone=ZONE)
    assert "the zone data of Python (1999z) and of DuckDB differ" in " ".join(
        office.run("check", "spec.yaml", "--json").json["warnings"]
    ).replace("The zone", "the zone")
    audit = Path(office.release("--json").json["path"], "audit.json").read_text(encoding="utf-8")
    assert '"python": "1999z"' in audit and f'"duckdb": "of DuckDB {duckdb.__version__}"' in audit
    found = {one["check"]: one for one in office.run("doctor", "--json", "--store", office.store).json["checks"]}
    assert found["zone_data"]["state"] == "warning" and ZONE in found["zone_data"]["seen"]
    assert "tzdata" in found["zone_data"]["mend"]


def test_a_release_in_utc_needs_no_zone_data(office: Office) -> None:
    office.opened()
    office.released()
    found = {one["check"]: one for one in office.run("doctor", "--json", "--store", office.store).json["checks"]}
    assert found["zone_data"]["state"] == "ok"


@pytest.mark.parametrize(
    ("zone", "start", "end"),
    [
        ("America/St_Johns", datetime(2006, 10, 23), datetime(2006, 10, 29)),  # clocks are put back over the end
        ("America/St_Johns", datetime(2006, 10, 29), datetime(2006, 11, 5)),
        ("America/Havana", datetime(2019, 3, 10), datetime(2019, 3, 17)),  # midnight is left out
        ("Pacific/Apia", datetime(2011, 12, 26), datetime(2012, 1, 2)),  # a day is left out
        ("UTC", datetime(2026, 1, 1), datetime(2026, 4, 1)),
    ],
)
def test_spans_of_instants_hold_what_clocks_show_within_the_ends(zone: str, start: datetime, end: datetime) -> None:
    spans = spans_of(zone, start, end)
    first, last = (int((moment - datetime(1970, 1, 1)).total_seconds()) for moment in (start, end))
    local = f"epoch(timezone('{zone}', make_timestamptz(instant * 1000000)))"
    rows = duckdb.sql(
        f"SELECT instant, {local} >= {first} AND {local} < {last} "
        f"FROM (SELECT unnest(range({first - 100_000}, {last + 100_000}, 17)) AS instant)"
    ).fetchall()
    assert all(inside == any(low <= instant < high for low, high in spans) for instant, inside in rows)


@pytest.mark.usefixtures("shifted")
def test_spark_compares_instants_with_spans_by_the_zone_data_of_duckdb(tmp_path: Path) -> None:
    fields = {"source": "rows.parquet", "privacy_unit": "row", "neighbours": "add_remove", "epsilon": 1, "account": "a"}
    fields |= {"release": "r", "mechanism": "geometric", "axes": [{"column": "ward", "values": ["a"]}]}
    fields |= {"period": "week", "period_column": "day", "time_zone": ZONE}
    made = ReleaseSpec.from_attributes(fields, tmp_path)
    plan = plan_of(made, made.period_named("2026-02-02"))
    first = int(datetime(2026, 2, 1, 23, tzinfo=UTC).timestamp()) * 1_000_000
    assert f">= {first}L" in Columns(plan, {"day": "timestamp"}).in_period
    assert f">= {first + 3_600_000_000}L" in Columns(plan, {"day": "timestamp_ntz"}).in_period

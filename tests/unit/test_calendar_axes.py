"""Calendar axes: which days a spec declares, and where the rows of real clocks are counted."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_scenario import spec

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of


def axis(**fields):
    return spec(axes=[{"column": "day", **fields}]).domain.axes[0]


@pytest.mark.parametrize(
    ("unit", "start", "stop", "bins"),
    [
        ("day", "2024-02-28", "2024-03-02", 3),
        ("day", "2025-02-28", "2025-03-02", 2),
        ("week", "2020-12-28", "2021-01-11", 2),
        ("week", "2026-01-04", "2027-01-03", 52),
        ("month", "2026-01-01", "2027-01-01", 12),
        ("quarter", "2026-02-01", "2027-02-01", 4),
        ("year", "2024-04-01", "2027-04-01", 3),
    ],
)
def test_bins_are_units_of_the_calendar(unit, start, stop, bins):
    found = axis(calendar=unit, start=start, stop=stop)
    assert found.bins == bins
    assert [found.first_days[0], found.first_days[-1]] == [date.fromisoformat(start), date.fromisoformat(stop)]


def test_months_are_as_long_as_they_are():
    found = axis(calendar="month", start="2024-01-01", stop="2024-04-01")
    assert np.array_equal(np.diff(found.edges), [31, 29, 31])


def test_an_audit_describes_a_calendar_axis():
    made = spec(
        axes=[{"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02", "other": True}]
    )
    assert domain_of(made.as_json()["axes"]) == made.domain
    assert made.domain.shape == (5,)


@given(st.dates(date(1000, 1, 1), date(9000, 12, 1)), st.integers(1, 40))
def test_the_days_of_an_axis_come_back(start, days):
    stop = start + timedelta(days=days)
    found = axis(calendar="day", start=start.isoformat(), stop=stop.isoformat())
    assert found.first_days == tuple(start + timedelta(days=number) for number in range(days + 1))


def counted(folder, column, time_zone="UTC", **fields):
    """Rows of each bin, `other` last, of a column of moments, each row another person."""
    pq.write_table(pa.table({"day": column}), folder / "rows.parquet")
    attributes = {
        **{"release": "visits", "source": "rows.parquet", "privacy_unit": "row", "neighbours": "add_remove"},
        **{"epsilon": 1, "account": "health", "mechanism": "geometric", "time_zone": time_zone},
        "axes": [{"column": "day", "other": True, **fields}],
    }
    made = ReleaseSpec.from_attributes(attributes, folder)
    run = folder / "run"
    run.mkdir()
    return read_and_count(plan_of(made, made.period_named("all")), run).tolist()


DAYS = {"calendar": "day", "start": "2026-03-28", "stop": "2026-03-31"}


@pytest.mark.parametrize(
    ("column", "counts"),
    [
        (pa.array(["2026-03-28", "2026-03-29 23:59", "29/03/2026", None, "2026-03-31"]), [1, 1, 0, 3]),
        (pa.array([date(2026, 3, 30), date(1, 1, 1), date(9999, 12, 31)]), [0, 0, 1, 2]),
        (pa.array([datetime(2026, 3, 29, 2, 30)]), [0, 1, 0, 0]),
        (pa.array([datetime(2026, 3, 27, 23, 30, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)]), [1, 0, 1, 0]),
        (pa.array(["2026-03-29T22:00:00Z", "2026-03-29T22:00:00+02:00", "infinity", "epoch"]), [0, 1, 1, 2]),
    ],
    ids=["text", "dates", "local time that clocks skip", "moments", "text with offsets"],
)
def test_a_row_counts_on_its_local_day(tmp_path, column, counts):
    assert counted(tmp_path, column, "Europe/Paris", **DAYS) == counts


def test_text_may_be_written_as_declared(tmp_path):
    column = pa.array(["28/03/2026", "29.03.2026", "2026-03-28", "31/02/2026", None])
    assert counted(tmp_path, column, **DAYS, format="%d/%m/%Y") == [1, 0, 0, 4]


def test_a_format_for_what_is_no_text_is_refused(tmp_path):
    from dphist_pipeline.confidential.reading.source import ColumnRefused

    with pytest.raises(ColumnRefused, match="needs no `format`"):
        counted(tmp_path, pa.array([date(2026, 3, 28)]), **DAYS, format="%d/%m/%Y")


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "UTC"])
def test_every_hour_of_a_real_clock_counts_once(tmp_path, zone):
    # Clocks here skip midnight, or a whole day, somewhere in these years.
    start, hours = datetime(2011, 12, 1, tzinfo=UTC), 24 * 60
    moments = [start + timedelta(hours=number) for number in range(hours)]
    counts = counted(tmp_path, pa.array(moments), zone, calendar="day", start="2011-12-01", stop="2012-01-20")
    local = [moment.astimezone(ZoneInfo(zone)).date() for moment in moments]
    days = [date(2011, 12, 1) + timedelta(days=number) for number in range(50)]
    assert counts[:-1] == [local.count(day) for day in days]
    assert sum(counts) == hours


def test_the_last_week_of_a_long_year_is_a_week(tmp_path):
    column = pa.array([date(2020, 12, 27), date(2020, 12, 28), date(2021, 1, 3), date(2021, 1, 4)])
    weeks = {"calendar": "week", "start": "2020-12-21", "stop": "2021-01-11"}
    assert counted(tmp_path, column, **weeks) == [1, 2, 1, 0]

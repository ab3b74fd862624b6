"""What staging says of a row's values: declared, nothing that parses, or undeclared; and which rows it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

DECLARED, UNPARSED, UNDECLARED = 0, 1, 2
SPEC: dict[str, Any] = {
    "release": "marks",
    "source": "rows.parquet",
    "privacy_unit": "patient",
    "max_rows_per_unit": 1,
    "neighbours": "add_remove",
    "epsilon": 50,
    "account": "tests",
    "mechanism": "geometric",
    "quality": {"share": "1/2"},
}
AGE = {"column": "value", "start": 0, "stop": 100, "width": 25}
LONG = {"column": "value", "start": 0, "stop": 5000, "width": 1}  # places are guessed, not searched
WARD = {"column": "value", "values": ["surgery", "medicine"]}
DAY = {"column": "value", "calendar": "day", "start": "2026-01-05", "stop": "2026-01-07"}
NUMBERS = {"3": 0, "99.5": 0, "-1": 2, "5000": 2, None: 1, "": 1, "nan": 1, "twelve": 1, "1e400": 2}
WARDS = {"surgery": 0, "Surgery": 2, "": 2, None: 1, "a" * 3000: 2}
DAYS = {"2026-01-05": 0, "2026-01-09": 2, "2025-01-01": 2, "the 5th": 1, None: 1}


def staged(folder: Path, columns: dict[str, list[Any]], **changes: Any) -> list[dict[str, Any]]:
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    spec = ReleaseSpec.from_attributes({**SPEC, **changes}, folder)
    return pq.read_table(stage_rows(plan_of(spec, spec.period_named("all")), folder)).to_pylist()


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize(
    ("axis", "values"),
    [(AGE, NUMBERS), (LONG, NUMBERS), (WARD, WARDS), (DAY, DAYS)],
    ids=["age", "long", "ward", "day"],
)
def test_a_mark_tells_what_a_value_is(
    tmp_path: Path, axis: dict[str, Any], values: dict[Any, int], other: bool
) -> None:
    columns: dict[str, list[Any]] = {"patient": list(range(len(values))), "value": list(values)}
    rows = staged(tmp_path, columns, axes=[{**axis, "other": other}])
    assert {columns["value"][row["unit"]]: row["marks"] for row in rows} == values
    assert all((row["code"] is None) == (row["marks"] > 0 and not other) for row in rows)


def test_open_ends_leave_no_number_undeclared(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"patient": [1, 2, 3], "value": [-1.0, 101.0, float("nan")]}
    rows = staged(tmp_path, columns, axes=[{**AGE, "below": True, "above": True}])
    assert [row["marks"] for row in sorted(rows, key=lambda row: row["unit"])] == [DECLARED, DECLARED, UNPARSED]


def test_the_marks_of_several_axes_are_digits_to_base_3(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"patient": [1], "age": [None], "ward": ["x"], "kind": ["y"]}
    axes = [{**AGE, "column": "age"}, {**WARD, "column": "ward"}, {**WARD, "column": "kind", "other": True}]
    (row,) = staged(tmp_path, columns, axes=axes)
    assert row["marks"] == UNPARSED + 3 * UNDECLARED + 9 * UNDECLARED


def test_rows_without_a_unit_or_of_other_periods_are_not_staged(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "patient": [1, None, 3, 4],
        "value": ["x"] * 4,
        "on": ["2026-01-01", "2026-01-01", "2025-12-31", "nowhen"],
    }
    spec = ReleaseSpec.from_attributes({**SPEC, "axes": [WARD], "period": "year", "period_column": "on"}, tmp_path)
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = pq.read_table(stage_rows(plan_of(spec, spec.period_named("2026-01-01")), tmp_path))
    assert rows["unit"].to_pylist() == [1]


def test_without_a_quality_table_staging_holds_what_it_held(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"patient": [1, 2], "value": ["surgery", None]}
    assert staged(tmp_path, columns, axes=[WARD], quality=None) == [{"code": 0, "unit": 1}]

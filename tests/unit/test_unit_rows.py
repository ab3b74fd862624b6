"""What is derived of a unit's own rows: equal to a plain definition, and the same whatever stands beside them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_scenario import spec

from dphist_pipeline.confidential import _unit_rows as unit_rows
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import examples

WARDS, SMALL = ["surgery", "medicine"], [1, 2, 4]
WARD = {"column": "ward", "values": WARDS}
CODE = {"column": "code", "values": ["a", "b"], "other": True}
BINS = {"start": 1, "stop": 4, "width": 1}
AXES: dict[str, dict[str, Any]] = {
    "visit": {"name": "visit", "of_unit": "number", "within": "period", **BINS, "above": True},
    "recent": {"name": "recent", "of_unit": "number", "within": "3 days", "edges": [1, 2, 4]},
    "gap": {"name": "gap", "of_unit": "days_since", "within": "4 days", "edges": [0, 2, 5], "other": True},
    "new": {"name": "new", "of_unit": "is_new", "of": "ward", "within": "5 days"},
    "newly": {"name": "newly", "of_unit": "is_new", "of": CODE, "within": "period"},
    "first": {"name": "first", "of_unit": "first_value", "of": CODE},
    "latest": {"name": "latest", "of_unit": "last_value", "of": "ward"},
    "visits": {"name": "visits", "of_unit": "count", **BINS, "above": True},
}
ALL_ROWS = [name for name in AXES if name not in ("latest", "visits")]
PERIOD = "2026-03-02"
MONDAY = datetime(2026, 3, 2)
Row = tuple[str | None, datetime | None, str | None, str | None]

moments = st.builds(
    lambda hours: MONDAY + timedelta(hours=hours), st.integers(-24 * 7, 24 * 8) | st.sampled_from([0, 12, 24, 36, 36])
)
rows_of_units = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cid", "dee", None]),
        moments | st.none(),
        st.sampled_from([*WARDS, "x", None]),
        st.sampled_from(["a", "b", "y", None]),
    ),
    max_size=40,
)


def declared(names: list[str], take: str = "all", **changes: Any) -> ReleaseSpec:
    bound = {} if take == "all" else {"take": take, "max_rows_per_unit": 1}
    columns = {
        "source": "rows.parquet",
        "privacy_unit": "unit",
        "period_column": "at",
        "axes": [WARD, *map(AXES.get, names)],
    }
    return spec(**columns, **bound, **changes)


def derived(declared_spec: ReleaseSpec, rows: list[Row], kind: str = "parquet") -> Counter[tuple[Any, ...]]:
    """The staged rows of a period: unit, code and, with a quality table, marks."""
    table = pa.table(
        [list(column) for column in zip(*rows, strict=True)] or [[]] * 4,
        schema=pa.schema(
            [("unit", pa.string()), ("at", pa.timestamp("us")), ("ward", pa.string()), ("code", pa.string())]
        ),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "csv":
            texts = table.to_pandas() if False else table.to_pylist()
            lines = [",".join("" if row[key] is None else str(row[key]) for key in table.column_names) for row in texts]
            (folder / "rows.csv").write_text("\n".join([",".join(table.column_names), *lines]) + "\n")
        else:
            pq.write_table(table, folder / "rows.parquet", row_group_size=5)
        based = ReleaseSpec.from_attributes({**fields(declared_spec), "source": f"rows.{kind}"}, folder)
        staged = stage_rows(plan_of(based, based.period_named(PERIOD)), folder)
        return Counter(pl.read_parquet(staged).rows())


WRITTEN: dict[int, dict[str, Any]] = {}


def fields(one: ReleaseSpec) -> dict[str, Any]:
    facts = one.model_dump(mode="python", include={"release", "neighbours", "account", "mechanism", "take", "quality"})
    axes = [{**axis.normalised()} for axis in one.axes]
    facts |= {"axes": axes, "epsilon": "1/2", "privacy_unit": "unit", "period": "week", "period_column": "at"}
    facts |= {"max_rows_per_unit": one.max_rows_per_unit, "period_format": "iso"}
    if one.quality is not None:
        facts["quality"] = {"rows": one.quality.rows}
    return {name: value for name, value in facts.items() if value is not None}


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    with patch.object(unit_rows, "BATCH_ROWS", rows):
        yield


def place(values: list[str], value: str | None) -> int:
    return values.index(value) if value in values else len(values)


def plainly(names: list[str], take: str, rows: list[Row]) -> Counter[tuple[Any, ...]]:
    """Unit and code of the rows of the period, by the definitions, row by row."""
    found: Counter[tuple[Any, ...]] = Counter()
    for unit in {row[0] for row in rows} - {None}:
        own = [(at, place(WARDS, ward), place(["a", "b"], code)) for who, at, ward, code in rows if who == unit and at]
        used = ["code" in str(AXES[name].get("of")) for name in names]
        own = sorted((at, ward, code if any(used) else 0) for at, ward, code in own)
        inside = [row for row in own if MONDAY <= row[0] < MONDAY + timedelta(days=7)]
        own = [row for row in own if row[0] < MONDAY + timedelta(days=7)]
        chosen = {"all": inside, "first": inside[:1], "last": inside[-1:]}[take]
        start = len(own) - len(inside)
        numbers = {"all": range(len(inside)), "first": [0], "last": [len(inside) - 1]}[take] if inside else []
        for number in numbers:
            row = inside[number]
            assert row in chosen
            found[unit, *[value_of(name, own, start + number, inside) for name in ("ward", *names)]] += 1
    return found


def value_of(name: str, own: list[Any], at: int, inside: list[Any]) -> Any:
    """What a spec calls the cell of a row along an axis; None where it lies in none."""

    def back(days: int | None) -> list[Any]:
        first = MONDAY.date() if days is None else own[at][0].date() - timedelta(days=days)
        return [row for row in own[:at] if row[0].date() >= first]

    ward = own[at][1]
    match name:
        case "ward":
            return ward if ward < 2 else None
        case "visit":
            return min(len(back(None)), 3)
        case "recent":
            return {1: 0, 2: 1, 3: 1}.get(1 + len(back(3)))
        case "gap":
            days = (own[at][0].date() - own[at - 1][0].date()).days if back(4) else None
            return 2 if days is None else 0 if days < 2 else 1
        case "new":
            return int(ward in [row[1] for row in back(5)])
        case "newly":
            return int(own[at][2] in [row[2] for row in back(None)])
        case "first":
            return inside[0][2]
        case "latest":
            return inside[-1][1] if inside[-1][1] < 2 else None
        case "visits":
            return min(len(inside), 4) - 1
    raise AssertionError(name)


def codes(found: Counter[tuple[Any, ...]], one: ReleaseSpec) -> Counter[tuple[Any, ...]]:
    """With the cell's number in place of positions; rows that lie in no cell are left out."""
    coded: Counter[tuple[Any, ...]] = Counter()
    for (unit, *positions), times in found.items():
        if None not in positions:
            coded[unit, sum(p * stride for p, stride in zip(positions, one.domain.strides, strict=True))] += times
    return coded


each_axis = pytest.mark.parametrize(
    ("name", "take"),
    [
        *((name, "all") for name in ALL_ROWS),
        *((n, "first") for n in AXES),
        ("latest", "last"),
        ("visits", "last"),
        ("gap", "last"),
    ],
)


@each_axis
@examples(12)
@given(rows=rows_of_units)
def test_a_value_is_what_its_definition_says(name: str, take: str, rows: list[Row]) -> None:
    one = declared([name], take)
    with batches_of(7):
        assert derived(one, rows) == codes(plainly([name], take, rows), one)

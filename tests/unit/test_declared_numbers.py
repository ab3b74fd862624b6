"""Edges and categories that are numbers, in the types of columns; lengths of time; signs between thousands."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import plain_reading as plain
import pyarrow as pa
import pytest
from source_scenario import counted, refused, spec

from dphist_pipeline.base.declared_numbers import axis_for_type
from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.spec.mistakes import SpecError

TEMPERATURES = [36.6, 37.8, 37.8, 38.4, 35.0, float("nan"), float("inf"), None]
FEVER = {"column": "value", "edges": [35, "36.6", "37.8", 42], "above": True, "other": True}
STAYS = {"column": "value", "start": 0, "stop": 30, "width": 10, "above": True, "other": True}
DAYS = [datetime.timedelta(days=days) for days in (2, 12, 25, 30)]
ONE_ROW = {"privacy_unit": "row", "max_rows_per_unit": 1}


def table(values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"value": pa.array(values, kind)})


@pytest.mark.parametrize("closed", ["left", "right"])
def test_an_edge_moves_to_where_shortest_texts_pass_it_for_every_float_of_16_bits(closed: Any):
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    every = every[~np.isnan(every)]
    texts = np.array([float(str(value)) for value in every])  # doubles tell texts of floats of 16 bits apart
    for edge in (0.1, 36.6, 37.8, -0.3, 2049.0, 65504.0, 65519.0, 70000.0, -70000.0, 6e-8):
        (at,) = axis_for_type(BinnedAxis("x", "x", (edge,), closed), "FLOAT16").edges
        passed = every.astype(np.float64) >= at if closed == "left" else every.astype(np.float64) > at
        assert (passed == (texts >= edge if closed == "left" else texts > edge)).all(), edge


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_edges_of_doubles_stay_and_those_of_shorter_floats_are_floats(kind: str):
    axis = BinnedAxis("x", "x", tuple(tenth / 10 for tenth in range(430)))
    edges = axis_for_type(axis, kind).edges
    assert (edges == axis.edges) == (kind == "DOUBLE")
    width = np.float32 if kind == "FLOAT" else np.float64
    assert all(float(width(edge)) == edge for edge in edges)


@pytest.mark.parametrize("source", plain.SOURCES)
def test_a_float_at_an_edge_lies_above_it_whatever_wrote_it(source: str):
    assert plain.SOURCES[source](table(TEMPERATURES, pa.float32()), FEVER) == [1, 1, 3, 1, 2]


@pytest.mark.parametrize("source", plain.SOURCES)
def test_lengths_of_time_need_a_unit_whatever_wrote_them(source: str):
    stays = table([*DAYS, None], pa.duration("us"))
    assert plain.SOURCES[source](stays, {**STAYS, "unit": "days"}) == [1, 1, 1, 1, 1]
    assert "has type" in (said := str(plain.SOURCES[source](stays, STAYS))) and "write `unit: days`" in said


def test_an_interval_with_months_is_of_no_length(tmp_path: Path):
    import duckdb

    rows = "SELECT unnest([INTERVAL 2 DAYS, INTERVAL 1 MONTH, INTERVAL 240 HOURS, NULL]) AS value"
    duckdb.execute(f"COPY ({rows}) TO '{tmp_path / 'rows.parquet'}'")
    file = (tmp_path / "rows.parquet").read_bytes()
    axis = {**STAYS, "unit": "days"}
    assert counted({"rows.parquet": file}, axes=[axis], **ONE_ROW) == [1, 1, 0, 0, 2]
    assert plain.counted(tmp_path, axis, duckdb.sql(rows), source="frame:rows") == [1, 1, 0, 0, 2]


def test_a_length_of_time_at_a_closed_end_belongs_to_the_bin_that_it_ends():
    axis, ten = {**STAYS, "closed": "right", "unit": "days"}, datetime.timedelta(days=10)
    stays = table([ten, ten + datetime.timedelta(microseconds=1), 3 * ten], pa.duration("us"))
    assert counted({"a.parquet": stays}, axes=[axis], **ONE_ROW) == [1, 1, 1, 0, 0]


def test_a_unit_is_for_lengths_of_time_alone():
    assert "remove `unit`" in refused(
        {"a.parquet": table([1.5])}, ColumnRefused, axes=[{**STAYS, "unit": "days"}], **ONE_ROW
    )
    text = {"a.csv": b"value,last\n1.5,\n"}
    assert "remove `unit`" in refused(text, ColumnRefused, source="*.csv", axes=[{**STAYS, "unit": "days"}], **ONE_ROW)


def test_new_fields_are_absent_from_digests_at_their_defaults(tmp_path: Path):
    digest = "31d65e8224fc31b2559e77f4d17535e550f35a9fd9c39d368c5d26fc0ccfe6c8"  # of the version before these fields
    assert (
        spec(tmp_path, axes=[STAYS]).digest
        == spec(tmp_path, axes=[{**STAYS, "unit": None}], thousands=None).digest
        == digest
    )
    assert spec(tmp_path, axes=[{**STAYS, "unit": "days"}]).digest != digest != spec(tmp_path, thousands="'").digest
    with pytest.raises(SpecError, match="are more than 36,000 years"):
        spec(tmp_path, axes=[{**STAYS, "stop": 10**9, "width": 10**9, "unit": "days"}])


UUIDS = ["0e8f1b3e-0000-4000-8000-000000000001"]
REFUSED: dict[str, tuple[pa.Table, list[str], str]] = {
    "a zero before": (table([1]), ["01", "2"], "has type BIGINT, whose values never match '01' (write '1')"),
    "a zero before, as floats": (table([1.0, None]), ["01", "2"], "'01' (write '1')"),
    "yes": (table([True]), ["yes", "no"], "has type BOOLEAN, whose values never match 'yes' (write 'true'), 'no'"),
    "a day": (table([datetime.date(2026, 1, 5)]), ["05/01/2026"], "(write '2026-01-05' or '2026-05-01')"),
    "digits": (table([0.5], pa.float32()), ["0.123456789", "1"], "'0.123456789' (write '0.12345679')"),
    "words": (table([Decimal("1.5")]), ["surgery"], "whose values are never 'surgery'"),
    "one number": (table([1.5]), ["1", "1.0"], "has type DOUBLE, in which '1' and '1.0' are one number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_categories_that_a_type_never_matches_are_refused_with_what_matches(case: str):
    records, values, said = REFUSED[case]
    axis = {"column": "value", "values": values, "other": True}
    assert said in refused({"a.parquet": records}, ColumnRefused, axes=[axis], **ONE_ROW)


def test_a_spelling_that_matches_serves_a_category_that_does_not():
    axis = {"column": "value", "values": ["male", "female"], "spellings": {"1": "male", "2": "female"}, "other": True}
    assert counted({"a.parquet": table([1, 2, 2, 3])}, axes=[axis], **ONE_ROW) == [1, 2, 1]
    axis = {"column": "value", "values": ["1", "unknown"], "other": True}
    assert counted({"a.parquet": table([1, 2, 2, 3])}, axes=[axis], **ONE_ROW) == [1, 0, 3]


def test_infinite_floats_and_both_zeros_are_categories():
    axis = {"column": "value", "values": ["nan", "inf", "-inf", "0", "1e20"], "other": True}
    values = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e20, None]
    assert counted({"a.parquet": table(values)}, axes=[axis], **ONE_ROW) == [1, 1, 1, 2, 1, 1]


def test_rows_alone_have_the_same_cells(monkeypatch: pytest.MonkeyPatch):
    cases: list[tuple[pa.Table, dict[str, Any]]] = [
        (table(TEMPERATURES, pa.float32()), FEVER),
        (table([None if value is None else np.float16(value) for value in TEMPERATURES], pa.float16()), FEVER),
        (table([Decimal("37.79999999999999999999"), Decimal("37.8")], pa.decimal128(38, 20)), FEVER),
        (table([*DAYS, None], pa.duration("ns")), {**STAYS, "unit": "days"}),
        (table([1.0, 2.0, None]), {"column": "value", "values": ["1", "2"], "other": True}),
    ]
    together = [counted({"a.parquet": records}, axes=[axis], **ONE_ROW) for records, axis in cases]
    monkeypatch.setattr(ingest, "_staged_at_once", lambda *_: False)
    assert [counted({"a.parquet": records}, axes=[axis], **ONE_ROW) for records, axis in cases] == together
    assert together[2] == [0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("fields", "texts", "expected"),
    [
        (
            {"thousands": ".", "decimal_comma": True},
            ["950", "1.250", " 2.750,5 ", "3100", "1.25", "1.2500", ""],
            [1, 1, 1, 1, 3],
        ),
        ({"thousands": ","}, ["950", "1,250", "2,750.5", "+3,100", "1,25", ",250", "1e3"], [1, 2, 1, 1, 2]),
        ({"thousands": " "}, ["950", "1 250", "2\u202f750.5", "3\u00a0100", "1 25", "12 50"], [1, 1, 1, 1, 2]),
        ({"thousands": "'", "decimal_comma": True}, ["950", "1'250", "2'750,5", "3.100", "1'25"], [1, 1, 1, 0, 2]),
    ],
)
def test_a_declared_sign_stands_before_every_three_digits(fields: Any, texts: list[str], expected: list[int]):
    axis = {"column": "value", "start": 0, "stop": 4000, "width": 1000, "other": True}
    assert plain.csv(texts, axis, **fields) == expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"thousands": "."}, "needs `decimal_comma: true`"),
        ({"thousands": ",", "decimal_comma": True, "csv_delimiter": ";"}, "needs `decimal_comma: false`"),
        ({"thousands": ",", "source": "a.csv", "csv_quote": ""}, "declare `csv_quote`"),
    ],
)
def test_a_sign_that_means_two_things_is_refused(fields: Any, said: str, tmp_path: Path):
    with pytest.raises(SpecError, match=said):
        spec(tmp_path, **fields)

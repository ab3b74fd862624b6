"""Where a value lies along an axis: the declared cell, exactly, and no value that could make it fail."""

from __future__ import annotations

import datetime
import tempfile
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_engine import one_engine

from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.confidential.reading import _positions as positions
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import examples

TENTHS = {"start": 0, "stop": "0.7", "width": "0.1"}
WARDS = {"values": ["surgery", "medicine", "1", "true"], "other": True}


def spec(axis: dict[str, Any], base: Path) -> ReleaseSpec:
    attributes = {
        "release": "positions",
        "source": "rows.parquet",
        "privacy_unit": "row_number",
        "max_rows_per_unit": 1,
        "neighbours": "add_remove",
        "epsilon": 1,
        "account": "tests",
        "mechanism": "geometric",
        "axes": [{"column": "value", **axis}],
    }
    return ReleaseSpec.from_attributes(attributes, base)


def cells(axis: dict[str, Any], values: pa.Array | Sequence[Any], **writing: Any) -> list[int | None]:
    """The cell of every value; None where its row is dropped."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"row_number": np.arange(len(column)), "value": column})
        pq.write_table(table, Path(folder) / "rows.parquet", **writing)
        declared = spec(axis, Path(folder))
        with one_engine():
            rows = pq.read_table(stage_rows(plan_of(declared, declared.period_named("all")), Path(folder)))
    assert len(set(rows["unit"].to_pylist())) == rows.num_rows  # a join never repeats a row
    found = dict(zip(rows["unit"].to_pylist(), rows["code"].to_pylist(), strict=True))
    return [found.get(number) for number in range(len(column))]


def binned(axis: dict[str, Any]) -> BinnedAxis:
    (made,) = spec(axis, Path("/nowhere")).domain.axes
    assert isinstance(made, BinnedAxis)
    return made


def numpy_cells(axis: BinnedAxis, values: Sequence[float | None]) -> list[int | None]:
    """The cells by NumPy's search among the declared edges."""
    numbers = np.array(values, dtype=np.float64)
    places = np.searchsorted(axis.edges, numbers, side="right" if axis.closed == "left" else "left")
    below = 0 if axis.below else axis.other_cell
    above = axis.below + axis.bins if axis.above else axis.other_cell
    by_place = [below, *range(axis.below, axis.below + axis.bins), above]
    return [
        axis.other_cell if np.isnan(number) else by_place[place]
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
    ]


def beside(edges: Sequence[float]) -> list[float]:
    """Every edge with the doubles next to it, and the middles."""
    ends = np.array(edges)
    near = [np.nextafter(ends, -np.inf), ends, np.nextafter(ends, np.inf), (ends[:-1] + ends[1:]) / 2]
    return [*np.concatenate(near).tolist(), -np.inf, np.inf, -0.0, 5e-324, 1.7e308, -1.7e308]


flags = st.fixed_dictionaries(
    {
        "closed": st.sampled_from(["left", "right"]),
        "below": st.booleans(),
        "above": st.booleans(),
        "other": st.booleans(),
    }
)
decimals = st.decimals(-1000, 1000, places=3, allow_nan=False)
any_edges = st.lists(decimals, min_size=2, max_size=40, unique=True).map(
    lambda edges: {"edges": [str(edge) for edge in sorted(edges)]}
)
even_edges = st.builds(
    lambda start, width, bins: {"start": str(start), "stop": str(start + width * bins), "width": str(width)},
    st.decimals(-1000, 1000, places=2),
    st.decimals("0.01", 30, places=2),
    st.integers(1, 60),
)


@pytest.mark.slow
@examples(60)
@given(edges=any_edges | even_edges, ends=flags, values=st.lists(st.floats(width=64) | st.none(), max_size=20))
def test_every_number_lies_where_numpy_finds_it_among_the_edges(
    edges: dict[str, Any], ends: dict[str, Any], values: list[float | None]
):
    axis = edges | ends
    tried = [*beside(binned(axis).edges), *values, None, float("nan")]
    assert cells(axis, pa.array(tried, pa.float64())) == numpy_cells(binned(axis), tried)


@pytest.mark.slow
@examples(40)
@given(edges=even_edges, ends=flags)
def test_a_guess_put_right_finds_the_same_cells_as_a_search(edges: dict[str, Any], ends: dict[str, Any]):
    axis = edges | ends
    tried = [*beside(binned(axis).edges), None, float("nan")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "LONGEST_SEARCH", 0)
        assert len(positions.positions(binned(axis), 0).steps) == 2
        assert cells(axis, pa.array(tried, pa.float64())) == numpy_cells(binned(axis), tried)
        patch.setattr(positions, "LONGEST_LIST", 0)
        assert positions.positions(binned(axis), 0).table
        assert cells(axis, pa.array(tried, pa.float64())) == numpy_cells(binned(axis), tried)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize(
    "edges",
    [
        {"start": 0, "stop": 500, "width": "0.1"},
        {"start": "-273.15", "stop": "226.85", "width": "0.05"},
        {"start": "999999999998000", "stop": "999999999999999", "width": "0.25"},
        {"start": 0, "stop": "1/3", "width": "1/15000"},
    ],
)
def test_a_long_regular_axis_is_exact_beside_every_edge(edges: dict[str, Any], closed: str):
    axis = {**edges, "closed": closed, "below": True, "above": True, "other": True}
    assert positions.positions(binned(axis), 0).table
    tried = [*beside(binned(axis).edges), None, float("nan")]
    assert cells(axis, pa.array(tried, pa.float64())) == numpy_cells(binned(axis), tried)


def test_a_long_irregular_axis_is_searched_exactly():
    edges = np.unique(np.round(np.random.default_rng(3).lognormal(3, 2, 4200), 4))
    axis = {"edges": [repr(edge) for edge in edges.tolist()], "other": True}
    assert binned(axis).bins > 4096 and not positions.positions(binned(axis), 0).table
    tried = beside(binned(axis).edges)[::7]
    assert cells(axis, tried) == numpy_cells(binned(axis), tried)


def test_edges_that_doubles_cannot_hold_take_the_value_that_is_written_like_them():
    written = ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]
    for values in (list(map(float, written)), written, list(map(Decimal, written))):
        assert cells(TENTHS, values) == [0, 1, 2, 3, 4, 5, 6]
        assert cells({**TENTHS, "closed": "right"}, values) == [None, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
@pytest.mark.parametrize("beside", [[], [0.0], [0.0, 0.6], [0.0, None]])
def test_not_a_number_is_null_whatever_the_files_statistics_say_of_other_rows(kind: pa.DataType, beside: list[Any]):
    values = pa.array(np.array([np.nan, *(np.nan if value is None else value for value in beside)]), kind)
    axis = {**TENTHS, "below": True, "above": True, "other": True}
    assert cells(axis, values)[0] == 9
    assert cells({**axis, "other": False}, values)[0] is None


def test_text_counts_as_the_number_it_spells_and_all_other_text_as_other():
    numbers = ["0.1", " 0.1 ", "+0.1", "1e-1", "0.10", "-1", "inf", "-inf", "1e999"]
    rest = ["", " ", "abc", "nan", "NaN", "0,1", "0.1a", "0.1\0", "٣", "0" * 500 + "x", None]
    axis = {**TENTHS, "below": True, "above": True, "other": True}
    assert cells(axis, numbers)[:5] == [2] * 5
    assert cells(axis, numbers)[5:8] == [0, 8, 0]
    assert cells(axis, rest) == [9] * len(rest)


def test_categories_are_compared_as_text_letter_by_letter():
    values = ["surgery", "Surgery", "surgery ", " surgery", "surge", "", "?", "medicine", None, "sürgery"]
    assert cells(WARDS, values) == [0, 4, 4, 4, 4, 4, 4, 1, 4, 4]


def test_values_of_other_types_are_categories_by_their_text():
    day = {"values": ["2026-03-02", "1.50", "0e8f1b3e-0000-4000-8000-000000000001"], "other": True}
    assert cells(WARDS, [1, 2, None]) == [2, 4, 4]
    assert cells(WARDS, [True, False, None]) == [3, 4, 4]
    assert cells(WARDS, pa.array(["medicine", None]).dictionary_encode()) == [1, 4]
    assert cells(day, [datetime.date(2026, 3, 2), datetime.date(2026, 3, 3)]) == [0, 3]
    assert cells(day, [Decimal("1.50"), Decimal("1.51")]) == [1, 3]
    ids = pa.array([uuid.UUID("0e8f1b3e-0000-4000-8000-000000000001").bytes, None], pa.binary(16))
    assert cells(day, pa.ExtensionArray.from_storage(pa.uuid(), ids)) == [2, 3]


def test_without_other_an_undeclared_value_is_dropped():
    assert cells({**WARDS, "other": False}, ["surgery", "x", None]) == [0, None, None]
    assert cells(TENTHS, ["-0.1", "0.7", "0.65", "x", None]) == [None, None, 6, None, None]


def undecodable(*values: bytes) -> pa.Array:
    """Text of any bytes, as a careless program writes it."""
    offsets = pa.array(np.cumsum([0, *map(len, values)]), pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(b"".join(values))])


SMALLEST, LARGEST = -(2**63), 2**63 - 1
AWKWARD = {
    "double": pa.array([np.nan, -np.inf, np.inf, -0.0, 1.7e308, 5e-324, None]),
    "float": pa.array(np.array([np.nan, -np.inf, np.inf, 3.4e38, 1e-45], np.float32)),
    "half": pa.array(np.array([np.nan, np.inf, 65504], np.float16)),
    "int64": pa.array([SMALLEST, LARGEST, -1, None]),
    "uint64": pa.array([0, 2**64 - 1], pa.uint64()),
    "int8": pa.array([-128, 127], pa.int8()),
    "decimal": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None], pa.decimal128(38, 0)),
    "fraction": pa.array([Decimal("0." + "9" * 38), None], pa.decimal128(38, 38)),
    "large decimal": pa.array([Decimal("9" * 76), None], pa.decimal256(76, 0)),
    "null": pa.nulls(3),
    "text": pa.array(["", "\0", "x" * 100_000, "1e400000000", "9" * 5000, "0x1p3", "😀", None]),
    "undecodable": undecodable(b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"1\xff", b"\0\xfe", b"5"),
}
CATEGORIES_ONLY = {
    "date": pa.array([-(2**31), 2**31 - 1, -(2**31) + 1, 0], pa.int32()).view(pa.date32()),
    "boolean": pa.array([True, False, None]),
}
WRITING = [{}, {"use_dictionary": False, "compression": "none"}]


@pytest.mark.parametrize("writing", WRITING, ids=["dictionary", "plain"])
@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize(("search", "listed"), [(10, 10), (0, 10), (0, 0)], ids=["search", "guess", "join"])
def test_no_number_fails(kind: str, search: int, listed: int, writing: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(positions, "LONGEST_SEARCH", search)
    monkeypatch.setattr(positions, "LONGEST_LIST", listed)
    axis = {"start": 0, "stop": 10, "width": 1, "below": True, "above": True, "other": True}
    assert None not in cells(axis, AWKWARD[kind], **writing)


@pytest.mark.parametrize("writing", WRITING, ids=["dictionary", "plain"])
@pytest.mark.parametrize("kind", AWKWARD | CATEGORIES_ONLY)
def test_no_category_fails(kind: str, writing: dict[str, Any]):
    values = ["5", "true", "2026-01-06"]
    assert None not in cells({"values": values, "other": True}, (AWKWARD | CATEGORIES_ONLY)[kind], **writing)

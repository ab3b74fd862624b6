"""Numbers, lengths of time and codes of every type count as Python's Decimal reads them, or are refused by their type.

See `plain_reading` for kinds of columns and for sources, to which others may add.
"""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import plain_reading as plain
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from one_engine import one_engine

from examples import examples

CODES = ["1", "2.5", "0", "36.6", "0.1", "-1", "7e0", "12"]


def table(kind: plain.Kind, values: list[Any]) -> pa.Table:
    return pa.table({"value": pa.array(values, kind.type)})


def columns(kinds: dict[str, plain.Kind]) -> st.SearchStrategy[tuple[plain.Kind, list[Any]]]:
    def of_kind(name: str) -> st.SearchStrategy[tuple[plain.Kind, list[Any]]]:
        values = st.lists(st.one_of(st.none(), kinds[name].values), min_size=1, max_size=12)
        return values.map(lambda some: (kinds[name], some))

    return st.sampled_from(sorted(kinds)).flatmap(of_kind)


def outcome_of(source: str, kind: plain.Kind, values: list[Any], axis: plain.Axis) -> plain.Outcome:
    assume(not ("duckdb" in source or source == "database") or kind.type != pa.float16())  # which DuckDB takes by file
    # An engine that serves many readings keeps the database that one of them attached.
    with nullcontext() if source == "database" else one_engine():
        return plain.SOURCES[source](table(kind, values), axis)


def meant(kind: plain.Kind, values: list[Any]) -> list[plain.Number | None]:
    return [None if value is None else kind.means(value) for value in values]


@pytest.mark.slow
@pytest.mark.parametrize("source", plain.SOURCES)
@examples(100)
@given(column=columns(plain.NUMBERS), axis=plain.binned_axes())
def test_a_number_lies_in_the_bin_that_its_shortest_decimal_text_names(source: str, column: Any, axis: plain.Axis):
    kind, values = column
    outcome = outcome_of(source, kind, values, axis)
    assert outcome == plain.binned(axis, meant(kind, values))


@pytest.mark.slow
@pytest.mark.parametrize("source", plain.SOURCES)
@examples(60)
@given(column=columns(plain.LENGTHS), axis=plain.binned_axes(unit="days"))
def test_a_length_of_time_counts_in_the_declared_unit(source: str, column: Any, axis: plain.Axis):
    kind, values = column
    outcome = outcome_of(source, kind, values, axis)
    without = outcome_of(source, kind, values, {key: axis[key] for key in axis if key != "unit"})
    assert outcome == plain.binned(axis, meant(kind, values))
    assert isinstance(without, str) and "write `unit: days`" in without


@pytest.mark.slow
@pytest.mark.parametrize("source", plain.SOURCES)
@examples(100)
@given(
    column=columns(plain.NUMBERS),
    codes=st.lists(st.sampled_from([*CODES, "1.0", "2.50", "-0"]), min_size=1, unique=True),
)
def test_categories_that_are_numbers_match_numbers_of_every_type(source: str, column: Any, codes: list[str]):
    kind, values = column
    axis = {"column": "value", "values": codes, "other": True}
    outcome = outcome_of(source, kind, values, axis)
    if len({Decimal(code) for code in codes}) == len(codes):
        assert outcome == plain.categories(codes, meant(kind, values))
    elif "pandas frame" not in source or not pa.types.is_decimal(kind.type):  # whose decimals are objects
        assert "are one number; keep one of them" in outcome

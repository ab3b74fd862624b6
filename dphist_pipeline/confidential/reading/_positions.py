"""SQL that finds where a value lies along a declared axis; no expression here can raise on any value.

A place along a binned axis is the number of declared edges at or below the value. On a regular axis it comes from a
guess that is put right against the true ends of the guessed bin; else, and on a very short axis, from a binary search
over the exact edges. Both are unrolled into SQL, a step a projection, before any join: DuckDB works them out once for
each value of a column's dictionary then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dphist_pipeline.base import declared_numbers
from dphist_pipeline.base.declared_numbers import ExactEdges
from dphist_pipeline.base.domain import AmountAxis, Axis, BinnedAxis, ByText, CalendarAxis
from dphist_pipeline.base.sql_files import identifier, statement
from dphist_pipeline.base.tidying import tidied_sql
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading._moments import wall_clock

LONGEST_SEARCH = 7  # bins of a regular axis that is searched
LONGEST_LIST = 1000  # bins of a regular axis whose edges are a list: taking one out takes longer, the longer it is
# A mark has a digit for each axis, to this base: the value is declared (0), does not parse, or is undeclared.
MARKS = 3
UNPARSED, UNDECLARED = 1, 2
MARKS_A_WORD = 39  # digits that fit 63 bits


@dataclass(frozen=True)
class Positions:
    """The SQL by which one axis enters the query."""

    value: str  # the column's value as a number or text, null where it does not parse
    absent: str  # whether the column holds nothing that parses
    cell: str  # the cell along the axis, over value and place; null where the row is to be dropped
    steps: tuple[str, ...] = ()  # the place, first over the value, then each over the one before
    joined: str = ""  # instead of steps: the place, over the value and `join`
    join: str = ""  # a left join to declared values, or empty
    table: str = ""  # the statement that declares them, or empty
    parameters: Mapping[str, object] = field(default_factory=dict)  # what `table` or the steps take
    outside: str = ""  # of an amount: whether it lies beyond the ends, and counts as the nearer one
    parts: str = ""  # of an amount: how many parts of the row its upper end has; null where it does not parse


def mark_words(axes: int) -> dict[str, range]:
    """The columns of marks, and the axes whose digits each holds, the first axis in the lowest digit."""
    starts = range(0, axes, MARKS_A_WORD)
    return {
        f"marks_{number}" if number else "marks": range(start, min(start + MARKS_A_WORD, axes))
        for number, start in enumerate(starts)
    }


def positions(axis: Axis, number: int, kind: str = "VARCHAR", by_server: str = "", parts: int = 1) -> Positions:
    """The SQL of one axis; its columns are `value_<number>` and `place_<number>`.

    Args:
        kind: DuckDB type of that column, of a decimal with its parameters. Spark does not use `value` and `absent`.
        by_server: the type that a server says the column has, which gives it as text; or empty.
        parts: of a row, which an amount splits.
    """
    if isinstance(axis, AmountAxis):
        return _amount_position(axis, number, kind, parts)
    if isinstance(axis, ByText):
        return _categories(axis, number, kind, by_server)
    if not isinstance(axis, CalendarAxis):
        axis = declared_numbers.axis_for_type(axis, kind)
        exact = declared_numbers.exact_edges(axis, kind)
        if exact is not None:
            return _searched_exactly(axis, number, exact)
    if axis.bins > LONGEST_SEARCH and _regular(axis):
        return _guessed_position(axis, number, kind)
    return _searched_position(axis, number, kind)


def _categories(axis: ByText, number: int, kind: str, by_server: str) -> Positions:
    table, column = f"categories_{number}", identifier(axis.column)
    keys = declared_numbers.keys_of(axis, by_server or kind)
    text = value = f"TRY_CAST({column} AS VARCHAR)"
    if declared_numbers.is_number(by_server or kind):
        value = column
        if by_server:
            short = lengths.at_most(text, lengths.LONGEST_VALUE)
            value = f"TRY_CAST({short} AS {keys.kind})"
            if by_server == "NUMERIC":  # as its text without zeros that do not count
                value = f"CASE WHEN contains({short}, '.') THEN rtrim(rtrim({short}, '0'), '.') ELSE {short} END"
    elif axis.tidy:
        value = tidied_sql(lengths.at_most(text, lengths.LONGEST_VALUE), axis.tidy)
    else:
        # What is longer than every category matches none.
        value = lengths.at_most(text, max((len(one.encode()) for one in keys.places), default=0))
    return Positions(
        value=value,
        absent=f"{text} IS NULL",
        cell=f"coalesce(place_{number}, {_or_null(axis.other_cell)})",
        joined=f"{table}.position",
        join=f"LEFT JOIN {table} ON {table}.category = value_{number}",
        table=statement("ingest/declare_categories", table=table, kind=keys.kind),
        parameters={"texts": list(keys.places), "positions": list(keys.places.values())},
    )


def _amount_position(axis: AmountAxis, number: int, kind: str, parts: int) -> Positions:
    """An amount: no position of the row, whose parts both ends share.

    NaN is null before it is compared: `greatest` takes it for the largest number, and it cannot be cast.
    """
    value, read = f"value_{number}", _value(axis, kind)
    low, high, width = (f"CAST('{end!r}' AS DOUBLE)" for end in (*axis.ends, axis.high - axis.low))
    inside = f"least(greatest({value}, {low}), {high})"
    return Positions(
        value=read,
        absent=f"{read} IS NULL",
        cell=f"CASE WHEN {value} IS NOT NULL THEN 0 END",
        steps=("CAST(0 AS BIGINT)",),
        outside=f"{value} NOT BETWEEN {low} AND {high}",
        parts=(
            f"CASE WHEN {value} IS NOT NULL THEN CAST(round(({inside} - {low}) / {width} * {parts}) AS INTEGER) END"
        ),
    )


def _searched_exactly(axis: BinnedAxis, number: int, exact: ExactEdges) -> Positions:
    edges = f"CAST($edges_{number} AS {exact.kind}[])"
    return Positions(
        value=exact.value,
        absent=f"({exact.value}) IS NULL",
        cell=_cell_of_place(axis, number),
        steps=_search(number, len(axis.edges), edges, "<="),
        parameters={f"edges_{number}": list(exact.edges)},
    )


def _searched_position(axis: BinnedAxis, number: int, kind: str) -> Positions:
    edges = f"edges_{number}"
    steps = _search(number, len(axis.edges), f"${edges}", "<=" if axis.closed == "left" else "<")
    return _binned_position(axis, number, kind, steps=steps, parameters={edges: list(axis.edges)})


def _search(number: int, length: int, edges: str, compare: str) -> tuple[str, ...]:
    """The steps to the number of edges, of a list of some length, that lie at or below a value."""
    value, place = f"value_{number}", f"place_{number}"
    steps = ["CAST(0 AS BIGINT)"]
    for bit in reversed(range(length.bit_length())):
        ahead = f"{place} + {1 << bit}"
        # Past the last edge the list gives null, which compares as not below.
        steps.append(f"CASE WHEN list_extract({edges}, {ahead}) {compare} {value} THEN {ahead} ELSE {place} END")
    return tuple(steps)


def _guessed_position(axis: BinnedAxis, number: int, kind: str) -> Positions:
    value, place, table, edges = f"value_{number}", f"place_{number}", f"bins_{number}", f"edges_{number}"
    first, last, width = axis.edges[0], axis.edges[-1], (axis.edges[-1] - axis.edges[0]) / axis.bins
    # Cut off before the division: it cannot overflow, and the guess is a declared bin, at most one off.
    guess = f"CAST(floor((greatest(least({value}, {last!r}), {first!r}) - {first!r}) / {width!r}) AS BIGINT)"
    guess = f"least({guess}, {axis.bins - 1})"
    past, short = (">=", "<") if axis.closed == "left" else (">", "<=")
    right = f"{{}} + 1 + CAST({value} {past} {{}} AS INTEGER) - CAST({value} {short} {{}} AS INTEGER)"
    if axis.bins <= LONGEST_LIST:
        ends = [f"list_extract(${edges}, {place} + {end})" for end in (2, 1)]
        steps = (guess, right.format(place, *ends))
        return _binned_position(axis, number, kind, steps=steps, parameters={edges: list(axis.edges)})
    return _binned_position(
        axis,
        number,
        kind,
        joined=right.format(f"{table}.bin", f"{table}.upper", f"{table}.lower"),
        join=f"LEFT JOIN {table} ON {table}.bin = {guess}",
        table=statement("ingest/declare_bins", table=table),
        parameters={"edges": list(axis.edges)},
    )


def _binned_position(axis: BinnedAxis, number: int, kind: str, **place: Any) -> Positions:
    value = _value(axis, kind)
    return Positions(value=value, absent=f"{value} IS NULL", cell=_cell_of_place(axis, number), **place)


def _regular(axis: BinnedAxis) -> bool:
    """Whether every edge lies so near to where equal widths would put it that a guess is at most one bin off."""
    edges = np.array(axis.edges)
    even = np.linspace(edges[0], edges[-1], edges.size)
    return bool(np.abs(edges - even).max() <= 1e-3 * (edges[-1] - edges[0]) / axis.bins)


def _value(axis: BinnedAxis | AmountAxis, kind: str) -> str:
    """A column as a double; NaN, which would sort above every number, becomes null. A date as days since 1970-01-01."""
    if isinstance(axis, CalendarAxis):
        local_day = f"TRY_CAST({wall_clock(axis.column, kind, axis.format)} AS DATE)"
        return f"CAST(date_diff('day', DATE '1970-01-01', {local_day}) AS DOUBLE)"
    cast = f"TRY_CAST({lengths.value_of(axis.column, kind)} AS DOUBLE)"
    return f"CASE WHEN isnan({cast}) THEN NULL ELSE {cast} END"


def _cell_of_place(axis: BinnedAxis, number: int) -> str:
    """Place 0 lies below the first edge, place bins + 1 above the last."""
    other = _or_null(axis.other_cell)
    below = "0" if axis.below else other
    above = str(axis.below + axis.bins) if axis.above else other
    return (
        f"CASE WHEN value_{number} IS NULL THEN {other} WHEN place_{number} = 0 THEN {below} "
        f"WHEN place_{number} > {axis.bins} THEN {above} ELSE place_{number} - {1 - axis.below} END"
    )


def _or_null(cell: int | None) -> str:
    return "NULL" if cell is None else str(cell)

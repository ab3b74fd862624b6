"""The views of a release in the catalogue: plain ones for tools that call no macros, and the one that macros read.

`<release>` has the latest revision of each period, `<release>_all` every revision. Both read the release's table, whose
name no release can have. A view never hides a published column: it leaves out its own column of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from dphist_pipeline.answering._catalogue_places import Places
from dphist_pipeline.answering._macros import INNER, KNOWN_GROUP, macro
from dphist_pipeline.base.domain import AmountAxis, Axis, BinnedAxis, CalendarAxis
from dphist_pipeline.base.published_columns import VALUE_COLUMNS
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.fields import EVERY_REVISION

_COMMENTS = {
    "period": "first day of the period, such as 2026-01-05; `all` for a release without periods",
    "period_start": "first day of the period",
    "period_end": "day after the last day of the period",
    "revision": "from 1; a later revision of a period replaces the earlier ones",
    "is_latest": "whether this is the latest revision of the period",
    "cell_number": "number of the cell in declared order, from 0; the last axis runs fastest",
    **{column.name: column.in_views for column in VALUE_COLUMNS},
    "whole_count": "the cell as a non-negative whole number, fitted so that sums stay near the unbiased ones",
    KNOWN_GROUP: "number of the group of the cell in dph_known; null without public figures",
}
_KEY = ("period", "revision", "cell_number", KNOWN_GROUP)
# How a view shows a cell that public figures limit: as macros answer, by the figure itself or cut off at it.
_IS_KNOWN = "WHEN k.cells = 1 OR k.figure = 0 THEN k.figure"
_BESIDE_FIGURES = {
    "estimate": f"CASE {_IS_KNOWN} ELSE t.estimate END",
    "unbiased_estimate": f"CASE {_IS_KNOWN} ELSE t.unbiased_estimate END",
    "ci_lower": f"CASE {_IS_KNOWN} WHEN k.figure > 0 AND t.ci_lower IS NOT NULL "
    "THEN least(t.unbiased_estimate, greatest(t.ci_lower, 0), k.figure) ELSE t.ci_lower END",
    "ci_upper": f"CASE {_IS_KNOWN} WHEN k.figure > 0 AND t.ci_upper IS NOT NULL "
    "THEN greatest(t.unbiased_estimate, least(t.ci_upper, k.figure), 0) ELSE t.ci_upper END",
}


@dataclass(frozen=True)
class ViewColumn:
    """A column of the table of a release, as DuckDB knows it."""

    name: str
    kind: str
    comment: str


@dataclass(frozen=True)
class ReleaseView:
    """A release whose views are made, with all axes that its publications ever had.

    `closed`: the last bin of an axis has its upper end, as in local collections. `strides`: difference of cell numbers
    for one step along each axis, and its size; empty if publications differ.
    """

    release: str
    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    closed: bool = False
    strides: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, release: str, columns: Sequence[str], audits: Sequence[Mapping[str, Any]]) -> ReleaseView:
        """Makes the view from the audits of its publications."""
        distinct = {str(audit["axes"]): audit["axes"] for audit in audits}
        # In an order that does not depend on when each was published.
        axes = tuple(axis for _, described in sorted(distinct.items()) for axis in domain_of(described).axes)
        strides = _strides(distinct.popitem()[1]) if len(distinct) == 1 else {}
        closed = any(audit.get("model") == "local" for audit in audits)
        return cls(release, tuple(columns), axes, closed, strides)

    @property
    def published_columns(self) -> list[str]:
        """The columns of the published tables."""
        return [column for column in self.columns if column not in _KEY]

    @property
    def amounts(self) -> set[str]:
        """The axes that are amounts, which have no `other`."""
        return {axis.name for axis in self.axes if isinstance(axis, AmountAxis)}

    @property
    def comments(self) -> dict[str, str]:
        """The meaning of the published columns."""
        return _COMMENTS | {name: text for axis in self.axes for name, text in _axis_comments(axis).items()}

    def columns_of(self, axis: str) -> list[str]:
        """The published columns of an axis, of whatever kind it was."""
        return [name for one in self.axes if one.name == axis for name in ReaderAxis(one).published]


def view_statements(places: Places, of: ReleaseView, taken: set[str]) -> Iterator[str]:
    """The statements that make the views of a release, and the comments on its views and table.

    A release in `taken` keeps its name where another one's view of every revision would have it.
    """
    about = f"What views read. Ask {of.release}, or {of.release}{EVERY_REVISION}, instead."
    comments = of.comments
    yield from table_comments(places.cells(of.release), about, {name: comments[name] for name in of.columns})
    if of.release + EVERY_REVISION not in taken:
        yield from _view(places, of, of.release + EVERY_REVISION, latest=False)
        yield from _view_without_rows(places, of)
    yield from _view(places, of, of.release, latest=True)


def asked_statements(
    places: Places, release: str, columns: Sequence[ViewColumn], others: Sequence[tuple[str, int, Sequence[ViewColumn]]]
) -> Iterator[str]:
    """The statements that make the view that macros read: the cells of a release, then those of other tables.

    Of the others come name, number of the first cell, and columns; the view has those of the release.
    """
    view, parts = places.macro_view(release), [f"SELECT * FROM {places.cells(release)}"]
    for table, first, theirs in others:
        kinds = {column.name: column.kind for column in theirs}
        common = ", ".join(_as_in(column, kinds[column.name], first) for column in columns if column.name in kinds)
        parts.append(f"SELECT {common} FROM {places.cells(table)}")
    yield f"CREATE OR REPLACE VIEW {view} AS\n" + "\nUNION ALL BY NAME\n".join(parts)
    also = " The cells of other tables of its family follow, which may answer for it." if others else ""
    yield f"COMMENT ON VIEW {view} IS {literal(f'What macros read. Ask {release} instead.{also}')}"
    yield from _column_comments(view, {column.name: column.comment for column in columns})


def _as_in(column: ViewColumn, kind: str, first: int) -> str:
    """SQL for the column of another table as a column of a release's view."""
    if column.name == "cell_number":
        return f"cell_number + {first} AS cell_number"
    name = identifier(column.name)
    return name if kind == column.kind else f"TRY_CAST({name} AS {column.kind}) AS {name}"


def family_statements(places: Places, family: str, table: str) -> Iterator[str]:
    """The statements that make the views of a family: its tables for readers, and nothing for macros, which refuse."""
    view, macro_view = places.users + identifier(family), places.macro_view(family)
    columns = {
        "release": "name of a table of the family",
        "axes": "names of its axes, in declared order",
        "cells": "number of its declared cells",
        "periods": "how many periods of it are published",
    }
    yield (
        f"CREATE OR REPLACE VIEW {view} AS\n"
        "SELECT r.release, r.axes, max(r.cells) AS cells, count(DISTINCT r.period) AS periods\n"
        f"FROM {places.table('dph_releases')} AS r\nWHERE r.family = {literal(family)} AND r.is_latest\n"
        "GROUP BY r.release, r.axes ORDER BY r.release"
    )
    yield f"COMMENT ON VIEW {view} IS {literal(f'The tables of family {family}: ask one of them.')}"
    yield from _column_comments(view, columns)
    yield f"CREATE OR REPLACE VIEW {macro_view} AS FROM {places.cells(table)} WHERE false"
    about = f"Holds nothing. Macros look here if they are asked for {family}, and name its tables."
    yield f"COMMENT ON VIEW {macro_view} IS {literal(about)}"


def title_comments(places: Places, release: str, title: str, taken: set[str]) -> Iterator[str]:
    """The comments on the views of a release."""
    for name, rows in ((release, "the latest revision"), (release + EVERY_REVISION, "every revision")):
        if name == release or name not in taken:
            about = f"{title}: {rows} of each period, one row for each cell."
            yield f"COMMENT ON VIEW {places.users}{identifier(name)} IS {literal(about)}"


def table_comments(table: str, about: str, columns: Mapping[str, str]) -> Iterator[str]:
    """The comments on a table, named with its schema, and on its columns."""
    yield f"COMMENT ON TABLE {table} IS {literal(about)}"
    yield from _column_comments(table, columns)


def is_comment(statement: str) -> bool:
    """Whether a statement of this module describes something, and changes no answer."""
    return statement.startswith("COMMENT ON ")


def macro_comment(places: Places, name: str) -> str:
    """The comment on a macro: the one that opens its file."""
    opening = takewhile(lambda line: line.startswith("--"), macro(name).splitlines())
    about = " ".join(line.removeprefix("--").strip() for line in opening)
    before = places.internals if name in INNER else places.users
    return f"COMMENT ON MACRO TABLE {before}{name} IS {literal(about)}"


def _view_without_rows(places: Places, of: ReleaseView) -> Iterator[str]:
    """A view without rows: a macro that is asked for `<release>_all` finds it, and can say what it takes instead."""
    view, table = places.macro_view(of.release + EVERY_REVISION), places.cells(of.release)
    about = f"Holds nothing. Macros look here if they are asked for {of.release}{EVERY_REVISION}, and refuse."
    yield f"CREATE OR REPLACE VIEW {view} AS FROM {table} WHERE false"
    yield f"COMMENT ON VIEW {view} IS {literal(about)}"
    yield from _column_comments(view, {name: of.comments[name] for name in of.columns})


def _view(places: Places, of: ReleaseView, name: str, latest: bool) -> Iterator[str]:
    columns = {column: (sql, comment) for column, sql, comment in _view_columns(of, latest)}
    view, selected = (
        places.users + identifier(name),
        ",\n    ".join(f"{sql} AS {identifier(column)}" for column, (sql, _) in columns.items()),
    )
    yield (
        f"CREATE OR REPLACE VIEW {view} AS\nSELECT\n    {selected}\n"
        f"FROM {places.cells(of.release)} AS t JOIN {places.table('dph_releases')} AS r\n"
        f"    ON r.release = {literal(of.release)} AND r.period = t.period AND r.revision = t.revision\n"
        f"LEFT JOIN {places.table('dph_known')} AS k\n"
        "    ON k.release = r.release AND k.period = t.period AND k.revision = t.revision\n"
        f"        AND k.known_group = t.{KNOWN_GROUP}" + ("\nWHERE r.is_latest" if latest else "")
    )
    yield from _column_comments(view, {column: comment for column, (_, comment) in columns.items()})


def _view_columns(of: ReleaseView, latest: bool) -> Iterator[tuple[str, str, str]]:
    """The columns of a view in order: name, SQL and comment."""
    published, comments = of.published_columns, of.comments
    own = {name: f"r.{name}" for name in ("period_start", "period_end", "is_latest") if name not in published}
    last = {axis.name: max(of.columns_of(axis.name), key=published.index) for axis in of.axes}
    for name in ("period", "period_start", "period_end", "revision", *(() if latest else ("is_latest",))):
        if name in (*_KEY, *own):
            yield name, own.get(name, f"t.{name}"), comments[name]
    labels = {f"{axis.name}_label": axis.name for axis in of.axes if axis.labels}
    for column in published:
        if column not in labels:  # theirs comes with those for readers, and is never null
            yield column, _BESIDE_FIGURES.get(column, f"t.{identifier(column)}"), comments[column]
        for axis in [axis for axis in last if last[axis] == column]:
            if f"{axis}_is_other" not in published and axis not in of.amounts:
                yield f"{axis}_is_other", _is_other(of, axis), f"whether the cell is the one for {axis} = other"
            names = {name for name in published if labels.get(name) != axis}
            yield from (one for one in _for_readers(of, axis) if one[0] not in names)
    yield "cell_number", "t.cell_number", comments["cell_number"]


def _for_readers(of: ReleaseView, axis: str) -> Iterator[tuple[str, str, str]]:
    """The columns of an axis for readers: null in publications without it, none if its kind changed."""
    forms = [one for one in of.axes if one.name == axis]
    if len({(*ReaderAxis(one).published, *ReaderAxis(one).columns) for one in forms}) > 1:
        return
    one = forms[-1]
    for name, (kind, comment) in ReaderAxis(one).columns.items():
        if kind == "label":
            sql = ReaderAxis(one, of.closed).label_sql()
        elif kind == "order":
            if axis not in of.strides:
                continue
            sql = "(t.cell_number // {}) % {}".format(*of.strides[axis])
        else:
            end, infinity = ("lower", "-inf") if kind == "from" else ("upper", "inf")
            # Text where another revision's column of that name is none of numbers.
            value = f"TRY_CAST(t.{identifier(f'{axis}_{end}')} AS DOUBLE)"
            sql = f"CASE WHEN NOT {_is_other(of, axis)} THEN coalesce({value}, CAST('{infinity}' AS DOUBLE)) END"
        yield name, f"CASE WHEN list_contains(r.axes, {literal(axis)}) THEN {sql} END", comment


def _strides(described: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """For each axis the difference of cell numbers for one step along it, and its size; the last axis runs fastest."""
    strides, stride = dict[str, tuple[int, int]](), 1
    for axis in reversed(domain_of(described).axes):
        strides[axis.name] = (stride, axis.size)
        stride *= axis.size
    return strides


def _is_other(of: ReleaseView, axis: str) -> str:
    """SQL: whether a cell is the one for `other`; null where a publication does not have the axis."""
    keys = dict.fromkeys(key for one in of.axes if one.name == axis for key in ReaderAxis(one).keys)
    all_null = " AND ".join(f"t.{identifier(key)} IS NULL" for key in keys)
    return f"CASE WHEN list_contains(r.axes, {literal(axis)}) THEN {all_null} END"


def _axis_comments(axis: Axis) -> dict[str, str]:
    """What the published columns of an axis mean."""
    if isinstance(axis, AmountAxis):
        return {axis.name: f"{axis.name}: the end of the amount at which parts of rows were counted"}
    if isinstance(axis, BinnedAxis):
        lower, upper = ReaderAxis(axis).keys
        kind = " (a day, as text)" if isinstance(axis, CalendarAxis) else ""
        ends = ("within", "outside of") if axis.closed == "left" else ("outside of", "within")
        return {
            column: f"{axis.name}: {end} end of the bin{kind}, {which} the bin; null for an open end and for other"
            for column, end, which in ((lower, "lower", ends[0]), (upper, "upper", ends[1]))
        }
    about = {f"{axis.name}_label": f"{axis.name}: the category's label for readers; null without one"}
    about |= {level: f"{axis.name}: the category's group at the level {level}; null for other" for level in axis.levels}
    return {axis.name: f"{axis.name}: the category; null for other", **about}


def _column_comments(table: str, columns: Mapping[str, str]) -> Iterator[str]:
    for column, comment in columns.items():
        yield f"COMMENT ON COLUMN {table}.{identifier(column)} IS {literal(comment)}"

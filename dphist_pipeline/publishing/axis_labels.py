"""Columns of an axis for readers: a label that is never null, ends of bins that compare, and the declared order.

Published columns leave `other` and open ends null, so that comparisons in SQL and groupings of data frames lose them.
The texts are made twice, in Python for files and in SQL for views, and are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dphist_pipeline.base.domain import OTHER, AmountAxis, Axis, BinnedAxis, CalendarAxis, CategoricalAxis
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.publishing.parquet_tables import axis_columns, texts_at
from dphist_pipeline.publishing.picture_sums import range_in_words, words_of_ends

OTHER_BESIDE_ONE = "other (none of the declared)"


@dataclass(frozen=True)
class ReaderAxis:
    """An axis as readers see it.

    `closed`: both ends of the last bin belong to it, as in local collections.
    """

    axis: Axis
    closed: bool = False

    @property
    def published(self) -> dict[str, Any]:
        """The published columns with their types: days are ISO text, `other` is null in all of them."""
        return axis_columns(self.axis)

    @property
    def keys(self) -> list[str]:
        """The published columns that are all null for `other`, and for no other cell."""
        return list(self.axis.keys)

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """The columns for readers: kind (`label`, `from`, `to` or `order`) and meaning, by name.

        Numeric axes alone have ends of numbers.
        """
        axis = self.axis
        if isinstance(axis, AmountAxis):
            return {}
        note = f"`{self.other}` for other"
        columns = {f"{axis.name}_label": ("label", f"{axis.name}: in words, never null; {note}")}
        if isinstance(axis, BinnedAxis) and not isinstance(axis, CalendarAxis):
            columns |= {
                f"{axis.name}_from": ("from", f"{axis.name}: lower end of the bin; -infinity if open, null for other"),
                f"{axis.name}_to": ("to", f"{axis.name}: upper end of the bin; infinity if open, null for other"),
            }
        return columns | {
            f"{axis.name}_order": ("order", f"{axis.name}: place in declared order, from 0; other is last")
        }

    def columns_beside(self, axes: Iterable[Axis]) -> dict[str, tuple[str, str]]:
        """The columns for readers whose names no other axis has; see `columns`.

        The axis itself may be among `axes`, or have other forms there under its name.
        """
        others = {name for other in axes if other.name != self.axis.name for name in other.columns}
        return {name: column for name, column in self.columns.items() if name not in others}

    @property
    def other(self) -> str:
        """What the cell for everything else is called: `other`, unless a declared category has that name."""
        texts = (*self.axis.values, *self.axis.labels) if isinstance(self.axis, CategoricalAxis) else ()
        return OTHER_BESIDE_ONE if OTHER in texts else OTHER

    @property
    def labels(self) -> list[str]:
        """The label of every position along it, in declared order; where two are alike, the categories lead them."""
        axis = self.axis
        if isinstance(axis, BinnedAxis):
            ends = zip(*(bound.tolist() for bound in axis.bounds), strict=True)
            return [range_in_words(axis, lower, upper, self.closed)[0] for lower, upper in ends]
        if isinstance(axis, AmountAxis):
            return [axis.written(end) for end in axis.ends]
        labels = axis.labels or axis.values
        texts = [label or value for label, value in zip(labels, axis.values, strict=True)]
        if not _tells_apart(axis):
            texts = [f"{value} {label}".rstrip() for label, value in zip(labels, axis.values, strict=True)]
        return texts + [self.other] * axis.other

    def range_in_words(self, lower: float, upper: float, separated: bool = False) -> str:
        """A range of numbers or days in words; no two neighbours seem to share an end.

        `lower` is nan for `other`. `separated`: long numbers have commas, as people read them, not as files have them.
        """
        assert isinstance(self.axis, BinnedAxis)
        return range_in_words(self.axis, lower, upper, self.closed, separated)[0]

    def words_of_ends(self, lower: float, upper: float) -> dict[str, str | None]:
        """The words for ranges that begin or end with a bin: `first`, `last`, `below` and `above`.

        `lower` is nan for `other`, which has no words; open ends are -inf and inf.
        """
        assert isinstance(self.axis, BinnedAxis)
        return words_of_ends(self.axis, lower, upper, self.closed)

    def values(self, place: NDArray[np.intp]) -> Mapping[str, Any]:
        """The columns of cells, as Arrow arrays, by their positions along the axis."""
        columns: dict[str, Any] = {"label": texts_at(self.labels, place), "order": pa.array(place.astype(np.int32))}
        if isinstance(self.axis, BinnedAxis):
            ends = dict(zip(("from", "to"), self.axis.bounds, strict=True))
            columns |= {kind: pa.array(along[place], mask=np.isnan(along[place])) for kind, along in ends.items()}
        return {name: columns[kind] for name, (kind, _) in self.columns.items()}

    def label_sql(self, table: str = "t") -> str:
        """SQL for the label of a cell from the published columns of a table, by its alias."""
        axis = self.axis
        other, name = literal(self.other), axis.name
        if isinstance(axis, CategoricalAxis):
            value, label = f"{table}.{identifier(name)}", f"{table}.{identifier(f'{name}_label')}"
            if not axis.labels:
                return f"coalesce({value}, {other})"
            label = label if _tells_apart(axis) else f"{value} || ' ' || {label}"
            return f"coalesce({label}, {value}, {other})"
        if isinstance(axis, AmountAxis):
            return f"regexp_replace(CAST({table}.{identifier(name)} AS VARCHAR), '\\.0$', '')"
        lower, upper = (f"{table}.{identifier(f'{name}_{end}')}" for end in ("lower", "upper"))
        if isinstance(axis, CalendarAxis):
            return f"CASE WHEN {lower} IS NULL THEN {other} ELSE {_days_sql(lower, upper)} END"
        low, high = (f"regexp_replace(CAST({end} AS VARCHAR), '\\.0$', '')" for end in (lower, upper))
        left_closed = axis.closed == "left"
        below, above = (
            (f"'below ' || {high}", f"{low} || ' or more'")
            if left_closed
            else (f"{high} || ' or less'", f"'above ' || {low}")
        )
        inside = f"{low} || ' to under ' || {high}" if left_closed else f"'over ' || {low} || ' to ' || {high}"
        if axis.whole:
            inside = _whole_sql(lower, upper, left_closed)
        last = (
            f" WHEN {high} = {literal(axis.written(axis.edges[-1]))} THEN {low} || ' to ' || {high}"
            if self.closed
            else ""
        )
        return (
            f"CASE WHEN {lower} IS NULL AND {upper} IS NULL THEN {other} WHEN {lower} IS NULL THEN {below} "
            f"WHEN {upper} IS NULL THEN {above}{last} ELSE {inside} END"
        )


def _tells_apart(axis: CategoricalAxis) -> bool:
    """Whether no two categories have the same label, the category itself where it has none."""
    texts = {label or value for label, value in zip(axis.labels or axis.values, axis.values, strict=True)}
    return len(texts) == len(axis.values)


def _whole_sql(lower: str, upper: str, left_closed: bool) -> str:
    """SQL for the first and the last whole number of a bin, as `range_in_words` says them."""
    ends = (lower, f"{upper} - 1") if left_closed else (f"{lower} + 1", upper)
    first, last = (f"regexp_replace(CAST({end} AS VARCHAR), '\\.0$', '')" for end in ends)
    return f"CASE WHEN {first} = {last} THEN {first} ELSE {first} || ' to ' || {last} END"


def _days_sql(lower: str, upper: str) -> str:
    """SQL for whole years, whole months or days, as `range_in_words` says them."""
    letters = (
        f"CASE WHEN {lower} LIKE '%-01-01' AND {upper} LIKE '%-01-01' THEN 4 "
        f"WHEN {lower} LIKE '%-01' AND {upper} LIKE '%-01' THEN 7 ELSE 10 END"
    )
    first, last = f"left({lower}, {letters})", f"left(CAST(CAST({upper} AS DATE) - 1 AS VARCHAR), {letters})"
    return f"CASE WHEN {first} = {last} THEN {first} ELSE {first} || ' to ' || {last} END"

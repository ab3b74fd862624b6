"""Axes in words, and questions about them in SQL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dphist_pipeline.answering.chosen_cells import written, written_end
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis
from dphist_pipeline.publishing.plots_page import named
from dphist_pipeline.sql_files import literal

MOST_NAMED = 12
ASKED_AXES = 2


def in_words(axis: Axis) -> str:
    """What the cells along an axis are, as HTML."""
    parts = list(_categories(axis) if isinstance(axis, CategoricalAxis) else _bins(axis))
    if axis.other:
        parts.append("<i>other</i>: missing, unreadable and undeclared values")
    else:
        parts.append("rows with any other value, or none, are not counted")
    return "; ".join(parts)


def _categories(axis: CategoricalAxis) -> Iterator[str]:
    called = [
        f"{named(value)} ({named(label)})" if label and label != value else named(value)
        for value, label in list(zip(axis.values, axis.labels or axis.values, strict=True))[:MOST_NAMED]
    ]
    left_out = len(axis.values) - MOST_NAMED
    yield ", ".join(called) + (f" and {left_out:,} more" if left_out > 0 else "")
    for level, groups in axis.levels.items():
        yield f"each lies in one of {len(set(groups)):,} groups of {named(level)}"


def _bins(axis: BinnedAxis) -> Iterator[str]:
    first, last = (written_end(axis, axis.edges[place]) for place in (0, -1))
    if isinstance(axis, CalendarAxis):
        yield f"{axis.bins:,} stretches of days, from {first} up to, but without, {last}"
        return
    side = "lower" if axis.closed == "left" else "upper"
    yield f"{axis.bins:,} bins{_ends(axis)}; the {side} end belongs to a bin"
    if axis.below:
        yield "one cell for all below"
    if axis.above:
        yield "one cell for all above"


def _ends(axis: BinnedAxis) -> str:
    """Where bins end, and whether they are equally wide, to follow their number."""
    lengths = np.diff(axis.edges)
    named_edges = axis.edges if axis.bins <= MOST_NAMED else (*axis.edges[:4], axis.edges[-1])
    shown = [written(edge) for edge in named_edges]
    ends = ", ".join(shown) if axis.bins <= MOST_NAMED else f"{', '.join(shown[:4])}, …, {shown[-1]}"
    alike = " of equal width" if axis.bins > 1 and np.allclose(lengths, lengths[0]) else ""
    return f"{alike} with ends at {ends}"


def intervals_in_words(axis: Axis) -> str:
    """What the intervals are that contributors were asked for, as HTML."""
    if not isinstance(axis, BinnedAxis):
        raise TypeError("contributors report in which interval of numbers a value lies")
    if axis.bins == 1:
        held = "both of them belong to it"
    else:
        held = "an interval holds its lower end, and the last one its upper end too"
    return (
        f"{axis.bins:,} interval{'s' if axis.bins > 1 else ''}{_ends(axis)}; {held}; a value below or above, or none "
        "at all, is reported as well, and lies in no interval"
    )


def box(axes: tuple[Axis, ...]) -> str:
    """A box about the first axes as an SQL struct, with ends and categories that the grid has."""
    return "{" + ", ".join(f"{literal(axis.name)}: {_asked(axis)}" for axis in axes[:ASKED_AXES]) + "}"


def _asked(axis: Axis) -> str:
    if isinstance(axis, CategoricalAxis):
        return literal(axis.values[0])
    middle = written_end(axis, axis.edges[axis.bins // 2])
    return f"[{literal(middle) if isinstance(axis, CalendarAxis) else middle}, NULL]"


def queries(release: str, period: str, revision: int, axes: tuple[Axis, ...]) -> str:
    """SQL to copy, as text: the catalogue, the total, a box, the cells."""
    chosen = f"period = {literal(period)} AND revision = {revision}"
    return "\n".join(
        [
            "-- in the folder of this page (the catalogue can be copied anywhere)",
            "ATTACH '../../../catalog.duckdb' AS r (READ_ONLY);",
            f"FROM r.dph_total('r.{release}', period := {literal(period)});",
            f"FROM r.dph_box('r.{release}', {box(axes)}, period := {literal(period)});",
            f"SELECT * FROM r.{release} WHERE {chosen};",
            "-- without the catalogue, from the file beside this page",
            "SELECT * FROM 'histogram.parquet';",
        ]
    )

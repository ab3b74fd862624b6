"""The quality table of a release: which queries about rows are asked, for which shares of what it may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline.base.domain import Axis, BinnedAxis, CategoricalAxis
from dphist_pipeline.confidential.journal import AnswerStore
from dphist_pipeline.confidential.measurements import PrivateRows
from dphist_pipeline.confidential.row_queries import (
    FailuresByAxis,
    Limits,
    ObservedRows,
    RowQuery,
    RowsByPlace,
    RowsCut,
    RowsCutBy,
    RowsMisfiled,
    UnitsByRows,
    UnitsLeftOut,
)
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.row_quality import FAILURES, PLACES, RowTable
from dphist_pipeline.ledger.individual import Granted
from dphist_pipeline.releasing._plans import rows_seen
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.sources import EVERY_ROW


@dataclass(frozen=True)
class _Asked:
    """A query, and what its numbers are called: statistic, axis, position and category of each."""

    step: str
    query: RowQuery
    names: list[tuple[str, str | None, int | None, str | None]]


def buy_quality(
    spec: ReleaseSpec, epsilon: Fraction, load: Callable[[], ObservedRows], answers: AnswerStore
) -> tuple[RowTable, ...]:
    """The tables that a spec asks for, each for an equal share of what quality may cost; none where it asks for none.

    That epsilon is what the mechanism leaves of the charge. `load` gives the exact numbers, where a measurement must
    draw.
    """
    seen = rows_seen(spec)
    if spec.quality is None or seen is None:
        return ()
    queries = list(_queries(spec, seen))
    budget = Budget(epsilon, "quality")
    parts = budget.split(**{query.step: Fraction(1, len(queries)) for query in queries})
    measurements = PrivateRows(_limits(spec, seen), load, answers)
    return tuple(_table(measurements, query, part) for query, part in zip(queries, parts, strict=True))


def buy_left_out(granted: Granted, load: Callable[[], ObservedRows], answers: AnswerStore) -> RowTable:
    """The number of units that a charge to an individual account is the first of its year to leave out."""
    query = _Asked("quality_left_out", UnitsLeftOut(), [("left_out", None, None, None)])
    measurements = PrivateRows(Limits(granted.rows, granted.rows, False), load, answers)
    return _table(measurements, query, Budget(granted.left_out, query.step))


def half_widths(spec: ReleaseSpec) -> dict[str, int]:
    """Half the width of the 95 % interval of the numbers that `buy_quality` would buy, by statistic; in rows or units.

    It follows from the spec alone. Where several tables tell a statistic, the widest counts.
    """
    seen = rows_seen(spec)
    if spec.quality is None or seen is None:
        return {}
    queries, widths = list(_queries(spec, seen)), dict[str, int]()
    each = spec.epsilon * spec.quality.share / len(queries)
    for query in queries:
        half = int(noise_law(query.query.sensitivity(_limits(spec, seen)) / each).half_width_of_sum(1))
        for statistic in dict.fromkeys(names[0] for names in query.names):
            widths[statistic] = max(half, widths.get(statistic, 0))
    return widths


def _limits(spec: ReleaseSpec, seen: int) -> Limits:
    return Limits(spec.max_rows_per_unit, seen, spec.neighbours == "substitute")


def _queries(spec: ReleaseSpec, seen: int) -> Iterator[_Asked]:
    axes, positioned = spec.domain.axes, spec.domain.of_rows
    yield _Asked("quality_rows", RowsByPlace(), [("rows", None, None, place) for place in PLACES])
    failures = [(failure, axis.name, None, None) for axis in axes for failure in FAILURES]
    yield _Asked("quality_failures", FailuresByAxis(len(axes)), [*failures])
    if spec.quality is not None and spec.quality.misfiled:
        yield _Asked("quality_misfiled", RowsMisfiled(), [("misfiled", None, None, None)])
    if spec.privacy_unit == EVERY_ROW or spec.quality is None:
        return
    row_counts = [str(rows) for rows in range(1, seen)] + [f"{seen} or more"]
    yield _Asked(
        "quality_units", UnitsByRows(), [("units", None, rows, name) for rows, name in enumerate(row_counts, 1)]
    )
    yield _Asked("quality_cut", RowsCut(), [("cut", None, None, None)])
    for number, axis in enumerate(positioned.axes):
        if axis.name in spec.quality.by:
            names = [("cut", axis.name, position, _position_name(axis, position)) for position in range(axis.size)]
            yield _Asked(f"quality_cut_{axis.name}", RowsCutBy(number, positioned.shape), [*names])


def _position_name(axis: Axis, position: int) -> str | None:
    """The name of a position along an axis; None for `other`."""
    if position == axis.other_cell:
        return None
    if isinstance(axis, CategoricalAxis):
        return axis.values[position]
    from dphist_pipeline.publishing.axis_labels import ReaderAxis  # with PyArrow, which `check` does without

    assert isinstance(axis, BinnedAxis)
    lower, upper = (float(ends[position]) for ends in axis.bounds)
    return ReaderAxis(axis).range_in_words(lower, upper)


def _table(measurements: PrivateRows, query: _Asked, budget: Budget) -> RowTable:
    values, scale = measurements.noisy(query.query, budget)
    statistics, axes, positions, categories = zip(*query.names, strict=True)
    return RowTable(statistics, axes, positions, categories, values, scale, budget.step, budget.epsilon)

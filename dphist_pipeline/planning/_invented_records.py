"""Invents records for a rehearsal, from the declarations of a spec.

Cells are drawn evenly along every axis. Some values are null or undeclared, some rows lie in the periods before and
after, and some units have more rows than the spec counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import Axis, BandedAxis, BinnedAxis, ByText, CalendarAxis, CategoricalAxis, day_of
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import EVERY_ROW

SEED = 20_260_105
UNDECLARED_SHARE = 0.05
NULL_SHARE = 0.02
OUTSIDE_SHARE = 0.1
MOST_ROWS_OF_A_UNIT = 50
PARTS = 7

Value = float | int | str | date | datetime | None
Values = list[Value]
Draw = Callable[[], Values]


def rehearsal_refused(problem: str) -> Refused:
    """The release of a spec cannot be rehearsed."""
    return Refused(f"no rehearsal: {problem}", code="rehearsal_refused")


@dataclass(frozen=True, eq=False)
class InventedRecords:
    """Invented records.

    Attributes:
        columns: values by name of column, shape (rows,) each.
        remarks: values that these records, like real ones, cannot have.
    """

    columns: dict[str, Values]
    remarks: tuple[str, ...] = ()


def invent(spec: ReleaseSpec, period: Period, rows: int) -> InventedRecords:
    """Records with the columns that a spec reads; always the same ones.

    Args:
        period: most rows lie in it.
        rows: number of records.

    Raises:
        Refused: the name of a column cannot be written to the CSV file that the spec declares.
    """
    draws = np.random.Generator(np.random.PCG64(SEED))
    uses = list(_uses(spec, period, rows, draws))
    several = {column for column, _ in uses if sum(other == column for other, _ in uses) > 1}
    columns: dict[str, Values] = {}
    for column, draw in uses:
        if column not in columns:
            values = draw()
            # A column that is used several times is text, which every use accepts.
            columns[column] = [_text(value) for value in values] if column in several else values
    if spec.source_format == "csv":
        return _as_csv(spec, columns)
    return InventedRecords(columns)


def write_records(invented: InventedRecords, spec: ReleaseSpec, folder: Path) -> Path:
    """Writes the records in the format of the spec's source; in Parquet if the source is a database.

    Args:
        invented: the records.

    Returns:
        Path of the file.
    """
    if spec.source_format != "csv":
        import pyarrow as pa
        from pyarrow import parquet

        path = folder / "records.parquet"
        parquet.write_table(pa.table(invented.columns), path)
        return path
    path = folder / "records.csv"
    quote = spec.csv_quote

    def field(value: Value) -> str:
        text = "" if value is None else str(value)
        special = any(sign in text for sign in (spec.csv_delimiter, quote) if sign)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}" if quote and special else text

    # A category that the encoding has no letters for stands in no such file, either.
    with path.open("w", encoding=spec.csv_encoding, errors="replace", newline="\n") as file:
        file.write(spec.csv_delimiter.join(map(field, invented.columns)) + "\n")
        for row in zip(*invented.columns.values(), strict=True):
            file.write(spec.csv_delimiter.join(map(field, row)) + "\n")
    return path


def _uses(spec: ReleaseSpec, period: Period, rows: int, draws: np.random.Generator) -> Iterable[tuple[str, Draw]]:
    """Columns with the function that draws their values; the first use of a column applies."""
    if spec.period_column is not None:
        yield spec.period_column, lambda: _moments(spec, period, rows, draws)
    if spec.privacy_unit != EVERY_ROW:
        numbers = _unit_numbers(spec, rows, draws)
        for place, column in enumerate(spec.privacy_unit.columns):
            yield column, lambda place=place: _unit_part(spec, numbers, place)  # type: ignore[misc]
    for axis in spec.domain.axes:
        yield axis.column, lambda axis=axis: _axis_values(axis, rows, draws)  # type: ignore[misc]


def _moments(spec: ReleaseSpec, period: Period, rows: int, draws: np.random.Generator) -> Values:
    """Local times: most in the period, some in the periods before and after, some null."""
    if period.start is None or period.end is None:
        return [None] * rows
    start, end = period.start.replace(tzinfo=None), period.end.replace(tzinfo=None)
    where = draws.random(rows) + draws.choice(
        [-1, 0, 1], size=rows, p=[OUTSIDE_SHARE, 1 - 2 * OUTSIDE_SHARE, OUTSIDE_SHARE]
    )
    moments = [start + timedelta(seconds=round((end - start).total_seconds() * place)) for place in where.tolist()]
    empty = draws.random(rows) < NULL_SHARE
    pattern = spec.text_format
    written: Values = [moment.strftime(pattern) for moment in moments] if pattern else [*moments]
    return [None if lacks else value for value, lacks in zip(written, empty.tolist(), strict=True)]


def _unit_numbers(spec: ReleaseSpec, rows: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """The number of each row's privacy unit, -1 for null; some units have more rows than the spec counts."""
    mean = max(1.5, min(spec.max_rows_per_unit, MOST_ROWS_OF_A_UNIT) * 0.75)
    units = max(1, round(rows / mean))
    numbers = (units * draws.random(rows) ** 1.5).astype(np.int64)
    numbers[draws.random(rows) < NULL_SHARE] = -1
    return numbers


def _unit_part(spec: ReleaseSpec, numbers: NDArray[np.int64], place: int) -> Values:
    """The values of one of the columns that identify a privacy unit."""
    many = len(spec.privacy_unit.columns)
    parts = numbers // PARTS ** (many - 1 - place)
    if place > 0:
        parts = parts % PARTS
    return [None if number < 0 else f"u{part}" for number, part in zip(numbers, parts.tolist(), strict=True)]


def _axis_values(axis: Axis, rows: int, draws: np.random.Generator) -> Values:
    cells = draws.integers(0, axis.size, rows)
    undeclared = draws.random(rows) < UNDECLARED_SHARE
    if isinstance(axis, CategoricalAxis):
        return _categories(axis.values, cells, undeclared)
    if isinstance(axis, BandedAxis):
        first = {cell: text for text, cell in reversed([*axis.bands.items()])}
        return _categories([first[cell] for cell in sorted(first)], cells, undeclared)
    return _numbers(axis, cells, undeclared, draws.uniform(0.05, 0.95, rows))


def _categories(texts: Sequence[str], cells: NDArray[np.int64], undeclared: NDArray[np.bool_]) -> Values:
    stranger = "not declared"
    while stranger in texts:
        stranger += "_"
    named: list[str | None] = [*texts, None]
    return [stranger if odd else named[cell] for cell, odd in zip(cells.tolist(), undeclared.tolist(), strict=True)]


def _numbers(
    axis: BinnedAxis, cells: NDArray[np.int64], undeclared: NDArray[np.bool_], shares: NDArray[np.float64]
) -> Values:
    """Numbers inside the drawn bins; days on a calendar axis."""
    lower, upper = (bounds.copy() for bounds in axis.bounds)
    first, last = axis.edges[1] - axis.edges[0], axis.edges[-1] - axis.edges[-2]
    lower[np.isneginf(lower)] = axis.edges[0] - first
    upper[np.isposinf(upper)] = axis.edges[-1] + last
    drawn = lower[cells] + (upper - lower)[cells] * shares
    drawn[undeclared] = axis.edges[-1] + last * (1 + shares[undeclared])
    if not isinstance(axis, CalendarAxis):
        return [None if number != number else number for number in drawn.tolist()]
    return [None if number != number else day_of(np.floor(number)) for number in drawn.tolist()]


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _as_csv(spec: ReleaseSpec, columns: dict[str, Values]) -> InventedRecords:
    """The same records as text; values that a CSV file without quotes cannot hold are empty, as in real files."""
    lines: dict[str, Values] = {name: [_csv_text(spec, value) for value in values] for name, values in columns.items()}
    if spec.csv_quote:
        return InventedRecords(lines)
    parting = spec.csv_delimiter
    for name in columns:
        if parting in name:
            raise rehearsal_refused(f"column {name!r} contains the delimiter; declare `csv_quote`")
    remarks = [
        f"Odd: no row can have the categories of {axis.name} that hold {parting!r}; declare `csv_quote`"
        for axis in spec.domain.axes
        if isinstance(axis, ByText) and any(parting in text for text in axis.texts)
    ]
    kept: dict[str, Values] = {
        name: [None if isinstance(value, str) and parting in value else value for value in values]
        for name, values in lines.items()
    }
    return InventedRecords(kept, tuple(remarks))


def _csv_text(spec: ReleaseSpec, value: Value) -> str | None:
    text = _text(value)
    return text.replace(".", ",") if spec.decimal_comma and isinstance(value, float) and text else text

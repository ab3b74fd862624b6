"""Which columns Spark reads exactly as DuckDB does, and their SQL; all others are refused.

Text is not parsed: engines disagree on what is a number, a day or a time stamp. So numbers, days and times are taken in
types of their own, and text for units and categories only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyarrow import parquet

from dphist_pipeline.base.declared_numbers import axis_for_type, keys_of
from dphist_pipeline.base.domain import Axis, BinnedAxis, ByText, CalendarAxis
from dphist_pipeline.base.sql_files import literal
from dphist_pipeline.base.unit_forms import BYTE_ORDER_MARK
from dphist_pipeline.base.zone_data import spans_of
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused

PLAIN = {"INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double", "BOOLEAN": "boolean"}
# By bits, and whether they have a sign: Spark has no type without one, and the next wider one holds the values.
WHOLE = {(8, True): "tinyint", (16, True): "smallint", (32, True): "int", (64, True): "bigint"}
WHOLE |= {(8, False): "smallint", (16, False): "int", (32, False): "bigint"}
WHOLE_NUMBERS, TIMES = ("tinyint", "smallint", "int", "bigint"), ("date", "timestamp", "timestamp_ntz")
MOST_DIGITS = 15  # of a decimal: each is the nearest one to a double of its own

A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Columns:
    """The columns that a plan needs, of known types."""

    plan: CountingPlan
    types: Mapping[str, str]  # of Spark, by name

    @property
    def schema(self) -> str:
        """The schema in the form of Spark's reader."""
        return ", ".join(f"{_identifier(name)} {kind}" for name, kind in self.types.items())

    @property
    def text(self) -> list[str]:
        """The columns that are text."""
        return [name for name, kind in self.types.items() if kind == "string"]

    @property
    def unit(self) -> str:
        """SQL of the unit of a row, as `units.unit_sql` for DuckDB; null where it cannot be told."""
        columns = self.plan.privacy_unit.columns
        if len(columns) == 1:
            return self._name(columns[0]) if columns[0] in self.text else f"CAST({_identifier(columns[0])} AS BIGINT)"
        several = (f"CAST(octet_length({part}) AS STRING), ':', {part}" for part in map(self._name, columns))
        return f"concat({', '.join(several)})"

    def _name(self, column: str) -> str:
        name = _identifier(column)
        if column not in self.text:
            return f"CAST({name} AS STRING)"
        mark = literal(BYTE_ORDER_MARK)
        name = f"CASE WHEN startswith({name}, {mark}) THEN nullif(trim(LEADING {mark} FROM {name}), '') ELSE {name} END"
        return (
            f"CASE WHEN contains({name}, '?') OR NOT is_valid_utf8({name}) THEN NULL "
            f"WHEN octet_length({name}) > {lengths.LONGEST_NAME} "
            f"THEN concat({lengths.NAME_DIGEST}, sha2(CAST({name} AS BINARY), 256)) ELSE {name} END"
        )

    def value_of(self, axis: Axis) -> str:
        """SQL of an axis' value, as `positions.Positions.value` for DuckDB."""
        name, kind = _identifier(axis.column), self.types[axis.column]
        if isinstance(axis, ByText):
            return f"CAST({name} AS STRING)"
        if not isinstance(axis, CalendarAxis):
            return f"CASE WHEN NOT isnan(CAST({name} AS DOUBLE)) THEN CAST({name} AS DOUBLE) END"
        value = _since_1970(name, kind)
        # What is no day for DuckDB, as a time that is infinite, is in no bin here: calendars have no open ends.
        day = value if kind == "date" else f"{value} div {A_DAY} - IF({value} % {A_DAY} < 0, 1, 0)"
        return f"CAST({day} AS DOUBLE)"

    def read(self, axis: Axis) -> Axis:
        """The axis with edges for the values of its column, as `positions` has them for DuckDB."""
        return (
            axis_for_type(axis, "FLOAT")
            if isinstance(axis, BinnedAxis) and self.types[axis.column] == "float"
            else axis
        )

    def texts_of(self, axis: ByText) -> dict[str, int]:
        """The texts that are counted in a cell: of whole numbers, as the engine writes them."""
        kind = {"string": "VARCHAR", "boolean": "BOOLEAN"}.get(self.types[axis.column], "BIGINT")
        return keys_of(axis, kind).places

    @property
    def in_period(self) -> str:
        """SQL of whether a row happened in the plan's period."""
        column, period = self.plan.period_column, self.plan.period
        if column is None or period.start is None or period.end is None:
            return "true"
        value, kind = _since_1970(_identifier(column), self.types[column]), self.types[column]
        start, end = period.start.replace(tzinfo=None), period.end.replace(tzinfo=None)
        if kind == "timestamp":  # instants: Spark has zone data of its own, and DuckDB's decide
            spans = [
                (first * 1_000_000, after * 1_000_000) for first, after in spans_of(self.plan.time_zone, start, end)
            ]
        else:
            spans = [(_local(start, kind), _local(end, kind))]
        return f"({' OR '.join(f'{value} >= {first}L AND {value} < {after}L' for first, after in spans)})"


def _since_1970(name: str, kind: str) -> str:
    """SQL of a time as a number of days or microseconds, without a zone as if it were in UTC."""
    return f"unix_date({name})" if kind == "date" else f"unix_micros(CAST({name} AS TIMESTAMP))"


def _local(moment: datetime, kind: str) -> int:
    days = moment - datetime(1970, 1, 1)
    return days.days if kind == "date" else days.days * A_DAY + days.seconds * 1_000_000


def columns_of(plan: CountingPlan, footers: Sequence[parquet.FileMetaData]) -> Columns:
    """The columns that a plan needs, from the footers of its files.

    Args:
        plan: over Parquet files, with columns that `ingest.check_columns` has passed.
        footers: of every file, at least one; their statistics are not looked at.

    Raises:
        ColumnRefused, SourceRefused: for what Spark would not read as DuckDB does.
    """
    uses, where = list(_uses(plan)), plan.source.written
    types_of_files = [{name: _type_of(footer, name) for name, _ in uses} for footer in footers]
    if any(types != types_of_files[0] for types in types_of_files):
        raise SourceRefused(where, "has files whose columns differ in type, which engines read in different ways")
    if any(b"org.apache.spark.legacyDateTime" in (footer.metadata or {}) for footer in footers):
        raise SourceRefused(where, "was written by a Spark that counted days in another calendar; write it anew")
    for name, served in uses:
        if types_of_files[0][name].partition("(")[0] not in served:
            kinds = f"{', '.join(served[:-1])} or {served[-1]}"
            problem = (
                f"is of type {types_of_files[0][name]}, and Spark reads exactly what DuckDB does where it is {kinds}"
            )
            raise ColumnRefused(name, f"{problem}; write it as one of these, or use `engine: duckdb`")
    for axis in plan.domain.axes:
        if axis.reads == "days" and plan.time_zone != "UTC":
            raise ColumnRefused(axis.column, "is cut into days, for which `engine: spark` needs `time_zone: UTC`")
        if isinstance(axis, BinnedAxis) and axis.unit is not None:
            raise ColumnRefused(axis.column, "is a length of time, which Spark reads otherwise; use `engine: duckdb`")
        if isinstance(axis, ByText) and axis.tidy:
            problem = "is tidied, and engines differ in what a lower-case letter is; use `engine: duckdb`"
            raise ColumnRefused(axis.column, problem)
        if isinstance(axis, ByText) and any("?" in text for text in axis.texts):
            problem = "has a category with ?, as which DuckDB reads text that is not UTF-8; use `engine: duckdb`"
            raise ColumnRefused(axis.column, problem)
    return Columns(plan, types_of_files[0])


def _uses(plan: CountingPlan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The columns of a plan, and the types that serve there."""
    for column in () if plan.privacy_unit == "row" else plan.privacy_unit.columns:
        yield column, (*WHOLE_NUMBERS, "string")
    if plan.period_column is not None:
        yield plan.period_column, TIMES
    for axis in plan.domain.axes:
        if isinstance(axis, ByText):
            yield axis.column, (*WHOLE_NUMBERS, "boolean", "string")
        else:
            numbers = (*WHOLE_NUMBERS, "float", "double", "decimal")
            yield axis.column, TIMES if axis.reads == "days" else numbers


def _type_of(footer: parquet.FileMetaData, name: str) -> str:
    """Spark's type of a column, as it stands in a file."""
    columns = [footer.schema.column(number) for number in range(footer.num_columns)]
    alike = [column for column in columns if column.path.partition(".")[0].lower() == name.lower()]
    here = [column for column in columns if column.path == column.name == name and column.max_definition_level < 2]
    if len(here) != 1 or len(alike) > 1 or here[0].max_repetition_level:
        raise ColumnRefused(name, "is not one plain column of every file, or differs from another in case alone")
    return _spark_type(here[0].physical_type, json.loads(here[0].logical_type.to_json()))


def _spark_type(physical: str, logical: Mapping[str, Any]) -> str:
    match logical["Type"]:
        case "None" if physical in PLAIN:
            return PLAIN[physical]
        case "Int" if (logical["bitWidth"], logical["isSigned"]) in WHOLE:
            return WHOLE[logical["bitWidth"], logical["isSigned"]]
        case "Decimal" if 0 <= logical["scale"] <= logical["precision"] <= MOST_DIGITS:
            return f"decimal({logical['precision']}, {logical['scale']})"
        case "Timestamp" if logical["timeUnit"] == "microseconds" and not logical["is_from_converted_type"]:
            return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
        case "String" | "Date" as kind:
            return str(kind).lower()
    return f"another type ({physical.lower()}, {logical['Type'].lower()})"


def _identifier(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

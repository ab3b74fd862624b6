"""Which columns Spark reads exactly as DuckDB does, and their SQL; all others are refused.

Text is not parsed: engines disagree on what is a number, a day or a time stamp. So numbers, days and times are taken in
types of their own, and text for units and categories only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyarrow import parquet

from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading import lengths
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused, withheld
from dphist_pipeline.domain import Axis, CalendarAxis, CategoricalAxis

WHOLE = {(8, True): "tinyint", (16, True): "smallint", (32, True): "int", (64, True): "bigint"}
# Spark has no unsigned types; these hold the values of narrower ones.
WHOLE |= {(8, False): "smallint", (16, False): "int", (32, False): "bigint"}
PLAIN = {"INT32": "int", "INT64": "bigint", "FLOAT": "float", "DOUBLE": "double", "BOOLEAN": "boolean"}
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
TIMES = ("date", "timestamp", "timestamp_ntz")
MOST_DIGITS = 15  # every decimal with as many is the nearest to a double of its own
INSTEAD = "Give it another type, or use `engine: duckdb`"

# The days and microseconds since 1970 that are a day for DuckDB.
LAST_DAY = 106_751_991
FIRST_LOCAL = -9_223_371_158_400_000_000  # as `source.FIRST_TIME`
INFINITE = (1 << 63) - 1
A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Columns:
    """The columns that a plan needs, of known types."""

    plan: CountingPlan
    types: Mapping[str, str]  # of Spark, by name

    @property
    def schema(self) -> str:
        """As Spark's reader takes it."""
        return ", ".join(f"{_identifier(name)} {kind}" for name, kind in self.types.items())

    def refuse_unsafe(self, keeps_bytes: bool) -> None:
        """Refuses text where an engine fails on text that is not UTF-8: one row would decide whether it is counted."""
        texts = [name for name, kind in self.types.items() if kind == "string"]
        if texts and not keeps_bytes:
            problem = (
                "is text, and this engine fails on a text that is not UTF-8, so that one row would decide whether a "
                "release fails. Give whole numbers instead, have Apache Spark count, or use `engine: duckdb`"
            )
            raise ColumnRefused(texts[0], problem)

    @property
    def unit(self) -> str:
        """SQL of the unit of a row, as `units.unit_sql` for DuckDB; null where it cannot be told."""
        columns = self.plan.privacy_unit.columns
        if len(columns) == 1 and self.types[columns[0]] in WHOLE_NUMBERS:
            return f"CAST({_identifier(columns[0])} AS BIGINT)"
        parts = [self._name(column) for column in columns]
        several = (f"CAST(octet_length({part}) AS STRING), ':', {part}" for part in parts)
        return parts[0] if len(parts) == 1 else f"concat({', '.join(several)})"

    def _name(self, column: str) -> str:
        name = _identifier(column)
        if self.types[column] != "string":
            return f"CAST({name} AS STRING)"
        long = f"concat({lengths.NAME_DIGEST}, sha2(CAST({name} AS BINARY), 256))"
        return (
            f"CASE WHEN contains({name}, '?') OR NOT is_valid_utf8({name}) THEN NULL "
            f"WHEN octet_length({name}) > {lengths.LONGEST_NAME} THEN {long} ELSE {name} END"
        )

    def value_of(self, axis: Axis) -> str:
        """SQL of an axis' value, as `positions.Positions.value` for DuckDB."""
        name, kind = _identifier(axis.column), self.types[axis.column]
        if isinstance(axis, CategoricalAxis):
            return f"CAST({name} AS STRING)"
        if not isinstance(axis, CalendarAxis):
            return f"CASE WHEN isnan(CAST({name} AS DOUBLE)) THEN NULL ELSE CAST({name} AS DOUBLE) END"
        if kind == "date":
            days = f"unix_date({name})"
            return f"CASE WHEN {days} BETWEEN {-LAST_DAY} AND {LAST_DAY} THEN CAST({days} AS DOUBLE) END"
        moment = f"unix_micros(CAST({name} AS TIMESTAMP))"
        known = f"{moment} NOT IN ({INFINITE}, {-INFINITE})"
        known += f" AND {moment} >= {FIRST_LOCAL}" if kind == "timestamp_ntz" else ""
        day = f"{moment} div {A_DAY} - CASE WHEN {moment} % {A_DAY} < 0 THEN 1 ELSE 0 END"
        return f"CASE WHEN {known} THEN CAST({day} AS DOUBLE) END"

    @property
    def in_period(self) -> str:
        """SQL of whether a row happened in the plan's period."""
        plan = self.plan
        if plan.period_column is None or plan.period.start is None or plan.period.end is None:
            return "true"
        name, kind = _identifier(plan.period_column), self.types[plan.period_column]
        value = f"unix_date({name})" if kind == "date" else f"unix_micros(CAST({name} AS TIMESTAMP))"
        start, end = (_number(moment, kind) for moment in (plan.period.start, plan.period.end))
        return f"{value} >= {start} AND {value} < {end}"


def _number(moment: datetime, kind: str) -> int:
    """An end of a period in the unit of a column: days, or microseconds, local ones unless the column has a zone."""
    shown = moment.astimezone(UTC) if kind == "timestamp" else moment.replace(tzinfo=UTC)
    since = shown - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days if kind == "date" else since.days * A_DAY + since.seconds * 1_000_000


def columns_of(plan: CountingPlan, files: Sequence[Path]) -> Columns:
    """The columns that a plan needs, from the footers of Parquet files.

    Raises:
        ColumnRefused, SourceRefused: for types that Spark would not read as DuckDB does.
    """
    where = plan.source.written
    footers = withheld(
        where, "has a damaged file", lambda: [parquet.read_metadata(file) for file in files], (Exception,)
    )
    units = () if plan.privacy_unit == "row" else plan.privacy_unit.columns
    period = () if plan.period_column is None else (plan.period_column,)
    names = dict.fromkeys([*units, *period, *(axis.column for axis in plan.domain.axes)])
    found = [{name: _type_of(footer, name) for name in names} for footer in footers]
    if any(types != found[0] for types in found):
        raise SourceRefused(
            where, "has files whose columns differ in type, which Spark reads in another way than DuckDB"
        )
    old = any((footer.metadata or {}).keys() & {b"org.apache.spark.legacyDateTime"} for footer in footers)
    if old and {*TIMES} & {*found[0].values()}:
        raise SourceRefused(where, "was written by an old Spark, which counted days in another calendar; write it anew")
    _check(plan, found[0])
    return Columns(plan, found[0])


def _type_of(footer: parquet.FileMetaData, name: str) -> str:
    """Spark's type of a column, as it stands in a file."""
    columns = [footer.schema.column(number) for number in range(footer.num_columns)]
    here = [
        column for column in columns if column.path.partition(".")[0].lower() == name.lower() or column.path == name
    ]
    if len(here) != 1 or here[0].path != name or here[0].max_definition_level > 1 or here[0].max_repetition_level:
        raise ColumnRefused(name, "is not one plain column of every file, apart from upper and lower case")
    kind = _spark_type(here[0].physical_type, json.loads(here[0].logical_type.to_json()))
    if kind is None:
        raise ColumnRefused(name, f"has a type that Spark reads in another way than DuckDB. {INSTEAD}")
    return kind


def _spark_type(physical: str, logical: Mapping[str, Any]) -> str | None:
    match logical["Type"]:
        case "None":
            return PLAIN.get(physical)
        case "Int":
            return WHOLE.get((logical["bitWidth"], logical["isSigned"]))
        case "String":
            return "string"
        case "Date":
            return "date"
        case "Decimal" if 0 <= logical["scale"] <= logical["precision"] <= MOST_DIGITS:
            return f"decimal({logical['precision']}, {logical['scale']})"
        case "Timestamp" if logical["timeUnit"] == "microseconds" and not logical["is_from_converted_type"]:
            return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    return None


def _check(plan: CountingPlan, types: Mapping[str, str]) -> None:
    """Refuses types that would have to be parsed, or that engines write as text in several ways."""
    for column in () if plan.privacy_unit == "row" else plan.privacy_unit.columns:
        _refuse_unless(
            types[column] in (*WHOLE_NUMBERS, "string"), column, "as a privacy unit takes whole numbers and text"
        )
    if plan.period_column is not None:
        _refuse_unless(
            types[plan.period_column] in TIMES, plan.period_column, "takes days and times in types of their own"
        )
    for axis in plan.domain.axes:
        kind = types[axis.column]
        if isinstance(axis, CategoricalAxis):
            served = kind in (*WHOLE_NUMBERS, "string", "boolean")
            _refuse_unless(served, axis.column, "as categories takes text, whole numbers and truth values")
            if kind == "string" and any("?" in value for value in axis.values):
                raise ColumnRefused(axis.column, f"has a category with ?, as which DuckDB reads broken text. {INSTEAD}")
        elif isinstance(axis, CalendarAxis):
            _refuse_unless(kind in TIMES, axis.column, "takes days and times in types of their own")
            _refuse_unless(plan.time_zone == "UTC", axis.column, "finds the day of a time in UTC alone")
        else:
            _refuse_unless(
                kind not in ("string", "boolean", *TIMES), axis.column, "as numbers takes no text and no times"
            )


def _refuse_unless(served: bool, column: str, rule: str) -> None:
    if not served:
        raise ColumnRefused(column, f"cannot be read by Spark exactly as by DuckDB: `engine: spark` {rule}. {INSTEAD}")


def _identifier(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

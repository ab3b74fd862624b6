"""Who a row belongs to: one value for each privacy unit, and null for rows whose unit cannot be told.

Made in two projections: names in their declared form, then one short value of them. In one, the form would be worked
out anew wherever the value mentions it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import (
    Source,
)
from dphist_pipeline.declared_numbers import FLOATS, NUMBERS, WHOLE_NUMBERS
from dphist_pipeline.sql_files import identifier, literal

UNITS = (*NUMBERS, "UUID")
UNITS_THAT_FIT_INT64 = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
# What `trim` takes away: blanks of all kinds that keyboards and programs leave at the ends.
BLANKS = "chr(32) || chr(9) || chr(10) || chr(13) || chr(160)"


def kind_of(kind: str) -> str:
    """What a unit's column holds: text, whole number, number or UUID, whatever the width that a file writes.

    Args:
        kind: DuckDB type without parameters; NULL, of a column without values, stays as it is.
    """
    if kind in lengths.TEXT:
        return "text"
    if kind in WHOLE_NUMBERS:
        return "whole number"
    return "number" if kind in NUMBERS else kind


@dataclass(frozen=True)
class UnitSql:
    """SQL of the unit of a row."""

    names: dict[str, str]  # what names the unit, by the column's name in the next projection
    unit: str  # one value of those; where that is text, it is short (see `lengths`)
    known: str  # whether those tell the unit; else all rows whose unit cannot be told would share one


def unit_sql(columns: tuple[str, ...], forms: tuple[str, ...], source: Source) -> UnitSql:
    """SQL of what a row belongs to.

    Several columns make one text, each part after its length: no two different tuples give the same.

    Args:
        forms: what text is brought into before it is compared, one after the other: trim, lower, nfc.
        source: that has these columns, of types that serve.
    """
    if len(columns) == 1 and source.types[columns[0]] in UNITS_THAT_FIT_INT64:
        return UnitSql({"name_0": f"CAST({identifier(columns[0])} AS BIGINT)"}, "name_0", "name_0 IS NOT NULL")
    names, parts, conditions = {}, [], []
    for number, column in enumerate(columns):
        is_text, name, digest = source.types[column] in lengths.TEXT, f"name_{number}", f"digest_{number}"
        names[name] = _text(column, forms, source)
        part, known = lengths.short_name(name) if is_text else name, f"{name} IS NOT NULL"
        if is_text and forms:
            names[digest] = _digest(column, source)
            part, known = f"coalesce({digest}, {part})", f"({known} OR {digest} IS NOT NULL)"
        parts.append(part)
        conditions.append(known)
    several = (f"CAST(strlen({part}) AS VARCHAR) || ':' || {part}" for part in parts)
    return UnitSql(names, parts[0] if len(parts) == 1 else " || ".join(several), " AND ".join(conditions))


def _digest(column: str, source: Source) -> str:
    """The digest of a name that is too long to be normalised, else null."""
    text = f"TRY_CAST({identifier(column)} AS VARCHAR)"
    digest = f"CASE WHEN strlen({text}) > {lengths.LONGEST_TEXT} THEN {lengths.TEXT_DIGEST} || sha256({text}) END"
    return _unless_replaced(text, digest, source.replaced)


def _text(column: str, forms: tuple[str, ...], source: Source) -> str:
    name, kind = identifier(column), source.types[column]
    text = f"TRY_CAST({name} AS VARCHAR)"
    if kind in FLOATS:
        return f"CASE WHEN isnan({name}) THEN NULL WHEN {name} = 0 THEN '0.0' ELSE {text} END"
    if kind not in lengths.TEXT:
        return text
    normal = _normal(text, forms)
    if forms:
        normal = f"CASE WHEN strlen({text}) > {lengths.LONGEST_TEXT} THEN NULL ELSE {normal} END"
    return _unless_replaced(text, normal, source.replaced)


def _unless_replaced(text: str, name: str, sign: str) -> str:
    # Bytes that are no text are read as this sign. Two people whose names differ in such bytes alone would become one
    # unit, and bounding them together would make the kept rows of one depend on the other.
    return f"CASE WHEN contains({text}, {literal(sign)}) THEN NULL ELSE {name} END" if sign else name


def _normal(text: str, forms: tuple[str, ...]) -> str:
    """A text in its declared form; null where it is empty after trimming."""
    for form in forms:
        match form:
            case "trim":
                text = f"nullif(trim({text}, {BLANKS}), '')"
            case "lower":
                text = f"lower({text})"
            case "nfc":
                # DuckDB's cuts text off at a NUL, which would make two names one.
                text = f"CASE WHEN contains({text}, chr(0)) THEN NULL ELSE nfc_normalize({text}) END"
    return text

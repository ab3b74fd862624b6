"""Who a row belongs to: one value for each privacy unit, and null for rows whose unit cannot be told.

Made in two projections: names in their declared form, then one short value of them. In one, the form would be worked
out anew wherever the value mentions it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from dphist_pipeline.base import unit_forms
from dphist_pipeline.base.declared_numbers import FLOATS, NUMBERS, WHOLE_NUMBERS
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import OpenedSource

UNITS = (*NUMBERS, "UUID")
UNITS_THAT_FIT_INT64 = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


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
    steps: tuple[dict[str, str], ...]  # projections that bring names into their forms, one after the other
    unit: str  # one value of those; where that is text, it is short (see `lengths`)
    known: str  # whether those tell the unit; else all rows whose unit cannot be told would share one


def unit_sql(columns: tuple[str, ...], forms: tuple[str, ...], source: OpenedSource, point: str = ".") -> UnitSql:
    """SQL of what a row belongs to.

    Several columns make one text, each part after its length: no two different tuples give the same.

    Args:
        forms: what text is brought into before it is compared, one after the other; see `unit_forms`.
        source: that has these columns, of types that serve.
        point: the sign before decimals of numbers in text.
    """
    if len(columns) == 1 and source.types[columns[0]] in UNITS_THAT_FIT_INT64:
        return UnitSql({"name_0": f"CAST({identifier(columns[0])} AS BIGINT)"}, (), "name_0", "name_0 IS NOT NULL")
    names, parts, conditions = {}, [], []
    steps: dict[str, list[str]] = {}
    for number, column in enumerate(columns):
        is_text, name, digest = source.types[column] in lengths.TEXT, f"name_{number}", f"digest_{number}"
        formed = forms if is_text else tuple(form for form in forms if form == "number")
        names[name] = _text(column, formed, source)
        steps[name] = [step for form in formed for step in unit_forms.form_steps(form, name, point)]
        part, known = lengths.short_name(name) if is_text else name, f"{name} IS NOT NULL"
        if is_text and forms:
            names[digest] = _digest(column, source)
            part, known = f"coalesce({digest}, {part})", f"({known} OR {digest} IS NOT NULL)"
        parts.append(part)
        conditions.append(known)
    several = (f"CAST(strlen({part}) AS VARCHAR) || ':' || {part}" for part in parts)
    projections = tuple(
        {name: step for name, step in zip(steps, level, strict=True) if step} for level in zip_longest(*steps.values())
    )
    return UnitSql(names, projections, parts[0] if len(parts) == 1 else " || ".join(several), " AND ".join(conditions))


def _digest(column: str, source: OpenedSource) -> str:
    """The digest of a name that is too long to be normalised, else null."""
    text = f"TRY_CAST({identifier(column)} AS VARCHAR)"
    digest = f"CASE WHEN strlen({text}) > {lengths.LONGEST_TEXT} THEN {lengths.TEXT_DIGEST} || sha256({text}) END"
    return _unless_replaced(text, digest, source.replaced)


def _text(column: str, forms: tuple[str, ...], source: OpenedSource) -> str:
    name, kind = identifier(column), source.types[column]
    text = f"TRY_CAST({name} AS VARCHAR)"
    if kind in FLOATS and "number" in forms:
        return whole_text(name, kind)
    if kind in FLOATS:
        return f"CASE WHEN isnan({name}) THEN NULL WHEN {name} = 0 THEN '0.0' ELSE {text} END"
    if kind not in lengths.TEXT:
        return text
    # The first sign of a file that was joined to another; it is no part of a text.
    mark = literal(unit_forms.BYTE_ORDER_MARK)
    normal = f"CASE WHEN starts_with({text}, {mark}) THEN nullif(ltrim({text}, {mark}), '') ELSE {text} END"
    if forms:
        normal = f"CASE WHEN strlen({text}) > {lengths.LONGEST_TEXT} THEN NULL ELSE {normal} END"
    return _unless_replaced(text, normal, source.replaced)


def whole_text(name: str, kind: str) -> str:
    """SQL of a float as the text by which `number` compares it; null where several whole numbers share the float."""
    most = 1 << (24 if kind == "FLOAT" else 53)
    return (
        f"CASE WHEN isnan({name}) OR abs({name}) >= {most} THEN NULL "
        f"WHEN {name} = trunc({name}) THEN TRY_CAST(TRY_CAST({name} AS BIGINT) AS VARCHAR) "
        f"ELSE TRY_CAST({name} AS VARCHAR) END"
    )


def _unless_replaced(text: str, name: str, sign: str) -> str:
    # Bytes that are no text are read as this sign. Two people whose names differ in such bytes alone would become one
    # unit, and bounding them together would make the kept rows of one depend on the other.
    return f"CASE WHEN contains({text}, {literal(sign)}) THEN NULL ELSE {name} END" if sign else name

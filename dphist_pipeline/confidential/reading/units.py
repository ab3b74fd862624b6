"""Who a row belongs to: one value for each privacy unit, and null for rows whose unit cannot be told."""

from __future__ import annotations

from dphist_pipeline.confidential.reading import lengths
from dphist_pipeline.confidential.reading.source import NUMBERS, Source
from dphist_pipeline.sql_files import identifier

UNITS = (*NUMBERS, "UUID")
UNITS_THAT_FIT_INT64 = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
# What `trim` takes away: blanks of all kinds that keyboards and programs leave at the ends.
BLANKS = "chr(32) || chr(9) || chr(10) || chr(13) || chr(160)"


def unit_of(columns: tuple[str, ...], forms: tuple[str, ...], source: Source) -> str:
    """SQL of a row's unit, null where it cannot be told: such rows are dropped, else they would share one unit.

    Several columns make one text, each part after its length: no two different tuples give the same. Long names are
    digests (`lengths`), part by part.

    Args:
        columns: that name a unit together.
        forms: what text is brought into before it is compared.
        source: with the columns' types.
    """
    if len(columns) == 1:
        (column,) = columns
        kind = source.types[column]
        return f"CAST({identifier(column)} AS BIGINT)" if kind in UNITS_THAT_FIT_INT64 else _text(column, forms, source)
    texts = [_text(column, forms, source) for column in columns]
    return " || ".join(f"CAST(strlen({text}) AS VARCHAR) || ':' || {text}" for text in texts)


def _text(column: str, forms: tuple[str, ...], source: Source) -> str:
    name, kind = identifier(column), source.types[column]
    text = f"TRY_CAST({name} AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({name}) THEN NULL WHEN {name} = 0 THEN '0.0' ELSE {text} END"
    if kind not in lengths.TEXT:
        return text
    short = lengths.short_name(text, _normal(text, forms))
    if not source.replaces_bytes:
        return short
    # Bytes that are not UTF-8 are read as '?'. Two people whose names differ in such bytes alone would become one unit,
    # and bounding them together would make the kept rows of one depend on the other.
    return f"CASE WHEN contains({text}, '?') THEN NULL ELSE {short} END"


def _normal(text: str, forms: tuple[str, ...]) -> str:
    """A text in its declared form; what is empty after trimming names nobody."""
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

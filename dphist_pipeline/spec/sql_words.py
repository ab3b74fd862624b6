"""Words that SQL keeps for itself, so that no published name needs quotes.

All that DuckDB 2.0 lists as `reserved` or `type_function` in `duckdb_keywords()`, and the verbs, nouns and
functions of the SQL standard that would trip a reader elsewhere. Ordinary names of axes (age, name, type,
year, week, time, date, position, region) are not among them: they stand bare in every query. A test
compares with DuckDB.
"""

from __future__ import annotations


def _words(lines: str) -> frozenset[str]:
    return frozenset(lines.split())


DUCKDB_RESERVED = _words(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
    create default deferrable desc describe distinct do else end except false fetch for foreign from group
    having in initially intersect into lambda lateral leading limit not null offset on only or order pivot
    pivot_longer pivot_wider placing primary qualify references returning select show some summarize
    symmetric table then to trailing true union unique unpivot using variadic when where window with
    """
)

DUCKDB_TYPES_AND_FUNCTIONS = _words(
    """
    anti asof at authorization binary by collation columns concurrently cross freeze full generated glob
    ilike inner is isnull join left like map natural notnull outer overlaps positional right semi similar
    struct tablesample try_cast tuple unpack verbose
    """
)

STANDARD = _words(
    """
    alter attach begin between call coalesce commit copy current_catalog current_date current_role
    current_schema current_time current_timestamp current_user cursor database deallocate declare delete
    detach drop escape exec execute exists explain export extract grant grouping import index insert
    install interval load localtime localtimestamp merge nullif over partition pragma prepare procedure
    recursive replace revoke rollback row rows savepoint schema session_user set setof substring
    system_user transaction trigger trim truncate update use user vacuum values varchar view within
    """
)

SQL_WORDS = DUCKDB_RESERVED | DUCKDB_TYPES_AND_FUNCTIONS | STANDARD

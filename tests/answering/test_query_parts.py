"""A part of a query that is read once stands where it is read, the others stay, and no statement gives other rows."""

from __future__ import annotations

import re

import duckdb
import pytest

from dphist_pipeline.answering._query_parts import compact_statement

HEAD = "CREATE MACRO answer() AS TABLE\n"


def parts_of(statement: str) -> list[str]:
    return re.findall(r"^(\w+) AS (?:MATERIALIZED )?\(", statement, re.MULTILINE)


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a", []),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT 2 AS y) SELECT one.x, b.y FROM a AS one, b", []),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM b, b AS other", ["b"]),
        ("WITH a AS (SELECT 1 AS x), b AS (FROM a) SELECT * FROM (a JOIN b ON a.x = b.x)", ["a"]),
        ("WITH a AS MATERIALIZED (SELECT 1 AS x) SELECT x FROM a", ["a"]),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT 2 AS x) SELECT x FROM b", []),  # nobody reads a
        # A text may be asked as a query.
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM query('SELECT x FROM a')", ["a"]),
        # These name columns, no tables.
        ("WITH a AS (SELECT 1 AS a, 2 AS b), b AS (SELECT 3 AS c) SELECT a.b, a, b.c FROM a, b GROUP BY ALL", []),
        ("WITH a AS (SELECT 1 AS a, 2 AS b) SELECT least(a, b), list(a) FROM a GROUP BY a, b", []),
        (
            "WITH a AS (SELECT 1 AS x) SELECT x IS DISTINCT FROM a AS b FROM (SELECT 1 AS x, 2 AS a) JOIN a USING (x)",
            [],
        ),
        ("WITH range AS (SELECT 1 AS x) SELECT count(*) FROM range(3) AS r, range", []),
        # A row is a struct by the name of its part.
        ("WITH a AS (SELECT 1 AS x) SELECT a AS row FROM (SELECT 1 AS y) LEFT JOIN a ON a.x = y", []),
        ("WITH a AS (SELECT ')' AS x) SELECT x, (SELECT count(*) FROM a AS b WHERE b.x = a.x) FROM a", ["a"]),
        ("WITH a AS (SELECT '(' AS x) -- FROM a, a\nSELECT x FROM a", []),
        ("WITH a AS (SELECT 1 AS x) SELECT 2 WHERE EXISTS (FROM a) UNION ALL FROM range(3) AS r(a) ORDER BY ALL", []),
    ],
)
def test_a_part_that_is_read_once_stands_where_it_is_read(query: str, parts: list[str]) -> None:
    statement = compact_statement(HEAD + query)
    assert parts_of(statement) == parts
    with duckdb.connect() as connection:
        expected = connection.execute(query).fetchall()
        connection.execute(statement)
        assert connection.execute("FROM answer()").fetchall() == expected


def test_parts_within_parts_are_written_in_their_place() -> None:
    parts = "WITH a AS (SELECT 1 AS x),\n-- Twice as much.\nb AS (SELECT 2 * x AS y FROM a)"
    written = compact_statement(f"{HEAD}{parts}\nSELECT y FROM b")
    assert written == f"{HEAD}\nSELECT y FROM (SELECT 2 * x AS y FROM (SELECT 1 AS x) AS a) AS b"
    assert compact_statement("CREATE MACRO plain() AS TABLE SELECT 1") == "CREATE MACRO plain() AS TABLE SELECT 1"

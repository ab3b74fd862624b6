"""Rows with the values that break queries, and random queries over them: more of them than are accepted."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import strategies as st

NASTY = """
    CREATE TEMP TABLE people AS
    SELECT i, d, s, TRY_CAST(s AS BIGINT) AS b, coalesce(moment, TRY_CAST(s AS TIMESTAMP)) AS t,
        coalesce(zoned, TRY_CAST(s AS TIMESTAMPTZ)) AS z, coalesce(day, TRY_CAST(s AS DATE)) AS day,
        TRY_CAST(s AS BOOLEAN) AS yes, s AS "a ""b"
    FROM (VALUES
        (0, 0.5, 'Surgery', NULL, NULL, NULL),
        (1, -0.0, '', NULL, NULL, NULL),
        (2, 'nan'::DOUBLE, '  İß ', 'infinity'::TIMESTAMP, 'infinity'::TIMESTAMPTZ, 'infinity'::DATE),
        (3, 'inf'::DOUBLE, '9223372036854775807', '-infinity', '-infinity', '-infinity'),
        (4, '-inf'::DOUBLE, '-9223372036854775808', NULL, NULL, NULL),
        (5, 1.7976931348623157e308, '5881580-07-10', NULL, NULL, NULL),
        (6, -1.7976931348623157e308, '5877642-06-25 (BC)', NULL, NULL, NULL),
        (7, 5e-324, '294247-01-10 04:00:54.775806+00', NULL, NULL, NULL),
        (8, 9.3e18, '290309-12-22 (BC) 00:00:00+00', NULL, NULL, NULL),
        (9, NULL, NULL, NULL, NULL, NULL),
        (10, 3, '%_\\' || chr(0) || '👩‍👧', NULL, NULL, NULL),
        (11, 1e19, '2026-02-28 23:59:60', NULL, NULL, NULL),
        (12, 2, 'true', '2026-03-02', '2026-03-02', '2026-03-02'),
        (13, -7, '02/03/2026', NULL, NULL, NULL)
    ) AS nasty (i, d, s, moment, zoned, day)
"""
ROWS = 14


@pytest.fixture(scope="module")
def nasty() -> Iterator[duckdb.DuckDBPyConnection]:
    """All nasty rows, and each alone, set up as ingest sets DuckDB up."""
    with duckdb.connect(config={"disabled_optimizers": "statistics_propagation", "threads": 1}) as connection:
        connection.execute("SET TimeZone = 'America/Sao_Paulo'")
        connection.execute(NASTY)
        for row in range(ROWS):
            connection.execute(f"CREATE TEMP TABLE alone_{row} AS FROM people WHERE i = {row}")
        yield connection


COLUMNS = ["d", "s", "b", "t", "z", "day", "yes", '"a ""b"', "source.s", "nobody", "current_date", "rowid"]
TYPES = ["DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ"]
OTHER_TYPES = ["INTEGER", "DECIMAL(3, 1)", "TIME", "INTERVAL", "INTEGER[]", "UUID", "BLOB", "JSON"]
CONSTANTS = {
    "DOUBLE": ["0", "1.5", "-1e308", "1e-300", "NULL"],
    "BIGINT": ["0", "-3", "999999999999999999", "NULL"],
    "VARCHAR": ["''", "'é'", "'%'", "'it''s'", "'Surgery'", "NULL"],
    "BOOLEAN": ["true", "false", "NULL"],
    "DATE": ["DATE '2026-02-28'", "CAST('infinity' AS DATE)"],
    "TIMESTAMP": ["TIMESTAMP '2026-02-28 12:00:00'", "TIMESTAMP '-infinity'"],
    "TIMESTAMPTZ": ["'2026-02-28 12:00:00+05'::TIMESTAMPTZ"],
}
PLACES = ["0", "1", "-1", "3", "10000", "-10000"]
PARTS = ["year", "quarter", "month", "week", "day", "hour", "isoyear", "isodow", "dayofyear", "century"]
PATTERNS = ["'^S'", "'('", "'[a-z]+$'", "s"]
FORMATS = ["'%d/%m/%Y'", "'%Y-%m-%d %H:%M:%S'", "'%q'", "'%Y %z'"]
BREAKING = [
    *(
        "sum(d)",
        "count(*)",
        "max(s)",
        "row_number() OVER ()",
        "random()",
        "now()",
        "d / 0",
        "d // 0",
        "b + 1",
        "abs(b)",
    ),
    *(
        "s::DOUBLE",
        "CAST(d AS BIGINT)",
        "s > 1",
        "day + 1",
        "last_day(day)",
        "repeat(s, 1000000)",
        "error(s)",
        "chr(b)",
    ),
    *("(SELECT max(d) FROM source)", "[s]", "{'a': s}", "s[1:2]", "#1", "?", "x -> x", "COLUMNS(*)", "TRY(s::DOUBLE)"),
    *("day + INTERVAL 1 DAY", "strftime(t, s)", "regexp_matches(s, s)", "s SIMILAR TO s", "s COLLATE NOCASE"),
    *("hash(s)", "list_sum([d])", "unnest([1, 2])", "s IN (SELECT s FROM source)", "lag(d) OVER (ORDER BY i)", "ln(d)"),
    *("to_timestamp(d)", "make_date(b, 1, 1)", "strptime(s, '%Y')", "date_diff('day', t, t)", "age(t, t)", "uuid()"),
]


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int) -> str:
    """An expression that mostly has this kind."""
    if draw(st.integers(0, 80)) == 0:
        return draw(st.sampled_from(BREAKING))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(CONSTANTS[kind]))
        cast = draw(st.sampled_from(["TRY_CAST"] * 80 + ["CAST"]))
        into = draw(st.sampled_from([kind] * 150 + OTHER_TYPES))
        column = draw(st.sampled_from(COLUMNS[:9] * 20 + COLUMNS))
        return f"{cast}({column} AS {into})"

    def sub(of: str) -> str:
        return draw(expressions(of, depth - 1))

    def pick(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    another = draw(st.sampled_from(TYPES))
    shared = [
        lambda: f"CASE WHEN {sub('BOOLEAN')} THEN {sub(kind)} WHEN {sub('BOOLEAN')} THEN {sub(kind)} END",
        lambda: f"CASE {sub(another)} WHEN {sub(another)} THEN {sub(kind)} ELSE {sub(kind)} END",
        lambda: f"{pick('coalesce', 'greatest', 'least', 'nullif')}({sub(kind)}, {sub(kind)})",
        lambda: f"TRY_CAST({sub(another)} AS {kind})",
    ]
    time = draw(st.sampled_from(TYPES[4:]))
    own = {
        "DOUBLE": [
            lambda: f"({sub(kind)} {pick('+', '-', '*', '/')} {sub(kind)})",
            lambda: f"{pick('-', 'abs', 'floor', 'ceil', 'trunc', 'round')}({sub(kind)})",
            lambda: f"round({sub(kind)}, {pick('0', '2', '15', '-3', '99')})",
        ],
        "BIGINT": [
            lambda: f"length({sub('VARCHAR')})",
            lambda: f"{draw(st.sampled_from(PARTS))}({sub(time)})",
            lambda: f"EXTRACT({draw(st.sampled_from(PARTS))} FROM {sub(time)})",
        ],
        "VARCHAR": [
            lambda: f"{pick('lower', 'upper', 'trim', 'ltrim', 'strip_accents', 'nfc_normalize')}({sub(kind)})",
            lambda: f"{pick('left', 'right', 'substring')}({sub(kind)}, {draw(st.sampled_from(PLACES))})",
            lambda: f"substring({sub(kind)}, {draw(st.sampled_from(PLACES))}, {draw(st.sampled_from(PLACES))})",
            lambda: f"replace({sub(kind)}, {pick(*CONSTANTS['VARCHAR'])}, {pick(*CONSTANTS['VARCHAR'])})",
            lambda: f"({sub(kind)} || {sub(kind)})",
            lambda: f"concat({sub(kind)}, '|', {sub(another)})",
        ],
        "BOOLEAN": [
            lambda: f"({sub(kind)} {pick('AND', 'OR')} {sub(kind)})",
            lambda: f"(NOT {sub(kind)})",
            lambda: f"({sub(another)} {pick('=', '<>', '<', '>=', 'IS DISTINCT FROM')} {sub(another)})",
            lambda: f"({sub(another)} IS {pick('', 'NOT')} NULL)",
            lambda: f"({sub(another)} {pick('', 'NOT')} IN ({sub(another)}, {sub(another)}))",
            lambda: f"({sub(another)} BETWEEN {sub(another)} AND {sub(another)})",
            lambda: f"({sub('VARCHAR')} {pick('', 'NOT')} LIKE {pick(*CONSTANTS['VARCHAR'])})",
            lambda: f"regexp_matches({sub('VARCHAR')}, {pick(*PATTERNS)})",
            lambda: f"{pick('contains', 'starts_with', 'ends_with')}({sub('VARCHAR')}, {sub('VARCHAR')})",
            lambda: f"{pick('isnan', 'isfinite')}({sub('DOUBLE')})",
        ],
        "DATE": [],
        "TIMESTAMP": [
            lambda: f"date_trunc('{draw(st.sampled_from(PARTS))}', {sub(pick('DATE', 'TIMESTAMP'))})",
            lambda: f"try_strptime({sub('VARCHAR')}, {pick(*FORMATS)})",
        ],
        "TIMESTAMPTZ": [lambda: f"date_trunc('{draw(st.sampled_from(PARTS))}', {sub(kind)})"],
    }
    return draw(st.sampled_from([*own[kind] * 2, *shared]))()


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A SELECT over `source`, sometimes with more than may be there."""
    items = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(TYPES))
        items.append(f"{draw(expressions(kind, draw(st.integers(0, 4))))} AS c{number}")
    items += draw(st.sampled_from([[]] * 12 + [["s"], ["d AS e"], ["*"], ["* EXCLUDE (i)"], ["* REPLACE (1 AS i)"]]))
    where = f" WHERE {draw(expressions('BOOLEAN', 2))}" if draw(st.booleans()) else ""
    plain = [""] * 120
    distinct = draw(st.sampled_from([*plain, "DISTINCT ", "DISTINCT ON (s) "]))
    table = draw(st.sampled_from([*plain, ", source other", " TABLESAMPLE 50%", " JOIN source o USING (i)"]))
    ends = ["LIMIT 3", "ORDER BY s", "GROUP BY ALL", "UNION ALL FROM source", "USING SAMPLE 2", "QUALIFY true"]
    end = draw(st.sampled_from(plain + ends))
    return f"SELECT {distinct}{', '.join(items)} FROM source{table}{where} {end}"

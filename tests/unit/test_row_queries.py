"""Queries over a source: accepted only where each row gives at most one row, and where nothing can raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from row_query_scenario import ROWS, nasty, queries

from dphist_pipeline.spec import _row_queries
from dphist_pipeline.spec._query_parsing import LARGEST_FILE, text_of
from dphist_pipeline.spec._row_nodes import NotAccepted
from dphist_pipeline.spec._row_queries import RowQuery, read_row_query

AGE = "TRY_CAST(age AS DOUBLE)"
WARD = "TRY_CAST(ward AS VARCHAR)"
DAY = "TRY_CAST(day AS DATE)"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., RowQuery]:
    """Reads a query from a file."""

    def from_content(sql: str | bytes, *unit: str) -> RowQuery:
        file = tmp_path / "people.sql"
        file.write_bytes(sql if isinstance(sql, bytes) else sql.encode())
        return read_row_query(file, "sql/people.sql", unit)

    return from_content


def refusal(read: Callable[..., RowQuery], sql: str | bytes, *unit: str) -> str:
    with pytest.raises(ValueError) as caught:
        read(sql, *unit)
    message = str(caught.value)
    assert message.startswith("sql/people.sql") and "duckdb." not in message and len(message) < 1200
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return message


@pytest.mark.parametrize(
    "item",
    [
        "*",
        "source.*",
        "* EXCLUDE (age, day)",
        "age",
        "source.age",
        'age AS "Age ""x"""',
        "'it''s' AS constant",
        "1 AS one",
        f"{AGE} * 12 + 0.5 - -{AGE} / 3 AS months",
        f"round({AGE}, 2) AS r",
        f"greatest({AGE}, 0, 1.5) AS least_0",
        f"{AGE} IS NULL AND ward IS NOT NULL OR NOT {AGE} >= 18 AS x",
        f"{AGE} BETWEEN 0 AND 17 AS child",
        f"{WARD} IN ('a', 'b') AS x",
        f"{WARD} NOT LIKE 'a%' AS x",
        f"regexp_matches(lower({WARD}), '^[a-z]+$') AS x",
        f"CASE WHEN {AGE} < 18 THEN 'child' WHEN {AGE} IS NULL THEN NULL ELSE 'adult' END AS x",
        f"CASE {WARD} WHEN 'a' THEN 1 ELSE 2.5 END AS x",
        f"coalesce({WARD}, 'unknown') AS x",
        f"nullif(trim({WARD}), '') AS x",
        f"replace(substring({WARD}, 1, 3), '-', '') AS x",
        f"strip_accents(upper(left({WARD}, 5))) AS x",
        f"{WARD} || '-' || {AGE}::VARCHAR AS x".replace(f"{AGE}::VARCHAR", f"TRY_CAST({AGE} AS VARCHAR)"),
        f"length({WARD}) > 3 AS x",
        f"{DAY} >= DATE '2026-01-01' AS x",
        f"EXTRACT(year FROM {DAY}) AS x",
        f"date_trunc('month', {DAY}) AS x",
        f"isodow({DAY}) AS x",
        f"try_strptime({WARD}, '%d/%m/%Y') AS x",
        "TRY_CAST(day AS TIMESTAMP WITH TIME ZONE) > '2026-01-01 00:00+01'::TIMESTAMPTZ AS x",
        "TRY_CAST(TRY_CAST(age AS BIGINT) AS DOUBLE) + 1 AS x",
    ],
)
def test_what_works_row_by_row_is_accepted(read: Callable[..., RowQuery], item: str):
    query = read(f"-- whose\nSELECT {item} FROM Source WHERE {AGE} > 0;")
    assert not query.trusted and len(query.sha256) == 64
    people = "SELECT '5' AS age, 'é' AS ward, '2026-03-02' AS day"
    assert len(duckdb.sql(f"WITH source AS ({people}) {query.text}").fetchall()) == 1


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT DISTINCT age FROM source", "DISTINCT, ORDER BY and LIMIT look at other rows"),
        ("SELECT DISTINCT ON (ward) age FROM source", "DISTINCT"),
        ("SELECT age FROM source ORDER BY age", "ORDER BY"),
        ("SELECT " + ", ".join(f"NOT true AS c{n}" for n in range(1500)) + " FROM source", "more than 2,000 parts"),
        (f"SELECT {AGE} FROM source", "needs a name"),
        ("SELECT age FROM source LIMIT 5", "LIMIT"),
        ("SELECT age FROM source LIMIT 5 OFFSET 1", "LIMIT"),
        ("SELECT age FROM source USING SAMPLE 5", "drawn anew"),
        ("SELECT age FROM source TABLESAMPLE 10%", "drawn anew"),
        ("SELECT age FROM source GROUP BY age", "GROUP BY"),
        ("SELECT age FROM source GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT age FROM source HAVING true", "HAVING"),
        ("SELECT age FROM source QUALIFY true", "QUALIFY"),
        ("WITH x AS (SELECT 1) SELECT age FROM source", "WITH"),
        ("SELECT age FROM source UNION ALL SELECT age FROM source", "UNION"),
        ("SELECT age FROM source, source AS other", "a join"),
        ("SELECT age FROM source JOIN source AS other USING (age)", "a join"),
        ("SELECT age FROM source SEMI JOIN source AS other USING (age)", "a join"),
        ("SELECT age FROM (SELECT age FROM source)", "a subquery reads other rows"),
        ("UNPIVOT source ON age", "PIVOT"),
        ("SELECT age FROM source AS s", "leave the table's name"),
        ("SELECT age FROM source AS source (age)", "leave the table's name"),
        ("SELECT (SELECT 1) AS x FROM source", "a subquery reads other rows"),
        ("SELECT age FROM source WHERE EXISTS (FROM source)", "a subquery reads other rows"),
        (f"SELECT {AGE} IN (SELECT 1) AS x FROM source", "a subquery reads other rows"),
        ("SELECT sum(age) AS x FROM source", "the function 'sum'"),
        (f"SELECT max({AGE}) FILTER ({AGE} > 0) AS x FROM source", "filter"),
        (f"SELECT lower(DISTINCT {WARD}) AS x FROM source", "distinct"),
        (f"SELECT lower({WARD} ORDER BY {AGE}) AS x FROM source", "order bys"),
        ("SELECT row_number() OVER () AS x FROM source", "a window function reads other rows"),
        ("SELECT lag(age) OVER (ORDER BY day) AS x FROM source", "a window function"),
        ("SELECT a.b.c AS x FROM source", "a column is named alone"),
        ("SELECT other.age AS x FROM source", "a column is named alone"),
        ("SELECT COLUMNS(*) FROM source", "COLUMNS"),
        ("SELECT COLUMNS('a.*') FROM source", "COLUMNS"),
        ("SELECT * REPLACE (1 AS age) FROM source", "REPLACE"),
        ("SELECT * RENAME (age AS years) FROM source", "RENAME"),
        ("SELECT * LIKE 'a%' FROM source", "`*` stands only as an item of its own"),
        ("SELECT *, * FROM source", "stands once"),
        ("SELECT other.* FROM source", "stands alone"),
        ("SELECT * EXCLUDE (source.age) FROM source", "exclude"),
        ("SELECT #1 AS x FROM source", "named, not numbered"),
        ("SELECT x -> x AS x FROM source", "functions of one's own"),
        ("SELECT list_transform([1], lambda x: x) AS x FROM source", "functions of one's own|'list_value'"),
        ("SELECT [age] AS x FROM source", "'list_value'"),
        ("SELECT age[1] AS x FROM source", "array extract"),
        ("SELECT {'a': age} AS x FROM source", "arguments are not named"),
        ("SELECT ward COLLATE NOCASE AS x FROM source", "collations"),
        (f"SELECT TRY({AGE}) AS x FROM source", "try is not known"),
        (f"SELECT GROUPING({AGE}) AS x FROM source", "grouping function is not known"),
        ("SELECT INTERVAL 1 DAY AS x FROM source", "casts to 'INTEGER'|trunc"),
        (f"SELECT {DAY} + 1 AS x FROM source", "+ takes DOUBLE, not DATE"),
        (f"SELECT lower(x := {WARD}) AS x FROM source", "arguments are not named"),
        (f"SELECT {AGE} // 2 AS x FROM source", "the function '//'"),
        (f"SELECT sqrt({AGE}) AS x FROM source", "the function 'sqrt'"),
        (f"SELECT repeat({WARD}, 1000000) AS x FROM source", "the function 'repeat'"),
        ("SELECT age = 5 AS x FROM source", 'TRY_CAST("age" AS …)'),
        ("SELECT lower(ward) AS x FROM source", 'TRY_CAST("ward" AS VARCHAR)'),
        ("SELECT age FROM source WHERE age", 'TRY_CAST("age" AS BOOLEAN)'),
        ("SELECT coalesce(age, ward) AS x FROM source", 'TRY_CAST("age" AS …)'),
        ("SELECT year(day) AS x FROM source", 'TRY_CAST("day" AS DATE)'),
        ("SELECT CAST(age AS DOUBLE) AS x FROM source", "write TRY_CAST"),
        ("SELECT age::DOUBLE AS x FROM source", "write TRY_CAST"),
        (f"SELECT {AGE}::BIGINT AS x FROM source", "write TRY_CAST"),
        ("SELECT TRY_CAST(age AS INTEGER) AS x FROM source", "casts to 'INTEGER' are not known; cast to one of DOUBLE"),
        ("SELECT TRY_CAST(age AS DECIMAL(3, 1)) AS x FROM source", "casts to 'DECIMAL'"),
        ("SELECT TRY_CAST(age AS main.DOUBLE) AS x FROM source", "schema"),
        (f"SELECT {AGE} = {WARD} AS x FROM source", "a comparison has DOUBLE and VARCHAR"),
        (f"SELECT {AGE} = '5' AS x FROM source", "a comparison has DOUBLE and VARCHAR"),
        (f"SELECT {DAY} = TRY_CAST(day AS TIMESTAMP) AS x FROM source", "DATE and TIMESTAMP"),
        (f"SELECT length({WARD}) = 1.5 AS x FROM source", "takes BIGINT, not a decimal number"),
        (f"SELECT length({WARD}) + 1 AS x FROM source", "+ takes DOUBLE, not BIGINT; write TRY_CAST(… AS DOUBLE)"),
        (f"SELECT CASE WHEN true THEN {AGE} ELSE 'x' END AS x FROM source", "CASE has DOUBLE and VARCHAR"),
        (f"SELECT {AGE} AND true AS x FROM source", "AND and OR takes BOOLEAN"),
        (f"SELECT left({WARD}, 10001) AS x FROM source", "left takes a whole number between"),
        (f"SELECT left({WARD}, {AGE}) AS x FROM source", "as a constant"),
        (f"SELECT round({AGE}, -1) AS x FROM source", "round takes a whole number between 0 and 15"),
        (f"SELECT replace({WARD}, '', 'x') AS x FROM source", "not empty"),
        (f"SELECT replace({WARD}, 'a', 'bb') AS x FROM source", "may not make a text longer"),
        (f"SELECT {WARD} LIKE {WARD} AS x FROM source", "as a constant"),
        (f"SELECT {WARD} LIKE 'x' ESCAPE 'y' AS x FROM source", "'like_escape'"),
        (f"SELECT regexp_matches({WARD}, 'x', 'g') AS x FROM source", "takes 2 arguments"),
        (f"SELECT date_trunc('century', {DAY}) AS x FROM source", "one of year, quarter"),
        (f"SELECT try_strptime({WARD}, '%Y %z') AS x FROM source", "a format of %Y"),
        ("SELECT x'ab' AS x FROM source", "this constant"),
        ("SELECT 1_000 AS x FROM source", "this constant"),
        (f"SELECT {AGE} + {'1' * 41} AS x FROM source", "this constant"),
    ],
)
def test_what_may_not_work_row_by_row_needs_a_decision_and_says_why(read: Callable[..., RowQuery], sql: str, says: str):
    query = read(sql)
    assert any(part in query.needs_decision for part in says.split("|")), query.needs_decision
    assert query.trusted and not query.columns


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("", "it holds no statement"),
        ("-- nothing", "it holds no statement"),
        (b"\xef\xbb\xbf", "it holds no statement"),
        ("SELECT age FROM source; SELECT age FROM source", "it holds several statements"),
        ("SELECT age FROM source; DROP TABLE source", "it is not a SELECT"),
        ("INSERT INTO source VALUES (1)", "it is not a SELECT"),
        ("COPY source TO 'x'", "it is not a SELECT"),
        ("ATTACH 'x'", "it is not a SELECT"),
        ("SELECT age\nFROM source\nWHER x", "line 3: it does not parse"),
        ("SELECT age FROM other", "there is no table 'other'"),
        (f"SELECT main.lower({WARD}) AS x FROM source", "schema"),
        (f"SELECT error({WARD}) AS x FROM source", "the function 'error'"),
        ("SELECT * FROM range(3)", "reads its records `FROM source`"),
        ("SELECT * FROM read_csv('x.csv')", "not 'read_csv'"),
        ("VALUES (1)", "reads its records"),
        ("DESCRIBE source", "DESCRIBE"),
        ("SELECT age FROM source AT (VERSION => 1)", "AT is not known"),
        ("SELECT random() AS x FROM source", "random() gives something else every time"),
        ("SELECT now() AS x FROM source", "now() gives"),
        ("SELECT current_date AS x FROM source", "'current_date' is no column"),
        ("SELECT rowid AS x FROM source", "'rowid' is no column"),
        ("SELECT user AS x FROM source", "'user' is no column"),
        ("SELECT ? AS x FROM source", "takes no parameters"),
        ("SELECT $files AS x FROM source", "takes no parameters"),
        ("SELECT * FROM source WHERE ward = $files", "takes no parameters"),
        ("SELECT age FROM main.source", "there is no table"),
        ("SELECT age FROM 'x.parquet'", "there is no table 'x.parquet'"),
        ("SELECT age, ward AS AGE FROM source", "two of its columns are called 'AGE'"),
        ("SELECT DATE '2026-13-01' AS x FROM source", "'2026-13-01' is no DATE"),
        (f"SELECT {AGE} > 'x'::DOUBLE AS x FROM source", "'x' is no DOUBLE"),
        (f"SELECT regexp_matches({WARD}, '(') AS x FROM source", "check its patterns"),
        ("SELECT " + "NOT " * 220 + "true AS x FROM source", "nested too deep"),
        ("SELECT " + "(" * 2000 + "1" + ")" * 2000 + " AS x FROM source", "it does not parse"),
        (b"SELECT '\xff' AS x FROM source", "is not valid UTF-8"),
        ("SELECT age FROM source".encode("utf-16"), "line 1: holds a NUL byte"),
        ("SELECT age\0 FROM source", "holds a NUL byte"),
        ("-" * (LARGEST_FILE + 1), "is larger than 32 kB"),
    ],
)
def test_what_no_decision_mends_is_refused(read: Callable[..., RowQuery], sql: str | bytes, says: str):
    message = refusal(read, sql)
    assert says in message


@pytest.mark.parametrize("make", [lambda file: None, Path.mkdir, lambda file: file.symlink_to(file)])
def test_a_file_that_is_none_is_refused(tmp_path: Path, make: Callable[[Path], object]):
    make(tmp_path / "x.sql")
    with pytest.raises(ValueError, match=r"there is no such file|is a folder|cannot be read|links followed"):
        read_row_query(tmp_path / "x.sql", "x.sql")


def test_a_refusal_tells_the_line(read: Callable[..., RowQuery]):
    assert ", line 4: random()" in refusal(read, "SELECT\n  age,\n  ward,\n  random() AS x\nFROM source")
    query = read(f"SELECT\n  age,\n  length({WARD}) + 1 AS x\nFROM source")
    assert query.needs_decision.startswith("line 3: + takes")


def test_comments_blanks_windows_line_ends_and_a_byte_order_mark_are_read(read: Callable[..., RowQuery]):
    plain = read("SELECT age FROM source")
    other = read(b"\xef\xbb\xbf-- people\r\nselect AGE\r\nfrom SOURCE -- all\r\n;\r\n")
    assert other.text == plain.text.replace("age", "AGE") and other.sha256 != plain.sha256


def test_a_query_tells_what_its_columns_are_made_of(read: Callable[..., RowQuery]):
    query = read(
        f"SELECT * EXCLUDE (day), ward AS place, {AGE} > length({WARD})::DOUBLE AS x FROM source".replace(
            f"length({WARD})::DOUBLE", f"TRY_CAST(length({WARD}) AS DOUBLE)"
        )
    )
    assert query.columns == {"age", "ward"} and query.excluded == {"day"} and query.bare == {"place": "ward"}
    assert query.outputs == {"*": frozenset(), "place": frozenset({"ward"}), "x": frozenset({"age", "ward"})}


def test_texts_are_cut_before_they_are_joined_so_that_no_row_grows_without_bound(read: Callable[..., RowQuery]):
    query = read(f"SELECT {' || '.join([WARD] * 8)} AS x, concat({WARD}, {WARD}) AS y FROM source")
    people = "SELECT repeat('é', 1000000) AS ward"
    (row,) = duckdb.sql(f"WITH source AS ({people}) {query.text}").fetchall()
    assert [len(text) for text in row] == [8_000, 2_000]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, count(*) AS rows FROM source GROUP BY ward ORDER BY rows LIMIT 3",
        "WITH last AS (SELECT *, row_number() OVER (PARTITION BY patient) AS n FROM source) FROM last WHERE n = 1",
        "SELECT * FROM source JOIN (SELECT DISTINCT ward FROM source) AS wards USING (ward)",
        "SELECT unnest(range(3)) AS x, s.* FROM source AS s",
        "FROM source UNION ALL FROM source",
    ],
)
def test_a_query_that_may_be_allowed_is_any_select_over_the_source(read: Callable[..., RowQuery], sql: str):
    query = read(sql)
    people = "SELECT 1 AS patient, 'a' AS ward"
    assert query.trusted and duckdb.sql(f"WITH source AS ({people}) FROM ({query.text})").fetchall()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 1 AS x", "a query reads its records `FROM source`"),
        ("SELECT * FROM other", "there is no table 'other'"),
        ("SELECT * FROM source, 'other.csv'", "there is no table 'other.csv'"),
        ("SELECT * FROM source, read_csv('other.csv')", "reads `source` alone, not 'read_csv'"),
        ("SELECT * FROM source, glob('*')", "reads `source` alone, not 'glob'"),
        ("SELECT * FROM source, duckdb_settings()", "reads `source` alone"),
        ("SELECT (SELECT max(x) FROM query('SELECT 1 AS x')) AS x FROM source", "not 'query'"),
        ("WITH source AS (SELECT 1 AS x) FROM source", "makes no other table of that name"),
        ("SELECT age FROM source; SELECT 1", "several statements"),
        ("DROP TABLE source", "is not a SELECT"),
        ("", "no statement"),
    ],
)
def test_every_query_reads_the_source_and_nothing_else(read: Callable[..., RowQuery], sql: str, says: str):
    message = refusal(read, sql)
    assert says in message


def given_by(connection: duckdb.DuckDBPyConnection, table: str, query: RowQuery) -> Counter[str]:
    rows = f"WITH source AS NOT MATERIALIZED (FROM {table}) SELECT COLUMNS(*)::VARCHAR FROM ({query.text})"
    return Counter(map(repr, connection.execute(rows).fetchall()))


def check_by_row(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a query is accepted; if so, it raises on no value, and each row gives the same in any company."""
    with pytest.MonkeyPatch.context() as patch:
        # What is accepted must not raise by itself, before anything keeps it from that.
        patch.setattr(_row_queries, "kept_from_raising", lambda node: node)
        try:
            query = _row_queries.judged_query(sql, "")
        except NotAccepted:
            return False
    if query.trusted:
        return False
    if query.columns - {"d", "s", "b", "t", "z", "day", "yes", 'a "b'}:
        return False
    alone = sum((given_by(connection, f"alone_{row}", query) for row in range(ROWS)), Counter[str]())
    assert given_by(connection, "people", query) == alone
    assert max(given_by(connection, f"alone_{row}", query).total() for row in range(2)) <= 1
    return True


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def fuzz(connection: duckdb.DuckDBPyConnection, examples: int) -> int:
    accepted = 0

    @settings(QUICK, max_examples=examples)
    @given(sql=queries())
    def every_accepted_query_works_row_by_row(sql: str) -> None:
        nonlocal accepted
        accepted += check_by_row(connection, sql)

    every_accepted_query_works_row_by_row()
    return accepted


@pytest.mark.slow
def test_every_accepted_query_gives_the_same_for_a_row_whatever_the_others_are(nasty: duckdb.DuckDBPyConnection):
    assert fuzz(nasty, 100) > 0


@pytest.mark.soak
def test_every_accepted_query_gives_the_same_for_a_row_in_long_runs(nasty: duckdb.DuckDBPyConnection):
    assert fuzz(nasty, 20_000) > 2000


def test_what_is_accepted_is_kept_from_raising_all_the_same(read: Callable[..., RowQuery]):
    query = read(f"SELECT age, {AGE} AS x FROM source WHERE {AGE} > 0")
    assert query.text.count("TRY(") == 2


def test_a_query_that_reads_back_as_another_one_is_refused():
    class Parser:
        """Writes one text, and reads another one from it."""

        def execute(self, sql, parameters):
            self.text = "SELECT 2" if "sql" in parameters else "SELECT 1"
            return self

        def fetchone(self):
            return (self.text,)

    with pytest.raises(NotAccepted, match="cannot write it back"):
        text_of(Parser(), {})


def test_a_function_of_duckdb_is_not_taken_for_a_typing_error_of_another():
    said = _row_queries.judged_query("SELECT patient, split_part(ward, '-', 1) AS a FROM source", "").needs_decision
    assert said.endswith("without raising")

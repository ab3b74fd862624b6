"""Queries that an attacker would write: to read something else than the records, or to change who is protected."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from attacked import spec

from dphist_pipeline.spec._query_parsing import open_parser
from dphist_pipeline.spec._query_reach import ALLOWED, TABLE_FUNCTIONS
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.model import UNSEEN_CUT
from dphist_pipeline.spec.signed_queries import SignedQuery, read_query_file

CANARY = "c4n4ry"


def read(folder: Path, sql: str | bytes, name: str = "people.sql") -> SignedQuery:
    file = folder / name
    file.write_bytes(sql if isinstance(sql, bytes) else sql.encode())
    return read_query_file(file, name)


def refused(folder: Path, sql: str | bytes, name: str = "people.sql") -> str:
    with pytest.raises(ValueError) as caught:
        read(folder, sql, name=name)
    return str(caught.value)


READS_A_FILE = [
    "SELECT * FROM 'x.csv'",
    "FROM 'x.csv' SELECT *",
    "FROM source, 'x.csv'",
    "FROM source POSITIONAL JOIN 'x.csv'",
    "FROM source, LATERAL (FROM 'x.csv')",
    "SELECT * FROM source UNION ALL FROM 'x.csv'",
    "(FROM source) EXCEPT ALL (FROM 'x.csv')",
    "SELECT patient, (SELECT max(a) FROM 'x.csv') AS x FROM source",
    "SELECT patient FROM source WHERE EXISTS (FROM 'x.csv')",
    "SELECT patient FROM source WHERE patient IN (FROM 'x.csv')",
    "SELECT patient FROM source ORDER BY (SELECT max(a) FROM 'x.csv')",
    "SELECT patient FROM source LIMIT (SELECT count(*) FROM 'x.csv')",
    "SELECT patient FROM source OFFSET (SELECT count(*) FROM 'x.csv')",
    "SELECT DISTINCT ON ((SELECT max(a) FROM 'x.csv')) patient FROM source",
    "SELECT patient FROM source GROUP BY patient HAVING (SELECT max(a) FROM 'x.csv') = 1",
    "SELECT patient FROM source GROUP BY GROUPING SETS ((patient, (SELECT max(a) FROM 'x.csv')))",
    "SELECT patient FROM source QUALIFY row_number() OVER (ORDER BY (SELECT max(a) FROM 'x.csv')) = 1",
    "SELECT sum(a) FILTER ((SELECT max(a) FROM 'x.csv') > 1) FROM source",
    "SELECT sum(a) OVER w FROM source WINDOW w AS (PARTITION BY (SELECT max(a) FROM 'x.csv'))",
    "SELECT lag(a, 1, (SELECT max(a) FROM 'x.csv')) OVER (ORDER BY a) FROM source",
    "SELECT sum(a) OVER (ORDER BY a ROWS (SELECT max(a) FROM 'x.csv') PRECEDING) FROM source",
    "SELECT list_transform([1], lambda y: (SELECT max(a) FROM 'x.csv')) FROM source",
    "SELECT [a FOR a IN (SELECT list(a) FROM 'x.csv')] FROM source",
    "SELECT ARRAY(FROM 'x.csv') FROM source",
    "SELECT CASE WHEN true THEN (FROM 'x.csv') END FROM source",
    "SELECT * REPLACE ((FROM 'x.csv') AS a) FROM source",
    "FROM source PIVOT (sum(a) FOR patient IN ((FROM 'x.csv')))",
    "FROM (FROM 'x.csv') PIVOT (sum(a) FOR a IN (1)), source",
    "FROM source, (UNPIVOT 'x.csv' ON a)",
    "FROM source, (VALUES ((SELECT max(a) FROM 'x.csv')))",
    "FROM source, unnest((SELECT list(a) FROM 'x.csv'))",
    "FROM source JOIN source o ON source.a = (SELECT max(a) FROM 'x.csv')",
    "FROM source ASOF JOIN 'x.csv' o ON source.a >= o.a",
    "TABLE 'x.csv'",
    "FROM source, (DESCRIBE 'x.csv')",
    "FROM source, (SUMMARIZE 'x.csv')",
    "WITH y AS (FROM 'x.csv') FROM source",
    "WITH y AS MATERIALIZED (FROM source), z AS (FROM 'x.csv') FROM y",
    "WITH RECURSIVE y AS (FROM source UNION ALL FROM 'x.csv') FROM y",
]


@pytest.mark.parametrize("sql", READS_A_FILE)
def test_a_file_is_read_from_no_place_of_a_query(tmp_path: Path, sql: str):
    with duckdb.connect() as connection:  # DuckDB takes it, so the refusal is ours
        assert connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone() is not None
    said = refused(tmp_path, sql)
    assert "there is no table 'x.csv'" in said or "DESCRIBE, SHOW and SUMMARIZE" in said


OUT_OF_SCOPE = [
    # The table that WITH makes is visible inside the subquery alone; outside the name is that of a file.
    'FROM source, (WITH "x.csv" AS (SELECT 1 AS a) FROM "x.csv") AS inner_table, \'x.csv\'',
    "FROM source, (WITH other AS (SELECT 1 AS a) FROM other), other",
    "FROM other, (WITH other AS (FROM source) FROM other)",
    "SELECT (WITH other AS (SELECT 1 AS a) SELECT a FROM other) AS a FROM source, other",
    "(WITH other AS (SELECT 1 AS a) FROM other) UNION ALL FROM other",
    "FROM other UNION ALL (WITH other AS (FROM source) FROM other)",
    "WITH first AS (WITH other AS (FROM source) FROM other) SELECT * FROM first, other",
    # A table sees those before it, and itself only where it is recursive, on the right of UNION.
    "WITH other AS (FROM other) FROM source, other",
    "WITH first AS (FROM other), other AS (FROM source) FROM first",
    "WITH RECURSIVE other AS (FROM other UNION ALL FROM source) FROM other",
    "WITH RECURSIVE other AS (FROM other) FROM source, other",
    # Names are compared as DuckDB compares them: the Kelvin sign is not the letter K.
    "WITH week AS (FROM source) FROM wee\u212a",
]


@pytest.mark.parametrize("sql", OUT_OF_SCOPE)
def test_a_table_made_elsewhere_in_a_query_does_not_name_a_file(tmp_path: Path, sql: str):
    assert any(part in refused(tmp_path, sql) for part in ("there is no table", "has a plain name"))


IN_SCOPE = [
    "WITH other AS (FROM source) FROM other",
    "WITH other AS (FROM source) SELECT (SELECT max(a) FROM OTHER) AS a",
    "WITH other AS (FROM source), more AS (FROM other) FROM more, (SELECT 1 AS b FROM other)",
    "WITH other AS (FROM source) FROM (WITH more AS (FROM other) FROM more)",
    "WITH other AS (FROM source) (FROM other) UNION ALL FROM other",
    "WITH RECURSIVE other AS (SELECT a FROM source UNION ALL SELECT a + 1 FROM other WHERE a < 9) FROM other",
    "WITH other AS (FROM source) FROM other PIVOT (sum(a) FOR a IN (1, 2))",
    "WITH other AS (FROM source) FROM unnest((SELECT list(a) FROM other))",
    "WITH other AS (FROM source) FROM source, LATERAL (SELECT count(*) AS n FROM other WHERE other.a = source.a)",
    "WITH other AS (FROM source) SELECT a FROM source QUALIFY (SELECT count(*) FROM other) >= row_number() OVER ()",
    "WITH other AS (WITH other AS (FROM source) FROM other) FROM other",
    "FROM source, (WITH other AS (SELECT 1 AS b) FROM other)",
]


@pytest.mark.parametrize("sql", IN_SCOPE)
def test_names_that_pass_are_those_that_duckdb_resolves_to_tables_of_the_query(tmp_path: Path, sql: str):
    query = read(tmp_path, sql)
    with duckdb.connect() as connection:
        for name in ("other", "more"):
            connection.execute(f"CREATE TABLE {name} AS SELECT '{CANARY}' AS a, '{CANARY}' AS b")
        rows = connection.execute(f"WITH source AS (SELECT 1 AS a) FROM ({query.text})").fetchall()
    assert rows and CANARY not in repr(rows)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH source AS (SELECT 1 AS patient) FROM source",
        "WITH Source AS (SELECT 1 AS patient) FROM source",
        "FROM source, (WITH source AS (SELECT 1 AS a) FROM source)",
        "WITH RECURSIVE source AS (SELECT 1 AS a UNION ALL FROM source) FROM source",
        "SELECT 1 AS patient",
        "VALUES (1)",
        "WITH other AS (SELECT 1 AS patient) FROM other",
        "FROM range(9)",
        "SELECT 'source' AS patient",
        "FROM main.source",
        "FROM memory.main.source",
        "FROM temp.source",
        "WITH \"a/b\" AS (FROM source) FROM \"a/b\"",
        "WITH \"x.csv\" AS (FROM source) FROM \"x.csv\"",
    ],
)  # fmt: skip
def test_the_records_are_neither_replaced_nor_left_out(tmp_path: Path, sql: str):
    assert "source" in refused(tmp_path, sql) or "plain name" in refused(tmp_path, sql)


CALLS = [
    *("getenv('HOME')", "main.getenv('HOME')", "'HOME'.getenv()", "current_setting('TimeZone')", "current_query()"),
    *("random()", "uuid()", "gen_random_uuid()", "now()", "get_current_timestamp()", "today()", "current_date()"),
    *("getvariable('x')", "nextval('x')", "write_log('x')", "error('x')", "sleep_ms(9)", "pg_sleep(9)", "version()"),
    *("current_date", "CURRENT_USER", "current_timestamp", "localtime", "session_user", "user", "current_schema"),
    *("json_serialize_sql('SELECT 1')", "stats(a)", "txid_current()", "list_aggregate([1], 'sum')", "list_aggr(a, a)"),
    *("age(a)", "current_localtimestamp()", "setseed(0.1)", "in_search_path('a', 'b')", "current_database()"),
    *("reservoir_quantile(a, 0.5)", "system.main.lower('A')", "my_macro(a)", "array_aggr(a, 'first')", "alias(a)"),
]
PLACES = [
    "SELECT {} AS x FROM source",
    "SELECT max({}) AS x FROM source",
    "SELECT a FROM source WHERE {} IS NULL",
    "SELECT a FROM source ORDER BY {}",
    "SELECT count(*) FILTER ({} IS NULL) FROM source",
    "SELECT rank() OVER (PARTITION BY {} ORDER BY a) FROM source",
    "SELECT rank() OVER (ORDER BY {}) FROM source",
    "SELECT a FROM source QUALIFY rank() OVER (ORDER BY a) = {}",
    "SELECT a FROM source LIMIT {}",
    "SELECT list_transform([1], lambda y: {}) AS x FROM source",
    "SELECT COLUMNS(c -> {} IS NULL) FROM source",
    "SELECT * REPLACE ({} AS a) FROM source",
    "SELECT {{'x': {}}}.x FROM source",
    "SELECT a[{}] FROM source",
    "FROM source, unnest([{}])",
    "FROM source, range({})",
    "FROM source JOIN source o ON {} = o.a",
    "FROM source PIVOT (max({}) FOR a IN (1))",
    "FROM source, (VALUES ({}))",
    "SELECT string_agg(a, ',' ORDER BY {}) FROM source",
]


@pytest.mark.parametrize("call", CALLS)
def test_no_function_outside_the_list_is_called_from_anywhere(tmp_path: Path, call: str):
    said = refused(tmp_path, PLACES[0].format(call))
    assert any(part in said for part in ("not on the list", "every time", "no column", "without a schema"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", ["getenv('HOME')", "'HOME'.getenv()", "current_user"])
def test_no_place_of_a_query_hides_a_call(tmp_path: Path, place: str, call: str):
    with duckdb.connect() as connection:
        (parsed,) = connection.execute("SELECT json_serialize_sql($sql)", {"sql": place.format(call)}).fetchone()
    assert '"error":false' in parsed, "DuckDB does not take it: mend the test"
    said = refused(tmp_path, place.format(call))
    assert "not on the list" in said or "no column" in said


def test_the_engine_that_judges_a_query_reads_no_file_itself(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    with open_parser() as parser, pytest.raises(duckdb.PermissionException):
        parser.execute(f"FROM read_csv('{tmp_path}/x.csv')")


@pytest.mark.parametrize(
    "function", ["read_csv('x')", "glob('*')", "duckdb_settings()", "query('FROM x')", "upper('x')"]
)
def test_a_table_function_reads_nothing_else(tmp_path: Path, function: str):
    assert "a query reads `source` alone" in refused(tmp_path, f"FROM source, {function}")


def test_every_function_of_the_list_exists_and_gives_the_same_for_the_same_arguments():
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT lower(function_name), stability, function_type FROM duckdb_functions()"
        ).fetchall()
    changing = {name for name, stability, _ in rows if stability in ("VOLATILE", "CONSISTENT_WITHIN_QUERY")}
    # The parser writes these, or gives them another name.
    written = {"!", "count_star", "struct_pack", "unpivot_list", "row", "if", "position", "coalesce", "concat"}
    known = {name for name, *_ in rows} | written
    assert ALLOWED & changing == set() and ALLOWED - known == set() and TABLE_FUNCTIONS <= ALLOWED


@pytest.mark.parametrize(
    "content",
    [
        f"root:{CANARY}:0:0:root:/root:/bin/bash\n",
        f"patient,age\n{CANARY},5\n",
        f"{CANARY}\n",
        f"FROM {CANARY} {CANARY} {CANARY}\n",
        f"SELECT 1; SELECT {CANARY}\n",
        f"ATTACH '{CANARY}'\n",
        f"PIVOT {CANARY} ON {CANARY}\n",
    ],
)
@pytest.mark.parametrize("name", ["people.sql", "people.csv", "passwd"])
def test_a_file_that_is_no_query_is_not_quoted(tmp_path: Path, content: str, name: str):
    assert CANARY not in refused(tmp_path, content, name=name).lower()


@pytest.mark.parametrize(
    "content", [f"FROM {CANARY}", f"{CANARY}", f"SELECT {CANARY}()", f"SELECT DATE '{CANARY}' AS x FROM source"]
)
def test_a_file_that_reads_as_a_query_is_one_only_if_it_is_called_so(tmp_path: Path, content: str):
    records = tmp_path / "records.csv"
    records.write_text(content)
    (tmp_path / "people.sql").symlink_to(records)
    for name in ("records.csv", "people.sql", "../" + tmp_path.name + "/records.csv"):
        with pytest.raises(ValueError) as caught:
            read_query_file(tmp_path / name, name)
        assert "must end in .sql, links followed" in str(caught.value) and CANARY not in str(caught.value)


@pytest.mark.parametrize("trusted_sql", [True, False])
def test_trusted_sql_grants_nothing(tmp_path: Path, trusted_sql: bool):
    for text in ("SELECT person,\nsum(age) OVER () AS age FROM source", "SELECT * FROM source"):
        (tmp_path / "q.sql").write_text(text)
        made = spec(tmp_path, source_sql="q.sql", trusted_sql=trusted_sql)
        said = [remark for remark in made.remarks if remark != UNSEEN_CUT]
        assert any("`trusted_sql` grants nothing" in one for one in said) == trusted_sql
        assert any("dphist ledger allow health --query q.sql --reason TEXT" in one for one in said)
    (tmp_path / "q.sql").write_text("SELECT uuid() AS person, age FROM source, range(1000)")
    with pytest.raises(SpecError, match=r"uuid\(\) gives something else every time"):
        spec(tmp_path, source_sql="q.sql", trusted_sql=trusted_sql)

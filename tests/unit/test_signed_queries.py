"""Queries over a source: what each may reach, and what runs once an operator has signed its text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from dphist_pipeline.spec._query_parsing import LARGEST_FILE, text_of
from dphist_pipeline.spec._query_reach import NotAccepted
from dphist_pipeline.spec.signed_queries import SignedQuery, read_query_file

WARD = "TRY_CAST(ward AS VARCHAR)"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., SignedQuery]:
    """Reads a query from a file."""

    def from_content(sql: str | bytes) -> SignedQuery:
        file = tmp_path / "people.sql"
        file.write_bytes(sql if isinstance(sql, bytes) else sql.encode())
        return read_query_file(file, "sql/people.sql")

    return from_content


def refusal(read: Callable[..., SignedQuery], sql: str | bytes) -> str:
    with pytest.raises(ValueError) as caught:
        read(sql)
    message = str(caught.value)
    assert message.startswith("sql/people.sql") and "duckdb." not in message and len(message) < 1200
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return message


@pytest.mark.parametrize(
    ("item", "runs"),
    [
        ("CAST(ward AS INTEGER) AS n", "TRY(CAST(ward AS INTEGER)) AS n"),
        ("1 / age + 3 AS n", "TRY(((1 / age) + 3)) AS n"),
        ("CASE WHEN age > 3 THEN error_free ELSE lower(ward) END AS x", "TRY("),
        ("list_transform([1], lambda x: x + age) AS xs", "TRY("),
    ],
)
def test_a_named_item_of_one_row_is_null_where_it_raises(read: Callable[..., SignedQuery], item: str, runs: str):
    query = read(f"SELECT patient, {item} FROM source")
    assert runs in query.tried and "TRY(" not in query.text.replace("TRY_CAST(", "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM source",
        "SELECT patient, age AS years, 3 AS three FROM source",
        "SELECT patient, count(*) AS n, max(age) + 1 AS oldest FROM source GROUP BY patient",
        "SELECT patient, row_number() OVER (ORDER BY age) + 1 AS n FROM source",
        "SELECT patient, (SELECT max(age) FROM source) + 1 AS n FROM source",
        "SELECT unnest([age, 1]) + 1 AS n FROM source",
        "SELECT patient, COLUMNS('a.*') + 1 AS n FROM source",
        "SELECT lower(ward) FROM source",
        "SELECT CAST(age AS INTEGER) AS n FROM source UNION ALL SELECT 1 FROM source",
        "SELECT patient FROM source WHERE CAST(ward AS INTEGER) > 3",
    ],
)
def test_what_looks_at_other_rows_has_no_name_or_is_a_condition_stays_as_signed(
    read: Callable[..., SignedQuery], sql: str
):
    query = read(sql)
    assert query.tried == query.text


def test_errors_of_items_are_null_row_by_row_and_those_of_conditions_fail(read: Callable[..., SignedQuery]):
    people = "SELECT unnest([1, 2]) AS patient, unnest(['3', 'x']) AS age"
    with duckdb.connect(config={"disabled_optimizers": "common_subexpressions"}) as connection:

        def rows(text: str) -> list[tuple[object, ...]]:
            return connection.execute(f"WITH source AS ({people}) {text}").fetchall()

        query = read("SELECT patient, CAST(age AS INTEGER) + 1 AS a, CAST(age AS INTEGER) + 2 AS b FROM source")
        assert rows(query.tried) == [(1, 4, 5), (2, None, None)]
        for text in (query.text, read("SELECT patient FROM source WHERE CAST(age AS INTEGER) > 1").tried):
            with pytest.raises(duckdb.ConversionException):
                rows(text)


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
        ("SELECT " + "NOT " * 220 + "true AS x FROM source", "nested too deep"),
        ("SELECT " + "(" * 2000 + "1" + ")" * 2000 + " AS x FROM source", "it does not parse"),
        (b"SELECT '\xff' AS x FROM source", "is not valid UTF-8"),
        ("SELECT age FROM source".encode("utf-16"), "line 1: holds a NUL byte"),
        ("SELECT age\0 FROM source", "holds a NUL byte"),
        ("-" * (LARGEST_FILE + 1), "is larger than 32 kB"),
    ],
)
def test_what_no_signature_mends_is_refused(read: Callable[..., SignedQuery], sql: str | bytes, says: str):
    message = refusal(read, sql)
    assert says in message


@pytest.mark.parametrize("make", [lambda file: None, Path.mkdir, lambda file: file.symlink_to(file)])
def test_a_file_that_is_none_is_refused(tmp_path: Path, make: Callable[[Path], object]):
    make(tmp_path / "x.sql")
    with pytest.raises(ValueError, match=r"there is no such file|is a folder|cannot be read|links followed"):
        read_query_file(tmp_path / "x.sql", "x.sql")


def test_a_refusal_tells_the_line(read: Callable[..., SignedQuery]):
    assert ", line 4: random()" in refusal(read, "SELECT\n  age,\n  ward,\n  random() AS x\nFROM source")


def test_comments_blanks_windows_line_ends_and_a_byte_order_mark_are_read(read: Callable[..., SignedQuery]):
    plain = read("SELECT age FROM source")
    other = read(b"\xef\xbb\xbf-- people\r\nselect AGE\r\nfrom SOURCE -- all\r\n;\r\n")
    assert other.text.lower() == plain.text.lower() and other.sha256 != plain.sha256


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
def test_any_select_over_the_source_may_be_signed(read: Callable[..., SignedQuery], sql: str):
    query = read(sql)
    people = "SELECT 1 AS patient, 'a' AS ward"
    assert duckdb.sql(f"WITH source AS ({people}) FROM ({query.text})").fetchall()


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
def test_every_query_reads_the_source_and_nothing_else(read: Callable[..., SignedQuery], sql: str, says: str):
    message = refusal(read, sql)
    assert says in message


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

"""Tables of databases as sources: read only, row by row, and without a word of where the server is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from database_server import Server, programs
from requiring import missing
from source_scenario import AGE, SECRET, WARD, counted, refused, spec

from dphist_pipeline.confidential.reading._databases import EXTENSION
from dphist_pipeline.confidential.reading.ingest import opened_source
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import FromEnvironment, SpecError

PASSWORD = "s3cret-word"
FILE = {"source": "office.duckdb", "source_table": "admissions"}
MAKE = """
    CREATE TYPE kinds AS ENUM ('surgery', 'medicine');
    CREATE TABLE admissions (
        person VARCHAR, age DECIMAL(5, 1), ward kinds, seen TIMESTAMPTZ, stay TIMESTAMP_MS, note JSON
    );
    INSERT INTO admissions VALUES
        ('a?b', 5, 'surgery', '2026-03-02 10:00:00+01', '2026-01-01', NULL), ('a?b', 15, NULL, 'infinity', NULL, '{}'),
        (NULL, 15, 'medicine', NULL, NULL, NULL), ('c', NULL, 'medicine', '2026-03-09 00:00:00+01', NULL, NULL);
    CREATE VIEW seen AS SELECT * FROM admissions;
    CREATE TABLE computed (person VARCHAR, age INTEGER, twice INTEGER GENERATED ALWAYS AS (age * 2));
    CREATE SCHEMA "old one";
    CREATE TABLE "old one"."ad'mi""ssions" AS SELECT 'x' AS person, 25 AS age;
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A DuckDB file."""
    path = tmp_path_factory.mktemp("made") / "office.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(MAKE)
    return path.read_bytes()


@pytest.mark.slow
def test_a_table_of_a_duckdb_file_is_read(database: bytes):
    files = {"office.duckdb": database}
    assert counted(files, **FILE) == [1, 1, 0, 0, 1]
    assert counted(files, **FILE, axes=[WARD], max_rows_per_unit=1)[1:2] == [1]
    week = {"period": "week", "period_column": "seen", "at": "2026-03-02", "time_zone": "Europe/Brussels"}
    assert counted(files, **FILE, **week) == [1, 0, 0, 0, 0]
    named = {**FILE, "source_table": "old one.ad'mi\"ssions"}
    assert counted(files, **named) == [0, 0, 1, 0, 0]


def test_a_query_and_declared_forms_work_over_a_table(database: bytes):
    query = b"SELECT person, TRY_CAST(age AS DOUBLE) + 10 AS age FROM source WHERE ward IS NOT NULL"
    files = {"office.duckdb": database, "q.sql": query}
    assert counted(files, **FILE, source_sql="q.sql", unit_normalise=["lower"]) == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("admission", "has no table 'admission' (views are not read). Did you mean 'admissions'?"),
        ("seen", "has no table 'seen' (views are not read)"),
        ("other.admissions", "has no table 'other.admissions'"),
        ("computed", "has computed columns in 'computed', which may fail on a row; copy the table"),
    ],
)
def test_what_is_no_table_of_rows_is_refused(database: bytes, table: str, says: str):
    message = refused({"office.duckdb": database}, SourceRefused, **{**FILE, "source_table": table})
    assert message.startswith(f"source office.duckdb: {says}")


@pytest.mark.parametrize("column", ["stay", "note"])
def test_columns_that_may_fail_the_reader_are_refused(database: bytes, column: str):
    axes = [{**WARD, "column": column, "name": "ward"}]
    assert "which cannot serve as a categorical axis" in refused(
        {"office.duckdb": database}, ColumnRefused, **FILE, axes=axes
    )


@pytest.mark.parametrize("damage", [lambda content: content[:3000], lambda content: b"", lambda content: b"x" * 9999])
def test_a_damaged_database_is_refused(database: bytes, damage: Any):
    message = refused({"office.duckdb": damage(database)}, SourceRefused, **FILE)
    assert message.startswith("source office.duckdb: ")


def test_a_database_is_never_written(database: bytes, tmp_path: Path):
    path = tmp_path / "office.duckdb"
    path.write_bytes(database)
    declared = spec(tmp_path, **FILE)
    with opened_source(plan_of(declared, declared.period_named("all")).source, tmp_path) as (connection, _):
        for statement in (
            "CREATE TABLE office.mine (x INTEGER)",
            "INSERT INTO office.admissions (person) VALUES ('eve')",
            "UPDATE office.admissions SET age = 1",
            "DROP TABLE office.admissions",
        ):
            with pytest.raises(duckdb.Error, match="read-only"):
                connection.execute(statement)
    assert path.read_bytes() == database


def test_a_source_is_one_database_and_none_is_made_where_it_is_missing(database: bytes, tmp_path: Path):
    declared = spec(tmp_path, **FILE)
    with (
        pytest.raises(SourceRefused, match="no such file"),
        opened_source(plan_of(declared, declared.period_named("all")).source, tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    assert "several databases" in refused(
        {"a.duckdb": database, "b.duckdb": database}, SourceRefused, **{**FILE, "source": "*.duckdb"}
    )


def test_a_table_is_named_exactly_where_there_is_a_database(tmp_path: Path):
    with pytest.raises(SpecError, match="source_table: is required with a database"):
        spec(tmp_path, source="office.duckdb")
    with pytest.raises(SpecError, match="source_table: has no use with files of records"):
        spec(tmp_path, source_table="admissions")
    assert len({spec(tmp_path, source="o.duckdb", source_table=table).digest for table in ("a", "b")}) == 2


def on_server(tmp_path: Path, address: str, **changes: Any) -> Any:
    written = "postgres:{{ env.OFFICE_DB }}"
    more = {"source_table": "clinic.admissions", "axes": [AGE, WARD], **changes}
    return spec(tmp_path, source=FromEnvironment(f"postgres:{address}", written), **more)


@pytest.mark.parametrize(
    "value",
    [
        f"postgres:host=db password={PASSWORD}",
        f"postgres:postgresql://me:{PASSWORD}@db/office",
        f"Postgres:{PASSWORD}",
        FromEnvironment(f"postgres:host=db password={PASSWORD}", "postgres:host=db password={{ env.PASSWORD }}"),
        FromEnvironment(f"postgres:{PASSWORD}", "{{ env.SOURCE }}"),
        FromEnvironment(f"postgres:a\n{PASSWORD}", "postgres:{{ env.OFFICE_DB }}"),
        FromEnvironment("postgres: ", "postgres:{{ env.OFFICE_DB }}"),
        f"s3://{PASSWORD}@bucket/x.parquet",
        f"https://me:{PASSWORD}@office/x.parquet",
    ],
)
def test_an_address_only_partly_from_the_environment_is_refused_and_not_shown(tmp_path: Path, value: str):
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, source=value, source_table="x")
    assert "attributes.source: " in str(caught.value) and PASSWORD not in str(caught.value)


def test_an_address_is_in_no_text_and_no_digest_of_a_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    declared = on_server(tmp_path, f"host=db password={PASSWORD}")
    assert declared.source == "postgres:{{ env.OFFICE_DB }}" and declared.source_format == "postgres"
    assert PASSWORD not in repr(declared) + str(declared) + repr(declared.source) + str(declared.as_json())
    assert declared.digest == on_server(tmp_path, "host=elsewhere").digest
    assert declared.source_pattern == declared.source
    monkeypatch.setenv("OFFICE_DB", f"host=db password={PASSWORD}")
    kept = ("release", "privacy_unit", "max_rows_per_unit", "neighbours", "account", "mechanism", "source_table")
    attributes = {**{field: getattr(declared, field) for field in kept}, "epsilon": 1, "axes": [AGE, WARD]}
    loaded = ReleaseSpec.of_fields({**attributes, "source": "postgres:{{ env.OFFICE_DB }}"}, tmp_path)
    assert loaded.digest == declared.digest and loaded.source.resolved == f"host=db password={PASSWORD}"


def has_extension() -> bool:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        try:
            connection.execute(f"LOAD {EXTENSION}")
        except duckdb.Error:
            return False
    return True


def staged(declared: Any, tmp_path: Path) -> Any:
    from dphist_pipeline.confidential.cube import read_and_count

    run = tmp_path / "run"
    run.mkdir(exist_ok=True)
    return read_and_count(plan_of(declared, declared.period_named("all")), run)


@pytest.mark.skipif(has_extension(), reason="DuckDB's extension for PostgreSQL is installed")
def test_without_the_extension_a_server_is_refused_and_nothing_is_downloaded(tmp_path: Path):
    with pytest.raises(SourceRefused) as caught:
        staged(on_server(tmp_path, f"host=db password={PASSWORD}"), tmp_path)
    message = str(caught.value)
    assert message.startswith(f"source postgres:{{{{ env.OFFICE_DB }}}}: needs DuckDB's extension {EXTENSION}")
    assert PASSWORD not in message and caught.value.__context__ is None


CLINIC = """
    CREATE SCHEMA clinic;
    CREATE TYPE kinds AS ENUM ('surgery', 'medicine');
    CREATE DOMAIN people AS text;
    CREATE TABLE clinic.admissions (
        person people, age numeric, ward kinds, seen timestamptz, day date, naive timestamp, note json, "na""me" text
    );
    INSERT INTO clinic.admissions VALUES
        ('a?b', 5, 'surgery', '2026-03-02 10:00+01', '2026-03-02', '2026-03-02', '{"a": "\\u0000"}', 'é'),
        ('a?b', 'NaN', 'medicine', 'infinity', 'infinity', 'infinity', '1', ''),
        ('c', 1e300, NULL, '294276-12-31 23:59:59+00', '5874897-12-31', '294276-12-31', NULL, 'Zacharias'),
        ('d', 15, NULL, '4713-01-01 00:00+00 BC', '4713-01-01 BC', '4713-01-01 BC', NULL, E'\\t'),
        (NULL, 15, NULL, NULL, NULL, NULL, NULL, NULL);
    CREATE VIEW clinic.seen AS SELECT person, 1 / 0 AS age, ward FROM clinic.admissions;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of this test's own."""
    if not has_extension() or programs() is None:
        problem = f"PostgreSQL, or DuckDB's extension {EXTENSION} for DuckDB {duckdb.__version__}, is not installed"
        missing("duckdb-postgres", problem)
    folder = tmp_path_factory.mktemp("server")
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    made = Server(folder)
    made.start()
    there = ("-h", str(folder), "-U", "postgres")
    try:
        made.run("psql", *there, "-q", "-c", CLINIC)
        made.run("createdb", *there, "-T", "template0", "-E", "SQL_ASCII", "--locale=C", "odd")
        made.run("psql", *there, "-d", "odd", "-q", "-c", CLINIC.replace("é", "e"))
        yield f"host={folder} user=postgres dbname=postgres password={PASSWORD}"
    finally:
        made.stop()


def test_a_table_of_a_server_is_read_whatever_it_holds(server: str, tmp_path: Path):
    axes: list[Any] = [AGE, WARD]
    assert staged(on_server(tmp_path, server, axes=axes), tmp_path).tolist() == [
        *[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0]
    ]
    for column in ("seen", "day", "naive"):
        week = {"period": "week", "period_column": column, "time_zone": "Europe/Brussels"}
        declared = on_server(tmp_path, server, **week)
        from dphist_pipeline.confidential.cube import read_and_count

        run = tmp_path / column
        run.mkdir()
        assert read_and_count(plan_of(declared, declared.period_named("2026-03-02")), run).sum() == 1


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"source_table": "clinic.nothing"}, SourceRefused, "has no table 'clinic.nothing'"),
        ({"source_table": "nothing'; DROP"}, SourceRefused, "has no table"),
        ({"source_table": "clinic.seen"}, SourceRefused, "which is no table"),
        ({"axes": [{**WARD, "column": "note", "name": "ward"}]}, ColumnRefused, "column 'note' has type JSON"),
        ({"axes": [{**WARD, "column": "notes"}]}, ColumnRefused, "'notes' is not in the source. Did you mean 'note'"),
    ],
)
def test_what_cannot_be_read_of_a_server_is_refused(
    server: str, tmp_path: Path, changes: dict[str, Any], error: Any, says: str
):
    with pytest.raises(error) as caught:
        staged(on_server(tmp_path, server, **changes), tmp_path)
    shown = str(caught.value) + repr(vars(caught.value))
    assert says in shown and PASSWORD not in shown and SECRET not in shown


def test_a_server_that_is_not_there_or_not_in_utf_8_is_refused_without_its_address(server: str, tmp_path: Path):
    for address, says in (
        (server.replace("dbname=postgres", "dbname=nothing"), "cannot be reached"),
        (server.replace("dbname=postgres", "dbname=odd"), "is not encoded in UTF-8"),
        (f"host=/nowhere password={PASSWORD}", "cannot be reached"),
    ):
        with pytest.raises(SourceRefused) as caught:
            staged(on_server(tmp_path, address), tmp_path)
        assert says in str(caught.value) and PASSWORD not in str(caught.value) and caught.value.__context__ is None


def test_a_server_is_never_written(server: str, tmp_path: Path):
    from dphist_pipeline.confidential.reading.ingest import opened_source

    declared = on_server(tmp_path, server)
    source = plan_of(declared, declared.period_named("all")).source
    with opened_source(source, tmp_path) as (connection, _):
        for statement in (
            "CREATE TABLE office.clinic.mine (x INTEGER)",
            "CALL postgres_execute('office', 'CREATE TABLE clinic.mine (x int)')",
            "ATTACH 'dbname=odd' AS other (TYPE postgres)",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)

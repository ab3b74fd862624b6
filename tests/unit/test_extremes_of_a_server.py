"""Extremes of PostgreSQL's own types, used twice: all of them in one table give what each row gives alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from database_server import Server, running_server
from extreme_values import COPIES, OUTCOMES, PAIRS, spec_of
from one_engine import one_engine

from dphist_pipeline.base.sql_files import literal
from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading import _databases as databases
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import FromEnvironment

pytestmark = pytest.mark.outside

_TIMES = ("-infinity", "infinity", "4713-01-01 BC", "0044-03-15 BC", "1970-01-01", "2026-01-06 12:00", "9999-12-31")
_NUMBERS = ("NaN", "Infinity", "-Infinity", "0", "-0", "5")
TYPES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("-32768", "-32767", "0", "5", "32767"),
    "integer": ("-2147483648", "0", "5", "2147483647"),
    "bigint": ("-9223372036854775808", "-9223372036854775807", "0", "5", "9223372036854775807"),
    "numeric": (*_NUMBERS, "1e-1000", "1e10000", "-1e10000", "9" * 400, "5." + "0" * 400),
    "real": (*_NUMBERS, "1e-45", "3.4e38", "-3.4e38"),
    "double precision": (*_NUMBERS, "5e-324", "1.797e308", "-1.797e308"),
    "text": ("", " ", "5", "surgery", "é", "\U0001f469", "x" * ((1 << 20) + 1), "nan", "1e999", "infinity", "0x10"),
    "character(8)": ("", "5", "surgery"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "date": (*_TIMES, "5874897-12-31"),
    "timestamp": (*_TIMES, "294276-12-31 23:59:59.999999"),
    "timestamptz": (*_TIMES, "294276-12-31 23:59:59.999999+00", "4713-01-01 00:00+15 BC"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def has_extension() -> bool:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        try:
            connection.execute(f"LOAD {databases.EXTENSION}")
        except duckdb.Error:
            return False
    return True


@pytest.fixture(autouse=True)
def carried(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where DuckDB's extension is missing, the server's own answers to the same queries come as files."""
    if has_extension():
        return
    numbers = count()

    def answered(query: str) -> str:
        with psycopg.connect(server.address("postgres")) as connection, connection.cursor() as cursor:
            rows = cursor.execute(query.encode()).fetchall()
            names = [column.name for column in cursor.description or ()]
        columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(names))]
        file = tmp_path / f"answer-{next(numbers)}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, names), file)
        return f"SELECT * FROM read_parquet({literal(str(file))})"

    monkeypatch.setattr(databases, "attach_server", lambda *given: None)
    monkeypatch.setattr(databases, "_of_server", answered)


def made(server: Server, kind: str, values: tuple[str | None, ...], copies: int) -> None:
    """The table `seen` of some rows of each value, as the server understands it."""
    with psycopg.connect(server.address("postgres"), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS seen")
        connection.execute(f"CREATE TABLE seen (person text, age float8, v {kind})".encode())
        rows = [(f"p{number}", 5.0, value) for number, value in enumerate([*values] * copies)]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO seen VALUES (%s, %s, %s::text::{kind})".encode(), rows)


def plan(server: Server, folder: Path, uses: tuple[str, ...], outcome: str) -> CountingPlan:
    """How that table is counted."""
    (folder / "query.sql").write_text(f"SELECT *, {outcome} AS made FROM source")
    address = FromEnvironment(f"postgres:{server.address('postgres')}", "postgres:{{ env.OFFICE }}")
    fields: dict[str, Any] = spec_of("", uses) | {"source": address, "source_table": "seen"}
    spec = ReleaseSpec.from_attributes(fields, folder)
    return plan_of(spec, spec.period_named("2026-01-05" if "period" in uses else "all"))


def counted(planned: CountingPlan, folder: Path) -> list[int] | str:
    """The cube of that table; or what refuses its columns."""
    try:  # the run's folder is the one that may be read, where the server's answers lie
        with one_engine():
            return [int(count) for count in read_and_count(planned, folder)]
    except ColumnRefused as refused:
        return str(refused)


@pytest.mark.parametrize("kind", TYPES)
def test_extremes_of_a_servers_type_fail_nothing(
    server: Server, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_stage_apart", lambda *given: pytest.fail("the engine failed on what a row holds"))
    cases = [plan(server, tmp_path, uses, OUTCOMES[number % len(OUTCOMES)]) for number, uses in enumerate(PAIRS)]
    made(server, kind, (None,) * (len(TYPES[kind]) + 1), COPIES)
    twin = [counted(case, tmp_path) for case in cases]
    made(server, kind, (*TYPES[kind], None), COPIES)
    together = [counted(case, tmp_path) for case in cases]
    assert [said for said in together if isinstance(said, str)] == [said for said in twin if isinstance(said, str)]
    assert any(isinstance(said, list) for said in together)
    alone = {place: list[Any]() for place in range(list(TYPES).index(kind) % 4, len(cases), 4)}
    for value in (*TYPES[kind], None):
        made(server, kind, (value,), COPIES)
        for place, cubes in alone.items():
            cubes.append(counted(cases[place], tmp_path))
    for place, cubes in alone.items():
        said = together[place]
        assert said == (np.sum(np.array(cubes), axis=0).tolist() if isinstance(said, list) else cubes[0]), cases[place]

"""What is asked before spending never opens the records and charges nothing, whatever the source is."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import RECORDS, Office

from dphist_pipeline.confidential.reading import ingest

SECONDS = 300
QUICK = ["--repeat", "1", "--mechanism", "geometric", "--mechanism", "dpcube", "--target-error", "5"]
GUESS = ["--records", "1000"]
ASKED = {
    "rehearse": ["rehearse", "spec.yaml", "--rows", "50"],
    "forecast": ["forecast", "spec.yaml", *QUICK, *GUESS],
    "forecast by what was published": ["forecast", "spec.yaml", *QUICK, "--stand-in", "wards"],
    "compare with what was published": ["compare", "wards", *QUICK[:4]],
}
_opened: list[str] | None = None


def _listen(event: str, facts: tuple[Any, ...]) -> None:
    if _opened is not None and event in ("open", "os.open", "pathlib.Path.open"):
        _opened.append(os.fsdecode(facts[0]) if isinstance(facts[0], str | bytes | os.PathLike) else "")


sys.addaudithook(_listen)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The files that Python opens meanwhile."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """A pipe that is opened would wait for ever."""

    def give_up(*facts: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def missing(source: Path) -> None:
    source.unlink()


def a_pipe(source: Path) -> None:
    source.unlink()
    os.mkfifo(source)


def unreadable(source: Path) -> None:
    source.chmod(0)


def damaged(source: Path) -> None:
    source.write_bytes(b"no table")


def as_it_was(source: Path) -> None:
    assert source.is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "change"),
    [
        *(("rehearse", change) for change in (a_pipe, as_it_was)),
        *(pytest.param("rehearse", change, marks=pytest.mark.soak) for change in (missing, unreadable)),
        *(("forecast", change) for change in (a_pipe, as_it_was)),
        ("forecast by what was published", damaged),
        ("compare with what was published", a_pipe),
    ],
)
def test_neither_the_source_nor_the_ledger_is_touched(
    office: Office, monkeypatch: pytest.MonkeyPatch, asked: str, change: Callable[[Path], None]
) -> None:
    office.with_release()
    source = office.folder / "data" / "admissions.parquet"
    change(source)
    looked_for: list[str] = []
    find_files = ingest.find_files

    def watched(pattern: str, written: str | None = None) -> Any:
        looked_for.append(pattern)
        return find_files(pattern, written)

    monkeypatch.setattr(ingest, "find_files", watched)
    ledger = office.store / "ledger.sqlite"
    before = (ledger.read_bytes(), ledger.stat().st_mtime_ns, entries(office.folder), office.entries())
    with opened_files() as opened:
        ran = office.run(*ASKED[asked])
    assert (ran.code, "error" in ran.err) == (0, False)
    assert (ledger.read_bytes(), ledger.stat().st_mtime_ns, entries(office.folder), office.entries()) == before
    assert opened and not [path for path in opened if Path(path).absolute().is_relative_to(source.parent)]
    assert not [pattern for pattern in looked_for if pattern.startswith(str(office.folder))]
    assert len(looked_for) == (asked == "rehearse")


def entries(folder: Path) -> list[tuple[str, int]]:
    """Every path of the project with its size, without opening any."""
    return sorted((str(path), path.lstat().st_size) for path in folder.rglob("*"))


def test_a_forecast_cannot_count_anything(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened()
    forbid(monkeypatch, duckdb, "connect", "sql", "read_parquet", "read_csv")
    forbid(monkeypatch, pl, "scan_parquet", "read_parquet", "read_csv", "LazyFrame", "DataFrame")
    forbid(monkeypatch, pq, "read_table", "ParquetFile", "ParquetDataset")
    forbid(monkeypatch, pa, "memory_map", "input_stream")
    assert office.run(*ASKED["forecast"]).code == 0


def test_a_draft_reads_a_schema_and_no_value(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.write_records({**RECORDS, "ward": ["hidden-ward", "b", "c", None]})
    Path("people.csv").write_text("patient,age\nhidden-ann,34\n")
    forbid(monkeypatch, duckdb, "connect", "sql", "read_parquet", "read_csv")
    forbid(monkeypatch, pl, "scan_parquet", "read_parquet", "read_csv", "LazyFrame", "DataFrame")
    forbid(monkeypatch, pq, "read_table", "read_metadata", "ParquetDataset", "read_pandas")
    forbid(monkeypatch, pq.ParquetFile, "read", "iter_batches", "read_row_group", "metadata", "scan_contents")
    for name, source in (("one", "data/admissions.parquet"), ("two", "people.csv")):
        ran = office.run("new", name, "--from", source)
        assert (ran.code, ran.err) == (0, "")
        assert "hidden" not in ran.out + Path(f"{name}.yaml").read_text()


def test_a_pipe_is_not_opened_for_its_columns(office: Office) -> None:
    os.mkfifo("people.csv")
    ran = office.run("new", "wards", "--from", "people.csv")
    assert ran.code == 1 and "is not a regular file" in ran.err
    assert not Path("wards.yaml").exists()


def forbid(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> None:
    def refuse(*args: object, **more: object) -> Any:
        raise AssertionError("this reads records")

    for name in names:
        monkeypatch.setattr(owner, name, refuse)

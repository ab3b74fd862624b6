"""The catalogue is written by a process that has read no record, whatever kills it or the one that asks it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from fork_server import PROCESSES
from system.small_release import WEEKS, Project, prepared
from typer.testing import CliRunner

from dphist_pipeline.answering import building, catalogue, catalogue_process
from dphist_pipeline.answering.building import CatalogueNotBuilt
from dphist_pipeline.answering.catalogue_process import CatalogueProcess
from dphist_pipeline.cli.app import app
from dphist_pipeline.errors import DphistError

pytestmark = pytest.mark.slow

REAL = building.build_apart
BUILD = catalogue.build_catalogue


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(building, "build_apart", REAL)
    monkeypatch.setattr(building, "build_catalogue", BUILD)
    made = Project.make(tmp_path / "project")
    (made.root / "public" / "catalog.duckdb").unlink()  # which projects of tests have from the start
    return made


def rows_of(public: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows and columns of every table of a catalogue, and its macros, by query."""
    with duckdb.connect(public / "catalog.duckdb", read_only=True) as connection:
        query = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'catalog' ORDER BY ALL"
        tables = [f'"{schema}"."{table}"' for schema, table in connection.execute(query).fetchall()]
        queries = [*(f"FROM {table} ORDER BY ALL" for table in tables), *(f"DESCRIBE {table}" for table in tables)]
        macros = "duckdb_functions() WHERE database_name = 'catalog'"
        queries.append(f"SELECT function_name, macro_definition FROM {macros} ORDER BY ALL")
        return {query: [tuple(map(ordered, row)) for row in connection.execute(query).fetchall()] for query in queries}


def ordered(value: Any) -> Any:
    """A macro as its words in alphabetical order: DuckDB writes EXCLUDE and REPLACE in any order when it copies one."""
    if isinstance(value, str) and re.search(r"\b(EXCLUDE|REPLACE) \(", value):
        return sorted(re.findall(r"\w+|\S", value))
    return value


def test_a_release_has_its_catalogue_built_by_another_process(project: Project, monkeypatch) -> None:
    ran = []

    class Noted(subprocess.Popen[str]):
        def __init__(self, command: list[str], **options: Any) -> None:
            ran.append((command, options["env"]))
            super().__init__(command, **options)

    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setattr(catalogue_process.subprocess, "Popen", Noted)
    project.release()
    ((command, environment),) = ran
    assert command[1:3] == ["-I", "-S"] and command[3] == str(catalogue_process.SCRIPT)
    assert environment == {}
    assert (project.root / "public" / "catalog.duckdb").stat().st_size > 0
    project.release()
    assert len(ran) == 1, "a replay found the release in the catalogue"


def test_it_writes_what_this_process_would_write(project: Project) -> None:
    for week in WEEKS[:2]:
        project.release(week)
    apart, here = project.root / "public", project.root.parent / "here"
    shutil.copytree(apart, here, ignore=shutil.ignore_patterns("catalog.duckdb", "picker", "latest"))
    building.build(here, project.root.parent)
    found, wanted = rows_of(apart), rows_of(here)
    for rows in (found, wanted):  # the file's time
        rows.pop(next(query for query in rows if "dph_version" in query and query.startswith("FROM")))
    assert found == wanted and sum(map(len, found.values())) > 200
    made = [path.relative_to(here) for path in here.rglob("*") if path.is_file() and path.name != "catalog.duckdb"]
    differing = [path for path in made if (here / path).read_bytes() != (apart / path).read_bytes()]
    assert len(made) > 15 and [path for path in differing if path.suffix != ".xlsx"] == []


def test_an_error_of_duckdb_is_the_same_on_this_side(tmp_path: Path) -> None:
    with catalogue_process.catalogue_process() as process:
        with process.connect(tmp_path) as connection, pytest.raises(duckdb.CatalogException, match="nowhere"):
            connection.execute("FROM nowhere")
        with process.connect(tmp_path) as connection:
            assert connection.execute("SELECT 1, NULL, [$a], 'é'", {"a": "ü"}).fetchall() == [(1, None, ["ü"], "é")]


def test_several_catalogues_have_one_process_and_it_ends(project: Project, monkeypatch) -> None:
    started, start = [], catalogue_process._start_process
    monkeypatch.setattr(catalogue_process, "_start_process", lambda: started.append(start()) or started[-1])
    with catalogue_process.catalogue_process():
        assert started == [], "nothing is to be built yet"
        project.release()
        project.release(WEEKS[1])
        (process,) = started
        process.kill()
        process.wait()
        with pytest.raises(CatalogueNotBuilt, match="ended with -9"):
            project.release(WEEKS[2])
        project.release(WEEKS[2])
    assert len(started) == 2 and all(process.returncode is not None for process in started)
    assert catalogue.Catalogue(project.root / "public").is_complete()


def _killed(project: Project, said: Any) -> None:
    prepared(project, 0)
    building.build_apart = REAL
    run, asked = CatalogueProcess.run, list[object]()

    def dying(process: CatalogueProcess, *given: Any) -> Any:
        rows = run(process, *given)
        asked.append(given)
        if len(asked) == 5 and process._process is not None:
            os.kill(process._process.pid, signal.SIGSTOP)
            said.send(process._process.pid)
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    CatalogueProcess.run = dying  # type: ignore[method-assign]
    catalogue.Catalogue.is_up_to_date = lambda self, folder: False  # type: ignore[method-assign]
    project.release()


def test_a_release_goes_on_at_once_where_the_one_before_was_killed_and_its_process_stopped(project: Project) -> None:
    ours, theirs = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=_killed, args=(project, theirs))
    child.start()
    theirs.close()
    stopped = ours.recv()
    child.join()
    try:
        assert child.exitcode == -signal.SIGKILL
        begun = time.monotonic()
        assert project.release().replayed
        assert time.monotonic() - begun < 30
        assert Path(f"/proc/{stopped}").exists(), "it is stopped all the while, and holds nothing"
    finally:
        os.kill(stopped, signal.SIGKILL)
    assert catalogue.Catalogue(project.root / "public").is_complete()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        duckdb.IOException('IO Error: Could not write file "x": No space left on device'),
    ],
)
def test_a_full_disk_is_named_with_its_folder(error: Exception, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(building, "build", mock.Mock(side_effect=error))
    disk = next(above for above in (tmp_path, *tmp_path.parents) if above.is_mount())
    with pytest.raises(CatalogueNotBuilt) as refused:
        REAL(tmp_path, tmp_path)
    assert refused.value.problem.startswith(f"the disk at {disk} is full")
    assert f"{tmp_path} lies on it. Free space there." in refused.value.problem


def test_another_error_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "build", mock.Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(CatalogueNotBuilt, match="it failed with PermissionError"):
        REAL(tmp_path, tmp_path)


def test_what_the_other_process_finds_damaged_is_set_aside(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as here:
        here.setattr(building, "build_apart", building.build)
        project.release()
    (project.published() / "groups.parquet").unlink()
    (project.root / "public" / "catalog.duckdb").unlink()
    damaged = project.published()
    project.release("2024-01-08")
    assert not damaged.exists() and [*damaged.parent.glob("damaged_revision=1_*")]
    assert project.published("2024-01-08").is_dir()


def test_a_process_that_dies_is_said(project: Project, monkeypatch) -> None:
    monkeypatch.setattr(catalogue_process.sys, "executable", shutil.which("false"))
    with pytest.raises(CatalogueNotBuilt, match="ended with 1"):
        project.release()


def test_a_replay_a_refused_run_and_a_new_store_start_no_process(project: Project, monkeypatch, tmp_path: Path) -> None:
    project.release()
    monkeypatch.setattr(catalogue_process, "_start_process", mock.Mock(side_effect=AssertionError("for nothing")))
    assert project.release().replayed
    with pytest.raises(DphistError):
        project.release("2024-01-09")  # no first day of a week
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(tmp_path / "operator.key"))
    monkeypatch.setenv("DPHIST_WITNESS", str(tmp_path / "witness.sqlite"))
    made = CliRunner().invoke(app, ["init", "--store", str(tmp_path / "other")])
    assert made.exit_code == 0 and list((tmp_path / "other" / "public").iterdir()) == []


def test_a_kept_empty_catalogue_saves_creating_the_macros(project: Project, monkeypatch, tmp_path: Path) -> None:
    with monkeypatch.context() as here:
        here.setattr(building, "build_apart", building.build)
        project.release()
    public, scratch = project.root / "public", tmp_path / "scratch"
    scratch.mkdir()

    def macros() -> list[Any]:
        with duckdb.connect(public / "catalog.duckdb", read_only=True) as connection:
            assert connection.execute("SELECT period FROM dph_releases").fetchall() != []
            return connection.execute(
                "SELECT schema_name, function_name, parameters FROM duckdb_functions() "
                "WHERE database_name = 'catalog' ORDER BY ALL"
            ).fetchall()

    (public / "catalog.duckdb").unlink()
    catalogue.build_catalogue(public, scratch)
    anew = macros()
    monkeypatch.setattr(catalogue, "cache_from_source", lambda source: str(tmp_path / "catalogue.pyc"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    empty = partial(catalogue.kept_empty, connect=catalogue.one_thread)
    kept = catalogue.kept_empty(scratch, catalogue.one_thread)
    (public / "catalog.duckdb").unlink()
    with monkeypatch.context() as here:
        here.setattr(catalogue, "create_tables", mock.Mock(side_effect=AssertionError("created anew")))
        catalogue.build_catalogue(public, scratch, empty=empty)
    assert macros() == anew and anew
    kept.write_bytes(b"damaged")
    (public / "catalog.duckdb").unlink()
    catalogue.build_catalogue(public, scratch, empty=empty)
    assert macros() == anew and list(scratch.iterdir()) == []


def test_no_empty_catalogue_is_kept_where_python_keeps_no_compiled_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(catalogue, "cache_from_source", lambda source: str(tmp_path / "catalogue.pyc"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not catalogue.kept_empty(tmp_path, catalogue.one_thread).exists()


def test_the_process_ends_when_its_starter_does() -> None:
    """A starter that is killed closes its standard input."""
    process = catalogue_process._start_process()
    assert process.communicate("", timeout=120) == ("", None) and process.returncode == 0


def test_links_in_the_place_of_what_is_built_lead_no_file_outside(project: Project) -> None:
    project.release()
    outside, release = project.root.parent / "outside", project.published().parents[1]
    outside.mkdir()
    for name in ("latest", "picker"):
        shutil.rmtree(release / name)
        (release / name).symlink_to(outside)
    building.build(project.root / "public", project.root.parent)
    assert not any(outside.iterdir())
    assert (release / "latest" / "cells.csv").is_file() and not (release / "latest").is_symlink()

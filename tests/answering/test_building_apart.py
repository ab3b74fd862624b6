"""The catalogue is built by a process that has read no record; `dphist release` starts it before it is needed."""

from __future__ import annotations

import errno
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from system.small_release import Project
from typer.testing import CliRunner

from dphist_pipeline.answering import building, catalogue
from dphist_pipeline.answering.building import CatalogueNotBuilt
from dphist_pipeline.base import early_processes
from dphist_pipeline.cli.app import app
from dphist_pipeline.cli.commands import NEEDED_BY_RELEASE
from dphist_pipeline.errors import DphistError

pytestmark = pytest.mark.slow

REAL = building.build_apart


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(building, "build_apart", REAL)
    made = Project.make(tmp_path / "project")
    (made.root / "public" / "catalog.duckdb").unlink()  # which projects of tests have from the start
    return made


def test_a_release_has_its_catalogue_built_by_another_process(project: Project, monkeypatch) -> None:
    ran = []

    class Noted(subprocess.Popen[str]):
        def __init__(self, command: list[str], **options: Any) -> None:
            ran.append((command, options["env"]))
            super().__init__(command, **options)

    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(project.root.parent / "compiled"))
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setattr(early_processes.subprocess, "Popen", Noted)
    project.release()
    ((command, environment),) = ran
    assert command[1:] == ["-P", "-m", "dphist_pipeline.answering.building"]
    assert set(environment) == {"PATH", "PYTHONPATH", "NUMBA_CACHE_DIR"}
    assert "hunter2" not in str(environment)
    assert (project.root / "public" / "catalog.duckdb").stat().st_size > 0
    project.release()
    assert len(ran) == 1, "a replay found the release in the catalogue"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        duckdb.IOException('IO Error: Could not write file "x": No space left on device'),
    ],
)
def test_a_full_disk_is_named_with_its_folder(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(*_: object) -> None:
        raise error

    monkeypatch.setattr(building, "build", build)
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps([str(tmp_path), str(tmp_path), False]) + "\n"))
    building.main()
    said, folder = json.loads(capsys.readouterr().out)
    assert folder == ""
    disk = next(above for above in (tmp_path, *tmp_path.parents) if above.is_mount())
    assert said.startswith(f"the disk at {disk} is full") and f"{tmp_path} lies on it. Free space there." in said


def test_another_error_of_the_other_process_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "build", mock.Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps([str(tmp_path), str(tmp_path), False]) + "\n"))
    with pytest.raises(PermissionError):
        building.main()


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
    monkeypatch.setattr(early_processes.sys, "executable", shutil.which("false"))
    with pytest.raises(CatalogueNotBuilt, match="ended with 1"):
        project.release()


def test_processes_that_were_started_early_are_used_and_ended(project: Project, monkeypatch) -> None:
    started, start = {}, early_processes.start

    def noting(module: str) -> early_processes.Process:
        assert module not in started, "the one that waits is used"
        started[module] = start(module)
        return started[module]

    monkeypatch.setattr(early_processes, "start", noting)
    with early_processes.started_early(NEEDED_BY_RELEASE):
        project.release()
        project.release("2024-01-08")
    assert set(started) == {*NEEDED_BY_RELEASE}
    assert all(process.returncode is not None for process in started.values())
    with duckdb.connect(project.root / "public" / "catalog.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM dph_releases").fetchall() == [(2,)]


def test_a_replay_a_refused_run_and_a_new_store_start_no_process(project: Project, monkeypatch, tmp_path: Path) -> None:
    project.release()
    monkeypatch.setattr(early_processes, "start", mock.Mock(side_effect=AssertionError("for nothing")))
    with early_processes.started_early(NEEDED_BY_RELEASE):
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
    kept = catalogue.kept_empty(scratch)
    (public / "catalog.duckdb").unlink()
    with monkeypatch.context() as here:
        here.setattr(catalogue, "create_tables", mock.Mock(side_effect=AssertionError("created anew")))
        catalogue.build_catalogue(public, scratch, empty=catalogue.kept_empty)
    assert macros() == anew and anew
    kept.write_bytes(b"damaged")
    (public / "catalog.duckdb").unlink()
    catalogue.build_catalogue(public, scratch, empty=catalogue.kept_empty)
    assert macros() == anew and list(scratch.iterdir()) == []


def test_no_empty_catalogue_is_kept_where_python_keeps_no_compiled_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(catalogue, "cache_from_source", lambda source: str(tmp_path / "catalogue.pyc"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not catalogue.kept_empty(tmp_path).exists()


def test_early_processes_end_when_their_starter_does() -> None:
    """A starter that is killed closes their standard input."""
    for module in NEEDED_BY_RELEASE:
        process = early_processes.start(module)
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

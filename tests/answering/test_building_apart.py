"""The catalogue is built by a process that has read no record."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from system.small_release import NAME, WEEK, Project

from dphist_pipeline.answering import building
from dphist_pipeline.answering.building import CatalogueNotBuilt

REAL = building.build_apart


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(building, "build_apart", REAL)
    made = Project.make(tmp_path / "project")
    (made.root / "public" / "catalog.duckdb").unlink()  # which projects of tests have from the start
    return made


def test_a_release_has_its_catalogue_built_by_another_process(project: Project, monkeypatch) -> None:
    ran = []
    run = subprocess.run

    def noting(command: list[str], **options: Any) -> Any:
        ran.append((command, options["env"]))
        return run(command, **options)

    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setattr(subprocess, "run", noting)
    project.release()
    ((command, environment),) = ran
    assert command[1:3] == ["-m", "dphist_pipeline.answering.building"]
    assert set(environment) == {"PATH", "PYTHONPATH"}
    assert "hunter2" not in str(environment)
    assert (project.root / "public" / "catalog.duckdb").stat().st_size > 0
    project.release()
    assert len(ran) == 1, "a replay found the release in the catalogue"


def test_what_the_other_process_refuses_is_said_and_the_release_stands(project: Project) -> None:
    project.release()
    (project.published() / "groups.parquet").unlink()
    (project.root / "public" / "catalog.duckdb").unlink()
    with pytest.raises(CatalogueNotBuilt, match=r"missing or altered groups\.parquet"):
        project.release("2024-01-08")
    assert project.published("2024-01-08").is_dir()
    assert project.published(WEEK).parts[-3] == NAME


def test_a_process_that_dies_is_said(project: Project, monkeypatch) -> None:
    monkeypatch.setattr(building.sys, "executable", shutil.which("false"))
    with pytest.raises(CatalogueNotBuilt, match="ended with 1"):
        project.release()

"""The demo: its specs are valid, and done again it replays without reading a record."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import office
import pytest
from system.small_release import FILES, Project

from dagster_project import demo
from dphist_pipeline.integrations.dagster import partitions_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import mostly_soaked

PROJECT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
# The same people, only fewer and in fewer weeks; for the file itself see `make demo`.
WEEKS = 2
# Fails, begins anew, and is done again, all in one process: what is looked at lies in files.
THRICE = f"""
import shutil, sys
from dagster_project import synthetic
synthetic.PERSONS, synthetic.PATIENTS, synthetic.WEEKS = 3000, 1000, {WEEKS}
from dagster_project import demo
for name in ("population", "admissions"):
    (demo.FOLDER / "data" / (name + ".parquet")).write_bytes(b"no record")
try:
    demo.main()
except SystemExit as ended:
    print(ended, file=sys.stderr)
demo.FOLDER.rename("failed")
print("ANEW")
demo.main()
shutil.copytree("demo", "before")
for records in (demo.FOLDER / "data").iterdir():
    records.write_bytes(b"no record is read")
print("AGAIN")
demo.main()
"""


def ran(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command in a folder, with nothing of the developer's own environment."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_"))}
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**ours, "PATH": path, "PYTHONPATH": str(folder), "COLUMNS": "80", "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.outside
@pytest.mark.parametrize("other", mostly_soaked(["population", "weekly_admissions"], [1]))
def test_dg_finds_no_mistake_in_the_specs_of_the_demo(tmp_path: Path, other: str) -> None:
    project = copied(tmp_path)
    # Of several components of one type, dg 1.13 checks no more than the last that it finds: one at a time.
    shutil.rmtree(project / "dagster_project" / "defs" / other)
    checked = ran(project, PROGRAMS / "dg", "check", "yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "All component YAML validated successfully" in checked.stdout


@pytest.mark.outside
@pytest.mark.parametrize(
    ("old", "new", "says"),
    mostly_soaked([("  account: census\n", "", "account"), ("epsilon:", "epsilom:", "epsilom")], [1]),
)
def test_dg_finds_a_missing_and_an_unknown_field(tmp_path: Path, old: str, new: str, says: str) -> None:
    project = copied(tmp_path)
    shutil.rmtree(project / "dagster_project" / "defs" / "weekly_admissions")
    spec = project / "dagster_project" / "defs" / "population" / "defs.yaml"
    spec.write_text(spec.read_text().replace(old, new))
    checked = ran(project, PROGRAMS / "dg", "check", "yaml")
    assert checked.returncode != 0 and says in checked.stdout


def copied(folder: Path) -> Path:
    """The demo's project, without anything that it has made."""
    shutil.copytree(PROJECT / "dagster_project", folder / "dagster_project")
    shutil.copy(PROJECT / "pyproject.toml", folder)
    return folder


@pytest.mark.outside
def test_a_demo_fails_with_a_reason_and_done_again_replays_without_a_record(tmp_path: Path) -> None:
    project = copied(tmp_path)
    (project / "demo" / "data").mkdir(parents=True)
    done = ran(project, sys.executable, "-c", THRICE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "population.parquet" in done.stderr and "Traceback" not in done.stderr
    assert not Project(project / "failed").files("public")

    first, again = done.stdout.partition("ANEW")[2].split("AGAIN")
    assert "Replayed" not in first and f"{WEEKS + 1}/{WEEKS + 1}" in first
    before = Project(project / "before").files("public")
    # Each week, and one of them twice, has a quality table; the population has noisy sums of groups.
    assert len(before) == len(FILES) * (WEEKS + 2) + WEEKS + 2
    assert "published twice" in first
    assert "Replayed: every file keeps its bytes, nothing was spent, no record was read." in again
    assert Project(project / "demo").files("public") == before
    copies = [Project(project / folder).ledger().entries() for folder in ("before", "demo")]
    assert copies[0] == copies[1]
    assert again.split("Surgical")[1] == first.split("Surgical")[1]

    (asked,) = [line for line in again.splitlines() if line.startswith("Ask it:")]
    program, *words = shlex.split(asked.removeprefix("Ask it:"))
    assert program == ".venv/bin/dphist"
    with chdir(project):
        answer = office.ran(*words)
    assert answer.code == 0, answer.err


def test_the_weeks_of_the_demo_end_where_its_data_end() -> None:
    partitions = partitions_of(ReleaseSpec.load(demo.SPECS / "weekly_admissions" / "defs.yaml"))
    assert partitions is not None and partitions.get_partition_keys() == demo.WEEK_KEYS


def test_dg_is_told_which_environment_is_active() -> None:
    lines = (PROJECT / "Makefile").read_text().replace("\\\n", "").splitlines()
    ours = [line for line in lines if "$(BIN)/dg " in line]
    assert len(ours) == 2 and all("VIRTUAL_ENV=$(CURDIR)/.venv " in line for line in ours)

"""What a plain release of 30 cells leaves in the public folder, and how many processes it starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from office import AGE, Office

pytestmark = pytest.mark.slow

PLACE = "wards/period=all/revision=1"
SEALED = ("audit.json", "audit.parquet", "groups.parquet", "histogram.parquet")
# Each file that is made from others is a line here: a new one needs a reason.
DERIVED = [
    f"{PLACE}/card.html",  # what the numbers say, for people
    f"{PLACE}/deployment.yaml",  # the same for registries
    "catalog.duckdb",  # questions in SQL
    "wards/current.json",  # which files are current, for programs
    "wards/latest/cells.csv",  # every cell, for spreadsheets
    "wards/latest/cells.parquet",  # every cell, for programs
    "wards/picker/script.js",  # sums on the page: its program,
    "wards/picker/release.js",  # what can be chosen,
    "wards/picker/period=all/cells.js",  # and the cells
    "wards/index.html",  # the page of the release
    "index.html",  # the page of all
]
WITH_EXPORT = ["wards/latest/cells.xlsx"]  # only where the extra `export` is installed
MOST = 15
# The command as it is installed; the interpreter itself tells which processes it starts.
COMMAND = """
import json, os, sys
started = []
kinds = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.spawn"}
sys.addaudithook(lambda event, given: started.append(event) if event in kinds else None)
from dphist_pipeline.cli import app
sys.argv = ["dphist", "release", "spec.yaml"]
try:
    app.main()
finally:
    print(json.dumps(started), file=sys.stderr)
"""


def test_a_plain_release_writes_few_files_and_starts_one_process(office: Office) -> None:
    wards = {"column": "ward", "values": ["surgery", "medicine", "maternity", "paediatrics", "other wards"]}
    office.opened().write_spec(axes=[{**AGE, "start": 0, "stop": 100, "width": 20, "above": True}, wards])
    with office.witnessed():
        ran = subprocess.run([sys.executable, "-c", COMMAND], cwd=office.folder, capture_output=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    public = office.store / "public"
    files = {path.relative_to(public).as_posix() for path in public.rglob("*") if path.is_file()}
    assert files == {*(f"{PLACE}/{name}" for name in SEALED), *DERIVED, *WITH_EXPORT}
    assert len(files - {*WITH_EXPORT}) <= MOST
    assert json.loads(ran.stderr.splitlines()[-1]) == ["subprocess.Popen"], (
        "the catalogue is built by a process that has read no record"
    )

"""The page *From your client*: its lines, run by the clients that they are for, on a copied public folder.

Clients are installed in `.clients` once, in the versions of the page; what cannot be had is skipped with a word.
"""

from __future__ import annotations

import csv
import datetime
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import by_hand
import duckdb
import pytest
from by_hand import AGE
from docs.pages import FENCE, PROJECT
from requiring import missing

from dphist_pipeline.answering.building import build
from dphist_pipeline.publishing.derived_files import DerivedFiles
from examples import mostly_soaked

pytestmark = [
    pytest.mark.outside,
    pytest.mark.stand_in("pictures", why="clients read tables"),
]

CLIENTS = PROJECT / ".clients"
PAGE = (PROJECT / "docs" / "how-to" / "from-your-client.md").read_text(encoding="utf-8")
PYTHON = {
    "readers": ("ibis-framework[duckdb]==12.0.0", "duckdb-engine==0.17.0", "sqlalchemy==2.1.9", "duckdb==1.5.6"),
    "dbt": ("dbt-duckdb==1.10.1", "dbt-core==1.10.23", "duckdb==1.5.6"),
    "harlequin": ("harlequin==2.17.0",),
}
NODE = {"node.mjs": "@duckdb/node-api@1.5.6-r.1", "wasm.cjs": "@duckdb/duckdb-wasm@1.32.0"}  # by the file that asks
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
WEEKS = (datetime.date(2026, 1, 5), datetime.date(2026, 1, 12))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a copied public folder alone, with two weeks of one release."""
    folder = tmp_path_factory.mktemp("client")
    public, scratch = folder / "public", tmp_path_factory.mktemp("scratch")
    public.mkdir()
    for start in WEEKS:
        end = start + datetime.timedelta(7)
        days = {"period_start": f"{start}T00:00:00+00:00", "period_end": f"{end}T00:00:00+00:00"}
        by_hand.publish(public, by_hand.estimate([AGE, WARD]), [AGE, WARD], "admissions", str(start), **days)
    DerivedFiles(public).write_current_files(scratch)
    build(public, scratch)
    return folder


@pytest.fixture(scope="module")
def surgery(folder: Path) -> str:
    """What every client must say: the unbiased count of a ward in a week, a whole number."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder}/public/catalog.duckdb' AS r (READ_ONLY)")
        asked = "SELECT unbiased FROM r.dph_box('r.admissions', {'ward': 'surgery'}, '2026-01-05')"
        (row,) = connection.execute(asked).fetchall()
    return f"{row[0]:.0f}"


def block(holding: str) -> str:
    """The text of the one block of the page that holds some words."""
    (found,) = [one["text"] for one in FENCE.finditer(PAGE) if holding in one["text"]]
    return found


def installed(name: str) -> Path:
    """The folder of programs of a Python with the packages of a client; what fits in ours, it takes from there."""
    programs = CLIENTS / name / "bin"
    if not (CLIENTS / name / "ready").exists():
        shutil.rmtree(CLIENTS / name, ignore_errors=True)
        ran(CLIENTS.parent, sys.executable, "-m", "venv", "--without-pip", str(CLIENTS / name))
        (packages,) = (CLIENTS / name / "lib").glob("python*/site-packages")
        (packages / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        install = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(programs / "python"),
            "install",
            "--quiet",
            "--no-compile",
        ]
        done = subprocess.run([*install, *PYTHON[name]], capture_output=True, text=True, check=False)
        if done.returncode:
            missing("clients", f"{', '.join(PYTHON[name])} cannot be installed")
        (CLIENTS / name / "ready").touch()
    return programs


def ran(folder: Path, *command: str) -> str:
    """What a program prints that must succeed in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("holding", ["import pandas", "import ibis", "import sqlalchemy"])
def test_a_library_of_python_reads_what_the_page_says(folder: Path, surgery: str, holding: str) -> None:
    said = ran(folder, str(installed("readers") / "python"), "-c", block(holding))
    assert surgery in said, said


@pytest.mark.soak  # installing it takes a quarter of a minute
def test_dbt_makes_a_table_of_an_answer(folder: Path, surgery: str) -> None:
    programs = installed("dbt")
    (folder / "models").mkdir()
    (folder / "profiles.yml").write_text(block("type: duckdb"))
    (folder / "models" / "surgery.sql").write_text(block("materialized"))
    (folder / "dbt_project.yml").write_text("name: reports\nversion: '1.0'\nprofile: reports\n")
    ran(folder, str(programs / "dbt"), "run", "--profiles-dir", ".")
    asked = "import duckdb; print(duckdb.connect('reports.duckdb').execute('FROM surgery').fetchall())"
    assert f"{surgery}.0" in ran(folder, str(programs / "python"), "-c", asked)


@pytest.mark.soak  # likewise
def test_harlequin_asks_the_catalogue_itself(folder: Path, surgery: str) -> None:
    programs = installed("harlequin")
    said = ran(folder, "bash", "-euc", f"PATH='{programs}':$PATH\n{block('hsql')}")
    (row, *_) = csv.DictReader(said.splitlines())
    assert (row["period_start"], f"{float(row['unbiased']):.0f}") == ("2026-01-05", surgery)


@pytest.mark.parametrize(
    ("holding", "file"), mostly_soaked([("@duckdb/node-api'", "node.mjs"), ("NODE_RUNTIME", "wasm.cjs")], [0])
)
def test_javascript_asks_macros_without_any_extension(folder: Path, surgery: str, holding: str, file: str) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("clients", "node and npm are not installed")
    modules = CLIENTS / Path(file).stem
    if not (modules / "ready").exists():
        modules.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(modules), NODE[file]]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            missing("clients", f"{NODE[file]} cannot be installed")
        (modules / "ready").touch()
    (folder / "node_modules").unlink(missing_ok=True)
    (folder / "node_modules").symlink_to(modules / "node_modules")
    (folder / file).write_text(block(holding))
    assert re.search(rf'"unbiased":{surgery}\b', ran(folder, "node", file))


def test_base_r_reads_every_number_of_the_csv_as_one(folder: Path, surgery: str) -> None:
    if shutil.which("Rscript") is None:
        missing("clients", "R is not installed")
    kinds = 'stopifnot(sapply(cells[c("age_from", "age_to", "ci_lower", "unbiased_estimate")], is.numeric))'
    said = ran(folder, "Rscript", "-e", f"{block('read.csv(')}\n{kinds}")
    assert re.search(rf"2026-01-05\s+surgery\s+{surgery}\b", said), said


def test_libreoffice_takes_numbers_for_numbers_and_days_for_days(folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    if shutil.which("soffice") is None:
        missing("clients", "LibreOffice is not installed")
    home = f"-env:UserInstallation=file://{folder}/profile"
    ran(folder, "bash", "-euc", block("soffice").replace("--headless", f"--headless {home}"))
    header, *rows = openpyxl.load_workbook(folder / "sheets" / "cells.xlsx").active.iter_rows(values_only=True)
    told = [dict(zip(header, row, strict=True)) for row in rows]
    for column in ("age_from", "age_to", "estimate", "unbiased_estimate", "ci_lower", "ward_order"):
        assert {type(row[column]) for row in told} <= {int, float, type(None)}, column
    assert {row["period_start"].date() for row in told} == {*WEEKS}

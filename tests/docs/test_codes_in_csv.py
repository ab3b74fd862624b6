"""Codes such as 01 in CSV: what the page *From your client* says of each reader, run on a published file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import by_hand
import duckdb
import polars
import pytest
from docs.test_clients_page import PAGE, installed, ran
from requiring import missing

from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.publishing.derived_files import DerivedFiles

pytestmark = pytest.mark.stand_in("pictures", why="readers of files need none")
COUNTY = {"column": "county", "values": ["01", "02"], "other": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the published cells of two counties, which have codes and no words."""
    public, scratch = tmp_path_factory.mktemp("public"), tmp_path_factory.mktemp("scratch")
    by_hand.publish(public, by_hand.estimate([COUNTY]), [COUNTY], "counties", "all")
    DerivedFiles(public).write_current_files(scratch)
    write_latest_cells(public, scratch)
    return public / "counties" / "latest"


def line(reader: str) -> str:
    """What the page says of a reader."""
    said = re.search(rf"^\| {reader} \| .*?`(.+?)`( without it)? \|$", PAGE, re.MULTILINE)
    assert said is not None
    return said[1]


def test_every_text_of_the_csv_has_quotes(folder: Path) -> None:
    _, first, *_ = (folder / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert first.startswith('"all",1,"01"') and first.endswith('"counties"')


def test_polars_and_duckdb_keep_codes_by_what_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert polars.read_csv("cells.csv")["county"].to_list() == [1, 2, None]  # why the page says something
    read = eval(line("polars"), {"polars": polars})
    assert read["county"].to_list() == ["01", "02", None] and read["county_label"].to_list() == ["01", "02", "other"]
    with duckdb.connect() as connection:
        told = connection.execute(f"SELECT county, county_label {line('DuckDB')}").fetchall()
    assert told == [("01", "01"), ("02", "02"), (None, "other")]


@pytest.mark.outside
def test_pandas_keeps_codes_by_what_the_page_says(folder: Path) -> None:
    asked = f"import pandas; print({line('pandas')}.county.tolist())"
    assert "'01', '02'" in ran(folder, str(installed("readers") / "python"), "-c", asked)


@pytest.mark.outside
def test_base_r_keeps_codes_by_what_the_page_says(folder: Path) -> None:
    if shutil.which("Rscript") is None:
        missing("clients", "R is not installed")
    assert '"01" "02"' in ran(folder, "Rscript", "-e", f"print({line('base R')}$county)")


@pytest.mark.outside
def test_libreoffice_keeps_codes_by_what_the_page_says(folder: Path, tmp_path: Path) -> None:
    if shutil.which("soffice") is None:
        missing("clients", "LibreOffice is not installed")
    rest = f" --headless -env:UserInstallation=file://{tmp_path}/profile --convert-to csv --outdir {tmp_path} cells.csv"
    subprocess.run(["bash", "-euc", line("LibreOffice") + rest], cwd=folder, capture_output=True, check=True)
    assert '"01"' in (tmp_path / "cells.csv").read_text(encoding="utf-8")

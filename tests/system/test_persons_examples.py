"""Every spec of `examples/persons` is released on invented visits, and answers in SQL."""

from __future__ import annotations

import csv
import shutil
from datetime import date, timedelta
from pathlib import Path
from random import Random

import duckdb
import pytest
from office import Office

SPECS = sorted((Path(__file__).parents[2] / "examples" / "persons").glob("*.yaml"))
WARDS = ["surgery", "medicine", "maternity", ""]
DIAGNOSES = ["I21", "J18", "O80", "S72", ""]


def visits(path: Path, rows: int) -> None:
    """Invented visits of the first quarter of 2026, some of the same patients."""
    chance = Random(65)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["patient", "ward", "diagnosis", "admitted_on"])
        for _ in range(rows):
            day = date(2026, 1, 1) + timedelta(days=chance.randrange(90))
            table.writerow([chance.randrange(rows // 3), chance.choice(WARDS), chance.choice(DIAGNOSES), day])


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_an_example_is_released_and_answers(office: Office, spec: Path) -> None:
    visits(office.folder / "visits.csv", 20_000)
    words = [
        "health",
        "--privacy-unit",
        "patient",
        "--neighbours",
        "add_remove",
        "--total",
        "5",
        "--source",
        "visits.csv",
    ]
    assert office.run("init", "--store", office.store).code == 0
    assert office.run("ledger", "open", *words, "--store", office.store).code == 0
    here = Path(shutil.copy(spec, office.folder))
    checked = office.run("check", here, "--explain", "--store", office.store)
    assert checked.code == 0, checked.err
    ran = office.run("release", here, "--period", "2026-03-01", "--store", office.store)
    assert ran.code == 0, ran.err
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        ((estimate,),) = connection.execute(f"SELECT estimate FROM r.dph_total('r.{spec.stem}')").fetchall()
    assert 1_000 < estimate < 20_000

"""Every spec of `examples/persons` and `examples/amounts` is released on invented visits, and answers in SQL."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from office import Office

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECS = sorted(path for folder in ("persons", "amounts") for path in (EXAMPLES / folder).glob("*.yaml"))
WARDS = ["surgery", "medicine", "maternity", ""]
DIAGNOSES = ["I21", "J18", "O80", "S72", ""]
ROWS = 20_000


def visits() -> dict[str, list[Any]]:
    """Invented visits of the first quarter of 2026, some of the same patients."""
    chance = Random(65)
    days = [date(2026, 1, 1) + timedelta(days=chance.randrange(90)) for _ in range(ROWS)]
    drawn = {"patient": range(ROWS // 3), "ward": WARDS, "diagnosis": DIAGNOSES}
    columns: dict[str, list[Any]] = {name: chance.choices(values, k=ROWS) for name, values in drawn.items()}
    costs = [chance.gammavariate(2, 1_000 + 500 * WARDS.index(ward)) for ward in columns["ward"]]
    return {**columns, "admitted_on": days, "cost": costs, "patient_id": columns["patient"], "discharged_on": days}


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_an_example_is_released_and_answers(office: Office, spec: Path) -> None:
    table = pa.table(visits())
    pa.csv.write_csv(table.select(["patient", "ward", "diagnosis", "admitted_on"]), office.folder / "visits.csv")
    (office.folder / "stays").mkdir()
    pq.write_table(
        table.select(["patient_id", "ward", "cost", "discharged_on"]), office.folder / "stays" / "all.parquet"
    )
    is_amount = spec.parent.name == "amounts"
    unit, source = ("patient_id", "stays/*.parquet") if is_amount else ("patient", "visits.csv")
    words = ["--privacy-unit", unit, "--neighbours", "add_remove", "--total", "5", "--source", source]
    assert office.run("init", "--store", office.store).code == 0
    assert office.run("ledger", "open", "health", *words, "--store", office.store).code == 0
    here = Path(shutil.copy(spec, office.folder))
    checked = office.run("check", here, "--explain", "--store", office.store)
    assert checked.code == 0, checked.err
    ran = office.run("release", here, "--period", "2026-03-01", "--store", office.store)
    assert ran.code == 0, ran.err
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        ((estimate,),) = connection.execute(f"SELECT estimate FROM r.dph_total('r.{spec.stem}')").fetchall()
        assert 1_000 < estimate < ROWS
        if is_amount:
            check_costs(connection, table.to_pylist())


def check_costs(connection: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]]) -> None:
    """The three questions of the page on amounts, and the same by plain SQL."""
    costs = {
        ward: [min(row["cost"], 20_000) for row in rows if row["ward"] == ward and row["discharged_on"].month == 3]
        for ward in WARDS
    }

    def asked(question: str) -> list[dict[str, Any]]:
        return connection.sql(question).to_arrow_table().to_pylist()

    sums = {row["ward"]: row for row in asked("FROM r.dph_sum('r.costs', 'cost', by := ['ward'])")}
    counts = {row["ward"]: row for row in asked("FROM r.dph_marginal('r.costs', ['ward'])")}
    (surgery,) = asked("FROM r.dph_mean('r.costs', 'cost', box := {'ward': 'surgery'})")
    assert surgery["unbiased"] == pytest.approx(mean(costs["surgery"]), rel=0.1)
    plain = "SELECT ward, sum(unbiased_estimate) AS n, sum(cost * unbiased_estimate) AS total, total / n AS mean"
    for row in asked(f"{plain} FROM r.costs GROUP BY ward"):
        ward = row["ward"]
        assert row["n"] == pytest.approx(counts[ward]["unbiased"])
        assert row["total"] == pytest.approx(sums[ward]["unbiased"])
        assert row["n"] == pytest.approx(len(costs[ward or ""]), rel=0.1)  # with what the bound cut
        if ward == "surgery":
            assert row["mean"] == pytest.approx(surgery["unbiased"])

"""`take: one_per_cell`: a person counts once in a cell, and no total of several cells is called one of persons."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from carded import Read
from office import WARD, Office

from dphist_pipeline.confidential import noise

pytestmark = pytest.mark.draws_alike

PERSONS: dict[str, Any] = {"take": "one_per_cell", "axes": [WARD], "unit_label": "patient"}
# Ann was five times in surgery and once in medicine, Bob twice in medicine, and Cid in all three.
WARDS = ["surgery"] * 5 + ["medicine"] * 3 + ["surgery", "medicine", None, None]
PATIENTS = ["ann"] * 6 + ["bob"] * 2 + ["cid"] * 4
IN_CELLS = [2, 3, 1]  # surgery, medicine, other
ONCE = "one patient counts once in each of these cells"


@pytest.fixture
def office(office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office whose noise is 0, with the records above."""
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: noise.np.zeros(size, dtype=noise.np.int64))
    office.opened().write_records({"patient": PATIENTS, "age": [30.0] * len(WARDS), "ward": WARDS})
    return office


def counts(office: Office) -> list[float]:
    return pq.read_table(office.published() / "histogram.parquet")["estimate"].to_pylist()


def answered(office: Office, sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{office.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        return connection.execute(sql).fetchall()


def test_each_cell_holds_its_persons_however_many_rows_they_have(office: Office) -> None:
    office.write_spec(**PERSONS, max_rows_per_unit=3)
    assert office.release().code == 0 and counts(office) == IN_CELLS


def test_what_the_bound_cuts_and_what_units_hold_are_cells(office: Office) -> None:
    office.write_spec(**PERSONS, quality={"share": "1/2", "rows": 4})
    assert office.release().code == 0 and sum(counts(office)) == 5  # of Cid's three cells, two
    rows = pq.read_table(office.published() / "quality.parquet").to_pylist()
    held = [row["estimate"] for row in rows if row["statistic"] == "units"]
    assert held == [1, 1, 1, 0]
    assert [row["estimate"] for row in rows if row["statistic"] == "cut" and row["axis"] is None] == [1]
    assert next(row["estimate"] for row in rows if row["statistic"] == "rows") == 8  # rows of Ann are seen four times


def test_no_sum_over_cells_is_called_one_of_persons(office: Office) -> None:
    office.write_spec(**PERSONS, counted="patients")
    checked = office.run("check", office.folder / "spec.yaml", "--store", office.store)
    assert "person-cells, not persons" in " ".join(checked.out.split())
    assert office.release().code == 0
    assert json.loads((office.published() / "audit.json").read_text())["take"] == "one_per_cell"
    card = Read((office.published() / "card.html").read_text(encoding="utf-8")).text
    assert "such a total is of person-cells, not of persons" in card and "5 patients" not in card
    said = office.run("answer", "wards", "--store", office.store).out
    assert ONCE in said and "person-cells" in said
    for question in ("dph_total('r.wards')", "dph_box('r.wards', {'ward': ['surgery', 'medicine']})"):
        assert [note for (note,) in answered(office, f"SELECT note FROM r.{question}")] == [ONCE]
    for question in ("dph_box('r.wards', {'ward': 'surgery'})", "dph_marginal('r.wards', ['ward'])"):
        assert {note for (note,) in answered(office, f"SELECT note FROM r.{question}")} == {None}


def test_with_one_cell_of_each_the_total_is_one_of_persons(office: Office) -> None:
    office.write_spec(**PERSONS, max_rows_per_unit=1)
    checked = office.run("check", office.folder / "spec.yaml", "--store", office.store)
    assert "person-cells" not in checked.out + checked.err
    assert office.release().code == 0 and sum(counts(office)) == 3
    assert answered(office, "SELECT note FROM r.dph_total('r.wards')") == [(None,)]


def test_only_where_one_row_stands_for_a_person_nothing_is_said_to_be_cut(office: Office) -> None:
    days = [date(2026, 1, day) for day in range(1, 13)]
    office.write_records({"patient": PATIENTS, "age": [30.0] * len(WARDS), "ward": WARDS, "day": days})
    by_month = {"period": "month", "period_column": "day", "max_rows_per_unit": 1}
    for take, is_cut in (("one_per_cell", True), ("first", False)):
        office.write_spec(**PERSONS | by_month | {"take": take, "release": f"by_{take}"})
        assert office.release("--period", "2026-01-01").code == 0
        ((capped,),) = answered(office, f"SELECT capped FROM r.dph_share('r.by_{take}', {{'ward': 'surgery'}})")
        assert (capped is not None and "by the cap" in capped) == is_cut
        page = Read(office.published(f"by_{take}", "2026-01-01").joinpath("card.html").read_text(encoding="utf-8")).text
        assert ("beyond 1 of each patient are not counted" in page) == is_cut
        said = office.run("answer", f"by_{take}", "--share", "ward = 'surgery'", "--store", office.store)
        assert said.code == 0 and ("Biased by the cap" in said.out) == is_cut


@pytest.mark.slow
def test_a_change_of_person_cells_says_so_and_nothing_before_it(office: Office) -> None:
    days = [date(2026, 1 + number % 2, 5) for number in range(len(WARDS))]
    office.write_records({"patient": PATIENTS, "age": [30.0] * len(WARDS), "ward": WARDS, "day": days})
    office.write_spec(**PERSONS | {"period": "month", "period_column": "day", "max_rows_per_unit": 2})
    for month in ("2026-01-01", "2026-02-01"):
        assert office.release("--period", month).code == 0
    assert answered(office, "SELECT note FROM r.dph_changes('r.wards')") == [(ONCE,)]

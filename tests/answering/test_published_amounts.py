"""A release with an amount from records to answers: files, SQL, the command line and Python say the same numbers."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from office import Office

from dphist_pipeline.answering.cells_beyond_chance import cells_above_zero
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.workbench.planning.stand_ins import read_publication

WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
COST = {"column": "cost", "amount": [0, 1000], "measured_in": "EUR"}
RECORDS: dict[str, list[Any]] = {
    "patient": [f"p{number // 2}" for number in range(400)],
    "ward": [("surgery", "medicine")[number % 2] for number in range(400)],
    "cost": [float(number * 3) for number in range(400)],
}


@pytest.fixture
def made(office: Office) -> Office:
    quality = {"share": "1/2", "rows": 4}
    figures = [
        {"name": "in_surgery", "share": {"ward": "surgery"}},
        {"name": "cost_by_ward", "mean": "cost", "by": ["ward"]},
    ]
    return office.with_release(RECORDS, axes=[COST, WARD], epsilon=8, quality=quality, show_below=5, figures=figures)


@pytest.mark.slow
def test_files_sql_and_python_say_the_same(made: Office) -> None:
    published = made.published()
    rows = pq.read_table(published / "histogram.parquet").to_pylist()
    assert [(row["cost"], row["ward"]) for row in rows][:4] == [
        *((0.0, "surgery"), (0.0, "medicine"), (0.0, None), (1000.0, "surgery")),
    ]
    release = Release.published(made.store, "wards")
    assert release.audit["amount"] == {
        **{"axis": "cost", "parts": 1 << 16, "worth_of_part": 1000 / (1 << 16), "measured_in": "EUR"}
    }
    total = sum(row["cost"] * row["unbiased_estimate"] for row in rows)
    counted = sum(row["unbiased_estimate"] for row in rows)
    assert release.sum("cost").estimate == pytest.approx(total)
    mean = release.mean("cost")
    assert mean.estimate == pytest.approx(total / counted) and "middle" not in mean.note
    cut = [min(cost, 1000) for cost in RECORDS["cost"]]
    assert mean.ci_lower < sum(cut) / len(cut) < mean.ci_upper
    by_ward = {row["ward"]: row for row in release.mean("cost", by=["ward"]).to_dicts()}
    one = release.mean("cost", box={"ward": "surgery"})
    assert by_ward["surgery"]["estimate"] == pytest.approx(one.estimate)
    assert (by_ward["surgery"]["ci_lower"], by_ward["surgery"]["ci_upper"]) == (one.ci_lower, one.ci_upper)
    sums = {row["ward"]: row for row in release.sum("cost", by=["ward"]).to_dicts()}
    two = release.sum("cost", box={"ward": "medicine"})
    assert sums["medicine"]["ci_upper"] == pytest.approx(two.ci_upper, rel=1e-9)
    figures = pq.read_table(made.published().parents[1] / "latest" / "figures.parquet").to_pylist()
    names = [*3 * ["rows"], *3 * ["sum_cost"], *3 * ["mean_cost"]]
    assert [line["figure"] for line in figures] == ["in_surgery", *3 * ["cost_by_ward"], *names]
    units = {line["figure"]: line["unit"] for line in figures}
    assert units == {"rows": "rows", **dict.fromkeys(("sum_cost", "mean_cost", "cost_by_ward"), "EUR")} | {
        "in_surgery": "share of rows"
    }
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{made.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        assert connection.sql("FROM r.wards_figures").to_arrow_table().to_pylist() == figures
    by_name = {(line["figure"], line["ward"]): line for line in figures}
    line = by_name["mean_cost", "surgery"]
    assert line["value"] == pytest.approx(one.estimate) and line["note"].startswith(
        "Rows beyond 2 of each patient are not counted"
    )
    assert (line["ci_lower"], line["ci_upper"]) == pytest.approx((one.ci_lower, one.ci_upper), abs=1e-6)
    declared = by_name["cost_by_ward", "surgery"]
    assert (declared["value"], declared["ci_lower"]) == (one.unbiased, one.ci_lower)
    marginal = {row["ward"]: row for row in release.marginal(["ward"]).to_dicts()}
    assert by_name["rows", "surgery"]["ci_lower"] == pytest.approx(marginal["surgery"]["ci_lower"])
    assert by_name["rows", "other"]["value"] is None and by_name["mean_cost", "other"]["value"] is None  # show_below
    assert cells_above_zero([made.published()]).cells == 3
    counts = read_publication("wards", made.store / "public").counts
    assert counts.tolist() == [round(max(0, marginal[ward]["unbiased"])) for ward in ("surgery", "medicine", None)]
    cells = pq.read_table(made.published().parents[1] / "latest" / "cells.parquet").to_pylist()
    assert [row["ward"] for row in cells] == ["surgery", "medicine", None] and "cost" not in cells[0]


@pytest.mark.slow
def test_what_parts_of_rows_cannot_answer_is_refused(made: Office) -> None:
    questions = [
        *("dph_box('r.wards', {'cost': [0, 10]})", "dph_marginal('r.wards', ['cost'])", "dph_whole('r.wards')"),
        *("dph_quantile('r.wards', 'cost', 0.5)", "dph_ranks('r.wards', 'cost')", "dph_range('r.wards', 'cost', 0, 9)"),
    ]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{made.store / 'public' / 'catalog.duckdb'}' AS r (READ_ONLY)")
        for question in questions:
            with pytest.raises(duckdb.InvalidInputException, match=r"is an amount|no binned axis|no whole numbers"):
                connection.execute(f"FROM r.{question}").fetchall()


@pytest.mark.slow
def test_pages_and_the_command_line_tell_sums_and_no_interval_at_an_end(made: Office, tmp_path: Path) -> None:
    card = (made.published() / "card.html").read_text(encoding="utf-8")
    assert "1,000 EUR" in card and "65,536 parts" in card
    assert re.search(r"Of the first 4 rows of each, about [0-9]+ \([0-9]+ to [0-9]+, 95 %\) amounts were cut", card)
    assert "mean_cost" in card.partition('id="figures"')[2].partition("</section>")[0]
    page = made.store / "public" / "wards"
    assert "sum_cost" in (page / "index.html").read_text(encoding="utf-8")
    assert '"amount": "cost"' in (page / "picker" / "release.js").read_text(encoding="utf-8").replace('":"', '": "')
    assert made.run("answer", "wards", "--mean", "cost", "--by", "ward").code == 0
    assert len(made.run("answer", "wards", "--sum", "cost", "--by", "ward", "--json").json["rows"]) == 3
    assert "is an amount" in made.run("answer", "wards", "--where", "cost < 10").err
    assert made.run("quality", "wards").code == 0
    assert made.run("synthesize", "wards", "--output", tmp_path / "s.parquet").code == 1
    assert made.run("export", "wards", "--to", "csv", "--output", tmp_path / "cells.csv").code == 0
    assert (
        made.run("export", "wards", "--figures", "all", "--to", "csv", "--output", tmp_path / "figures.csv").code == 0
    )
    assert "mean_cost" in (tmp_path / "figures.csv").read_text(encoding="utf-8")
    assert made.run("export", "wards", "--to", "xlsx", "--output", tmp_path / "cells.xlsx").code == 0
    with zipfile.ZipFile(tmp_path / "cells.xlsx") as book:
        assert 'name="figures"' in book.read("xl/workbook.xml").decode()
    for form in ("px", "sdmx-csv"):
        assert "sums and means" in made.run("export", "wards", "--to", form, "--output", tmp_path / f"e.{form}").err
    assert "amount" in made.run("check", "spec.yaml").out

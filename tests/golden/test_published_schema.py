"""The published files, spelled out: columns, types, rows and their order, keys.

Whatever changes here changes for everybody who reads what was published.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import reported
from office import AGE, FILES, RECORDS, WARD, Office

from dphist_pipeline.confidential import noise
from dphist_pipeline.publishing import parquet_tables
from dphist_pipeline.releasing.sanitizing import sanitize
from dphist_pipeline.spec.fields import SQL_WORDS

pytestmark = pytest.mark.draws_alike

AXES = [{"column": "age", "edges": [0, 17.5, 65], "below": True, "above": True, "other": True}, WARD]
AGES = [(None, 0.0), (0.0, 17.5), (17.5, 65.0), (65.0, None), (None, None)]
WARDS = ["surgery", "medicine", None]
CELLS = [(lower, upper, ward) for lower, upper in AGES for ward in WARDS]
SCALE = Decimal(2) / Decimal("0.5")

HISTOGRAM = {
    "age_lower": "double",
    "age_upper": "double",
    "ward": "string",
    "estimate": "double",
    "unbiased_estimate": "double",
    "ci_lower": "double",
    "ci_upper": "double",
    "group_id": "int64",
}
GROUPS = {"group_id": "int64", "cells": "int64", "noise_scale": "double", "noise_variance": "double"}
AUDIT = {
    "release": "string",
    "period": "string",
    "revision": "int64",
    "account": "string",
    "mechanism": "string",
    "step": "string",
    "epsilon": "string",
    "epsilon_double": "double",
    "noise_scale": "string",
    "ledger_hash": "string",
}
QUALITY = {
    **{"statistic": "string", "axis": "string", "position": "int64", "category": "string"},
    **{"estimate": "double", "ci_lower": "double", "ci_upper": "double", "noise_scale": "double"},
}
# Of the spec below: each table has an epsilon of 1/100.
QUALITY_ROWS = [
    *(("rows", None, None, place, 500.0) for place in ("declared", "other", "dropped")),
    *((what, axis, None, None, 1000.0) for axis in ("age", "ward") for what in ("unparsed", "undeclared")),
    *(("units", None, rows, str(rows), 100.0) for rows in range(1, 5)),
    ("units", None, 5, "5 or more", 100.0),
    ("cut", None, None, None, 300.0),
    *(("cut", "ward", position, ward, 300.0) for position, ward in enumerate(["surgery", "medicine", None])),
]
UNSEALED = ("audit.json", "card.html", "deployment.yaml")  # pages are made from what is sealed
AUDIT_KEYS = [
    *["schema_version", "release", "period", "period_start", "period_end", "revision", "reason", "account"],
    *["privacy_unit", "max_rows_per_unit", "neighbours", "sensitivity"],
    *["unit_columns", "unit_normalise", "allowed", "mechanism", "settings", "cells", "whole_counts", "axes"],
    *[
        "spec_digest",
        "ledger",
        "total_holds_zero",
        "published_on",
    ],  # 0 is held as of few records
    *["epsilon", "epsilon_double", "unbiased_noise_scale", "unbiased_covariance"],
    *["noise", "charges"],
    *["values_digest", "files", "versions", "audit_digest"],
]
FIXED: dict[str, Any] = {
    "schema_version": 2,
    "release": "wards",
    "period": "all",
    "period_start": None,
    "period_end": None,
    "revision": 1,
    "reason": "",
    "account": "health",
    "privacy_unit": "patient",
    "max_rows_per_unit": 2,
    "neighbours": "add_remove",
    "sensitivity": 2,
    "mechanism": "geometric",
    "settings": {},
    "cells": 15,
    "total_holds_zero": True,
    "epsilon": "1/2",
    "epsilon_double": 0.5,
    "unbiased_noise_scale": "4",
    "unbiased_covariance": None,
    "noise": "discrete Laplace, P(k) proportional to exp(-|k| / noise_scale); for choices the one-sided half of it",
    "charges": [{"step": "counts", "epsilon": "1/2", "noise_scale": "4"}],
}


@pytest.fixture
def published(office: Office) -> Path:
    return office.with_release(axes=AXES).published()


def types(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path)}


@pytest.mark.slow
def test_a_release_is_these_files_with_these_columns(published: Path) -> None:
    assert sorted(path.name for path in published.iterdir()) == FILES
    assert list(types(published / "histogram.parquet").items()) == list(HISTOGRAM.items())
    assert list(types(published / "groups.parquet").items()) == list(GROUPS.items())
    assert list(types(published / "audit.parquet").items()) == list(AUDIT.items())


@pytest.mark.slow
def test_a_quality_table_has_these_rows_and_nothing_else_of_a_release_changes(office: Office) -> None:
    office.opened().write_spec(axes=AXES, quality={"share": "1/10", "rows": 5, "by": ["ward"]})
    office.released()
    folder = office.published()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "quality.parquet"])
    assert list(types(folder / "quality.parquet").items()) == list(QUALITY.items())
    rows = pq.read_table(folder / "quality.parquet").to_pylist()
    assert [
        (row["statistic"], row["axis"], row["position"], row["category"], row["noise_scale"]) for row in rows
    ] == QUALITY_ROWS
    assert all(row["ci_lower"] < row["estimate"] == int(row["estimate"]) < row["ci_upper"] for row in rows)
    audit = json.loads((folder / "audit.json").read_text())
    assert list(audit) == [*AUDIT_KEYS[:15], "quality", *AUDIT_KEYS[15:]]
    assert audit["quality"] == {"share": "1/10", "rows": 5, "by": ["ward"]}
    assert sorted([*audit["files"], *UNSEALED]) == sorted([*FILES, "quality.parquet"])
    charges = {charge["step"]: charge["epsilon"] for charge in audit["charges"]}
    steps = ["counts", *(f"quality_{step}" for step in ("rows", "failures", "units", "cut", "cut_ward"))]
    assert charges == dict(zip(steps, ["9/20", *["1/100"] * 5], strict=True))
    assert (audit["epsilon"], audit["unbiased_noise_scale"]) == ("1/2", "40/9")


@pytest.mark.slow
def test_no_column_is_an_sql_word(published: Path) -> None:
    reserved = duckdb.sql(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category != 'unreserved'"
    ).fetchall()
    # PARTITION BY, FILTER and the like are words in SQL, and fine as names: only those that need quotes count.
    words = {word for (word,) in reserved if word not in ("between", "values", "row", "position")} | SQL_WORDS
    assert not {*HISTOGRAM, *GROUPS, *AUDIT, *QUALITY} & words


@pytest.mark.slow
def test_the_histogram_has_a_row_for_every_declared_cell_in_declared_order(published: Path) -> None:
    rows = pq.read_table(published / "histogram.parquet").to_pylist()
    assert [(row["age_lower"], row["age_upper"], row["ward"]) for row in rows] == CELLS
    for row in rows:
        assert row["estimate"] == row["unbiased_estimate"] == int(row["estimate"])
        assert row["group_id"] is None
    file = pq.ParquetFile(published / "histogram.parquet").metadata
    assert (file.num_row_groups, file.metadata) == (1, None)
    assert not any(file.row_group(0).column(number).is_stats_set for number in range(file.num_columns))


@pytest.mark.slow
def test_the_interval_is_the_exact_quantile_of_the_discrete_laplace_law(published: Path) -> None:
    """P(|X| <= c) = 1 - 2 q^(c+1) / (1+q) with q = exp(-1/scale), in 50 digits, and by summing the law."""
    getcontext().prec = 50
    q = (-1 / SCALE).exp()
    c = next(c for c in range(1000) if 2 * q ** (c + 1) / (1 + q) <= Decimal("0.05"))
    summed = [(1 - q) / (1 + q) * sum(q ** abs(k) for k in range(-reach, reach + 1)) for reach in (c - 1, c)]
    assert summed[0] < Decimal("0.95") <= summed[1]
    for row in pq.read_table(published / "histogram.parquet").to_pylist():
        assert (row["ci_lower"], row["ci_upper"]) == (row["unbiased_estimate"] - c, row["unbiased_estimate"] + c)


@pytest.mark.slow
def test_groups_and_charges_say_how_noisy_and_how_dear(published: Path) -> None:
    q = float((-1 / SCALE).exp())
    (group,) = pq.read_table(published / "groups.parquet").to_pylist()
    assert group.pop("noise_variance") == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-12)
    assert group == {"group_id": 0, "cells": 15, "noise_scale": 4.0}
    (charge,) = pq.read_table(published / "audit.parquet").to_pylist()
    ledger_hash = json.loads((published / "audit.json").read_text())["ledger"]["hash"]
    assert charge == {name: FIXED[name] for name in AUDIT if name in FIXED} | {
        "step": "counts",
        "noise_scale": "4",
        "ledger_hash": ledger_hash,
    }


@pytest.mark.slow
def test_the_audit_states_these_facts_and_no_others(office: Office, published: Path) -> None:
    audit = json.loads((published / "audit.json").read_text())
    assert list(audit) == AUDIT_KEYS
    assert {name: audit[name] for name in FIXED} == FIXED
    assert [axis["name"] for axis in audit["axes"]] == ["age", "ward"]
    assert audit["spec_digest"] == office.run("check", "spec.yaml", "--json").json["digest"]
    made = datetime.fromtimestamp((published / "audit.json").stat().st_mtime, UTC)
    assert audit["published_on"] == made.date().isoformat()
    assert list(audit["ledger"]) == ["number", "hash", "charged_at"]
    entry = office.entries()[audit["ledger"]["number"] - 1]
    assert (entry[1], entry[-1], entry[-2]) == ("charged", audit["ledger"]["hash"], audit["ledger"]["charged_at"])
    assert sorted([*audit["files"], *UNSEALED]) == FILES
    libraries = ["python", "dphist-pipeline", "numpy", "cryptography", "pyarrow", "polars", "duckdb"]
    assert list(audit["versions"]) == libraries


@pytest.mark.slow
def test_duckdb_reads_it_with_plain_sql_and_no_quotes(published: Path) -> None:
    columns = ", ".join(HISTOGRAM)
    query = f"SELECT {columns} FROM '{published}/histogram.parquet' WHERE ward = 'surgery' AND age_lower >= 17.5"
    rows = duckdb.sql(query).fetchall()
    assert [row[:3] for row in rows] == [(17.5, 65.0, "surgery"), (65.0, None, "surgery")]
    across = (
        f"SELECT sum(estimate), count(*) FROM '{published.parents[1]}/*/*/histogram.parquet' GROUP BY period, revision"
    )
    assert duckdb.sql(across).fetchall()[0][1] == len(CELLS)


@pytest.mark.slow
def test_the_bytes_are_a_function_of_the_released_values_alone(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers in another store, under another account, name and source, at another time: the same tables."""
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.arange(size, dtype=np.int64) * 5 - 7)
    office.opened().released()
    other = Office(tmp_path / "another place").opened()
    spend = ["--privacy-unit", "who", "--neighbours", "add_remove", "--total", "3"]
    assert other.run("ledger", "open", "other_account", *spend, "--store", other.store).code == 0
    other.write_records(
        {"who" if name == "patient" else name: column for name, column in RECORDS.items()}, "data/x.parquet"
    )
    renamed = {"release": "beds", "title": "Beds", "source": "data/x.parquet", "privacy_unit": "who"}
    other.write_spec(**renamed, account="other_account", axes=[AGE, WARD], max_cells=100)
    other.released("--store", str(other.store))
    for name in ("histogram.parquet", "groups.parquet"):
        assert (office.published() / name).read_bytes() == (other.published("beds") / name).read_bytes()


def test_the_audit_of_the_local_model_states_its_law_beside_these_facts(tmp_path: Path) -> None:
    axes = [reported.AGE]
    folder = reported.publish(tmp_path, reported.estimate(axes), axes).path
    audit = json.loads((folder / "audit.json").read_text())
    written = [*AUDIT_KEYS[AUDIT_KEYS.index("epsilon") : AUDIT_KEYS.index("noise")], "report_law", "atoms", "noise"]
    assert list(audit)[list(audit).index("epsilon") :] == [*written, *AUDIT_KEYS[AUDIT_KEYS.index("noise") + 1 :]]
    assert list(audit["report_law"]) == ["alpha", "beta", "gamma", "delta", "step"]
    assert audit["atoms"] == reported.ATOMS
    assert (audit["unbiased_noise_scale"], audit["unbiased_covariance"]) == (None, None)
    assert audit["noise"] == "made by every contributor: reports are random, by coins whose chances the settings give"
    for file, schema in (("histogram", HISTOGRAM), ("groups", GROUPS), ("audit", AUDIT)):
        found = {field.name: str(field.type) for field in pq.read_schema(folder / f"{file}.parquet")}
        assert found == {name: kind for name, kind in schema.items() if name != "ward"}


def test_a_double_of_an_epsilon_is_never_below_it() -> None:
    parts = [Fraction(number, 10) for number in range(1, 100)]
    assert all(Fraction(parquet_tables.rounded_up(part)) >= part for part in parts)


def test_one_draw_for_a_group_leaves_each_of_its_cells_its_square_less(tmp_path: Path) -> None:
    made = sanitize(np.arange(12), mechanism="structure_first", epsilon=1, sensitivity=1, buckets=3)
    parquet_tables.write_groups(made, tmp_path / "groups.parquet")
    rows = pq.read_table(tmp_path / "groups.parquet").to_pylist()
    assert [row["noise_variance"] * row["cells"] ** 2 for row in rows] == pytest.approx([made.sums.variance] * 3)

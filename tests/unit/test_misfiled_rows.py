"""Rows in files of another period, which no period counts: a quality table says about how many where a spec asks."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import SPEC, WARD, Office

from dphist_pipeline.confidential import cube, noise, row_tables
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.confidential.row_queries import Limits, RowsMisfiled
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError

SEEN = 3
QUALITY = {"share": "1/2", "rows": SEEN, "misfiled": True}
FIELDS: dict[str, Any] = {
    **{"source": "data/{year}-{month}.parquet", "period": "month", "period_column": "day", "period_format": "iso"},
    **{"axes": [WARD], "quality": QUALITY},
}
FEBRUARY = "2026-02-01"
Rows = Sequence[tuple[str | None, str | None]]
# In the file of February: four rows of ann from January, of which three are seen, one of bob from March, and one of dan
# from the year after; and rows that are not misfiled, of no time, or of nobody.
ROWS: Rows = [
    *[("ann", "2026-01-10")] * 4,
    *[("bob", "2026-03-02"), ("dan", "2027-02-10")],
    *[("cid", "2026-02-10"), ("ann", "2026-02-28T23:59:59"), ("cid", None), ("cid", "soon"), (None, "2026-01-10")],
]
NEIGHBOURS = {"2026-01": [("ann", "2026-01-05")], "2026-03": [("ann", "2026-03-05"), ("eva", "2025-01-01")]}


def write(folder: Path, month: str, rows: Rows) -> None:
    columns = {"patient": [row[0] for row in rows], "day": [row[1] for row in rows], "ward": ["elsewhere"] * len(rows)}
    pq.write_table(
        pa.table(columns, schema=pa.schema(dict.fromkeys(columns, pa.string()))), folder / f"{month}.parquet"
    )


def counted(folder: Path, rows: Rows, **fields: Any) -> int:
    """The exact number of misfiled rows of February, as a release would count it."""
    (folder / "data").mkdir(exist_ok=True)
    for month, of in {**NEIGHBOURS, "2026-02": rows}.items():
        write(folder / "data", month, of)
    spec = ReleaseSpec.from_attributes({**SPEC, **FIELDS, **fields}, folder)
    (scratch := folder / "scratch").mkdir()
    cube.read_and_count(plan_of(spec, spec.period_named(FEBRUARY)), scratch)
    observed = row_tables.load(scratch)
    assert [file for file in scratch.rglob("*") if file.is_file() and file.name != "cube.npy"] == []
    shutil.rmtree(scratch)
    (number,) = RowsMisfiled().answers(observed)
    return int(number)


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({}, 3 + 1 + 1),
        ({"files_after": 1}, 1 + 1),  # the release of January reads the file of February, too
        ({"files_before": 1}, 3 + 1),
        ({"files_before": 1, "files_after": 1}, 1),
        ({"privacy_unit": "row", "max_rows_per_unit": 1, "quality": {"misfiled": True}}, 5 + 1 + 1),
        ({"quality": {"share": "1/2", "rows": SEEN}}, 0),
    ],
)
def test_rows_count_that_no_period_looks_for_in_the_own_file(
    tmp_path: Path, fields: dict[str, Any], number: int
) -> None:
    assert counted(tmp_path, ROWS, **fields) == number


def test_what_polars_says_while_it_counts_them_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def panics(*given: object) -> None:
        os.write(2, b"thread panicked at ann")
        raise pl.exceptions.PanicException("ann")

    monkeypatch.setattr(row_tables, "first_rows", panics)
    with pytest.raises(SourceRefused, match="could not be counted"):
        counted(tmp_path, ROWS)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("substitute", [False, True])
def test_one_unit_moves_the_number_by_the_rows_seen_and_no_further(tmp_path: Path, substitute: bool) -> None:
    choose, moved = random.Random(0), set()
    days = ["2026-01-10", "2026-02-10", "2026-03-02", None]
    for _ in range(8):
        rows = [(choose.choice(["ann", "bob", "cid"]), choose.choice(days)) for _ in range(choose.randint(4, 30))]
        without = [row for row in rows if row[0] != "ann"]
        other = [("eva", "2026-01-01")] * choose.randint(0, 6) if substitute else []
        moved.add(abs(counted(tmp_path, rows) - counted(tmp_path, [*without, *other])))
    moved.add(counted(tmp_path, [("ann", "2026-01-10")] * 9) - counted(tmp_path, []))
    assert max(moved) == SEEN == RowsMisfiled().sensitivity(Limits(2, SEEN, substitute))


@pytest.mark.parametrize(
    ("source", "period", "key", "fields", "start", "end"),
    [
        ("{year}-{month}.csv", "month", FEBRUARY, {}, "2026-02-01", "2026-03-01"),
        ("{year}-{month}.csv", "month", FEBRUARY, {"files_before": 1, "files_after": 2}, "2025-12-01", "2026-04-01"),
        ("{year}-{month}.csv", "week", "2026-03-09", {}, "2026-02-23", "2026-04-06"),
        ("{year}-{month}-{day}.csv", "month", FEBRUARY, {}, "2026-02-01", "2026-03-01"),
        ("{year}-{month}-{day}.csv", "month", FEBRUARY, {"files_before": 3}, "2026-02-01", "2026-04-01"),
        ("{year}-{week}.csv", "week", "2026-03-09", {"files_after": 1}, "2026-03-02", "2026-03-16"),
        ("{year}.csv", "quarter", "2026-04-01", {}, "2026-01-01", "2027-01-01"),
        ("{year}.csv", "quarter", "2026-04-01", {"files_before": 1}, "2026-01-01", "2028-01-01"),
        ("{period}.csv", "week", "2026-03-09", {"files_before": 2}, "2026-03-09", "2026-03-30"),
    ],
)
def test_a_file_is_looked_into_by_the_periods_that_read_it(
    source: str, period: str, key: str, fields: dict[str, Any], start: str, end: str, tmp_path: Path
) -> None:
    spec = ReleaseSpec.from_attributes({**SPEC, **FIELDS, "source": source, "period": period, **fields}, tmp_path)
    window = spec.own_files_span(spec.period_named(key))
    assert window.start and window.end
    assert (window.start.date().isoformat(), window.end.date().isoformat()) == (start, end)


def test_the_number_is_published_and_bought_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    office.opened()
    for month, rows in {**NEIGHBOURS, "2026-02": ROWS}.items():
        write(office.folder / "data", month, rows)
    office.write_spec(**FIELDS)
    office.released("--period", FEBRUARY)
    folder = office.published(period=FEBRUARY)
    (row,) = (row for row in pq.read_table(folder / "quality.parquet").to_pylist() if row["statistic"] == "misfiled")
    # A half of an epsilon of 1/2, shared by five tables.
    assert (row["estimate"], row["noise_scale"]) == (5.0, SEEN / (1 / 2 / 2 / 5))
    said = " ".join(office.run("quality", "wards", "--store", office.store).out.split())
    assert (
        "One number of rows in files of another period does not stand out from the noise (95 %): it is at most" in said
    )
    before = (folder / "quality.parquet").read_bytes()
    shutil.rmtree(folder)
    write(office.folder / "data", "2026-02", [])  # what was drawn is not drawn anew
    assert office.released("--period", FEBRUARY).code == 0
    assert (folder / "quality.parquet").read_bytes() == before


def test_it_is_asked_for_by_name_and_only_where_files_are_of_periods(tmp_path: Path) -> None:
    without = {"share": "1/2", "rows": SEEN}
    digests = [
        ReleaseSpec.from_attributes({**SPEC, **FIELDS, "quality": quality}, tmp_path).digest
        for quality in (without, {**without, "misfiled": False}, QUALITY)
    ]
    assert digests[0] == digests[1] != digests[2]
    with pytest.raises(SpecError, match="has no use where `source` does not say which files a period needs"):
        ReleaseSpec.from_attributes({**SPEC, **FIELDS, "source": "data/all.parquet"}, tmp_path)

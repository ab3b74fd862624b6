"""The records of an attacked office: canaries and exact counts, and one unit with many records."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NUMBER = 73.8203125
WARDS = ("surgery", "medicine", "guessed", "zyxwvWardzyxwv", "surgery")
# The one unit with many records: a neighbour has none of it, or others in its place.
WHALE, WHALE_ROWS = "zyxwvWhale", 45


def records(unit: str, counts: tuple[int, ...], whale: str = "") -> dict[str, list[Any]]:
    """Records that give exactly these counts; and those of the whale, `here` or `others`."""
    pairs = zip(WARDS, counts, strict=True)
    wards = list(itertools.chain.from_iterable(itertools.repeat(ward, many) for ward, many in pairs))
    many = len(wards)
    units: list[Any] = [f"zyxwvUnit{number}" for number in range(many - counts[-1])] + [None] * counts[-1]
    ages = [NUMBER if number % 3 == 0 else float(number % 90) for number in range(many)]
    visits = list(range(many))
    for row in range(WHALE_ROWS if whale else 0):
        other = 10 if whale == "others" else 0
        # All its spellings are one unit where the decision says so.
        units.append(f" {WHALE.upper()} " if unit == "person" and row % 2 else WHALE)
        wards.append(WARDS[(row + other) % 3])
        ages.append(float((37 * row + other) % 100))
        visits.append(1_000_000 + row)
    days = [f"2026-10-{5 + number % 4:02}" for number in range(len(wards))]
    return {unit: units, "age": ages, "ward": wards, "day": days, "visit": visits}


def write_records(folder: Path, counts: Mapping[str, tuple[int, ...]], whale: tuple[str, str]) -> None:
    """The sources: one of each account, and two copies of one that nobody was allowed to read.

    Args:
        folder: of an office.
        counts: by file.
        whale: as for `records`, in a neighbour that lacks a unit, and in one that has another in its place.
    """
    (folder / "data/zyxwvFolder").mkdir(parents=True)
    health = pa.table(records("patient", counts["data/health.parquet"], whale[0]))
    pq.write_table(health, folder / "data/health.parquet")
    clinic = records("person", counts["data/clinic.csv"], whale[1])
    _write_csv(folder / "data/clinic.csv", {**clinic, "zyxwvHeader": ["zyxwv,Row"] * len(clinic["age"])}, ",")
    secret = records("patient", counts["data/secret.parquet"])
    for name in ("data/secret.parquet", "data/zyxwvFolder/secret.parquet"):
        pq.write_table(pa.table({**secret, "zyxwvHeader": secret["age"]}), folder / name)
    (folder / "data/2026").mkdir()
    monthly = records("patient", counts["data/2026/10.parquet"], whale[0])
    pq.write_table(pa.table(monthly), folder / "data/2026/10.parquet")
    (folder / "data/pairs").mkdir()
    pairs = records("patient", counts["data/pairs/pairs.csv"], whale[1])
    written = [f"{age:.7f}".replace(".", ",") for age in pairs["age"]]
    named = zip(pairs["patient"], pairs["visit"], strict=True)
    sites = ["zyxwvSite" if unit == WHALE else f"site{visit % 7}" for unit, visit in named]
    _write_csv(folder / "data/pairs/pairs.csv", {"site": sites, **pairs, "age": written}, ";")
    rows = records("patient", counts["data/rows.parquet"], "here")
    # A neighbour lacks one row of all.
    kept = {name: values[:-WHALE_ROWS] + values[-WHALE_ROWS:][: bool(whale[0])] for name, values in rows.items()}
    pq.write_table(pa.table(kept), folder / "data/rows.parquet")


def _write_csv(file: Path, columns: Mapping[str, list[Any]], delimiter: str) -> None:
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened, quoting=csv.QUOTE_ALL, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))

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
WARDS = ("surgery", "medicine", "guessed", "zyxWardzyx", "surgery")
# The one unit with many records: a neighbour has none of it, or others in its place.
WHALE, WHALE_ROWS = "zyxWhale", 45


def records(unit: str, counts: tuple[int, ...], whale: str = "") -> dict[str, list[Any]]:
    """Records that give exactly these counts; and those of the whale, `here` or `others`."""
    pairs = zip(WARDS, counts, strict=True)
    wards = list(itertools.chain.from_iterable(itertools.repeat(ward, many) for ward, many in pairs))
    many = len(wards)
    units: list[Any] = [f"zyxUnit{number}" for number in range(many - counts[-1])] + [None] * counts[-1]
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
    """The sources: one of each account, and two copies of one that nobody was allowed to read."""
    (folder / "data/zyxFolder").mkdir(parents=True)
    pq.write_table(
        pa.table(records("patient", counts["data/health.parquet"], whale[0])), folder / "data/health.parquet"
    )
    clinic = records("person", counts["data/clinic.csv"], whale[1])
    with (folder / "data/clinic.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow([*clinic, "zyxHeader"])
        writer.writerows((*row, "zyx,Row") for row in zip(*clinic.values(), strict=True))
    secret = records("patient", counts["data/secret.parquet"])
    for name in ("data/secret.parquet", "data/zyxFolder/secret.parquet"):
        pq.write_table(pa.table({**secret, "zyxHeader": secret["age"]}), folder / name)

"""Upstream: one file of visits for each day. Here they are invented; yours come from where your records are."""

import csv
import random
from datetime import date
from pathlib import Path

import dagster as dg

PROJECT = Path(__file__).resolve().parents[2]
WARDS = ("surgery", "medicine", "maternity", "paediatrics")
DAYS = dg.DailyPartitionsDefinition("2026-01-05")


@dg.asset(key=["raw", "visits"], partitions_def=DAYS, group_name="hospital", kinds={"csv"})
def visits(context: dg.AssetExecutionContext) -> None:
    """The visits of a day, one row each. Shows Dagster nothing of them, not even how many there are."""
    day = date.fromisoformat(context.partition_key)
    invented = random.Random(day.toordinal())
    file = PROJECT / "data" / f"{day:%Y-%m-%d}.csv"
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["patient", "ward", "visited_on"])
        for _ in range(invented.randint(80, 120)):
            rows.writerow([f"p{invented.randint(1, 900)}", invented.choices(WARDS, (4, 3, 2, 1))[0], day.isoformat()])

"""Is the catalogue fast at size: one cell of a large table by macro, and the publication of one more small period?

Boxes: seconds for one cell of a table by `dph_box`, beside plain SQL for the same cell, on the published file and on
the view of the catalogue (the shortest of several, warm); most of those of `dph_box` are for planning a long query.
Publishing: seconds of processor time, with those of child processes, of a whole release of 221 cells at some numbers
of periods (the middle of some, one after the other), and the part of it that listed
files and built the catalogue. Prints JSON.

    python benchmarks/catalogue.py [--cells 10000000] [--periods 2 --periods 200] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dphist_pipeline as dph
from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing.release_files import write_release
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.spec.axes import domain_of

INCOMES, WARDS = 1000, 10
FIRST = date(2020, 1, 6)
SPEC: dict[str, Any] = {
    "release": "weekly",
    "source": "visits.parquet",
    "privacy_unit": "patient",
    "max_rows_per_unit": 1,
    "neighbours": "add_remove",
    "epsilon": "1/1000",
    "account": "health",
    "mechanism": "geometric",
    "axes": [
        {"column": "age", "start": 0, "stop": 65, "width": 5},
        {"column": "ward", "values": [f"ward {number}" for number in range(17)]},
    ],
    "period": "week",
    "period_column": "day",
}


def best(question: Callable[[], object], times: int = 7) -> float:
    """The fewest seconds that a question took, after one call that warms up."""
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        question()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def boxes(cells: int) -> dict[str, Any]:
    """One cell of a release of so many cells."""
    axes = [
        {"column": "income", "start": 0, "stop": INCOMES, "width": 1},
        {"column": "town", "values": [f"town {number}" for number in range(cells // INCOMES // WARDS)]},
        {"column": "ward", "values": [f"ward {number}" for number in range(WARDS)]},
    ]
    domain = domain_of(axes)
    noisy = NoisyCells(np.arange(domain.cells, dtype=np.float64).reshape(domain.shape) % 1009, Fraction(6))
    made = Estimate(domain, noisy.values, (("counts", Fraction(1, 6)),), noisy)
    facts = {
        **{"release": "wide", "period": "all", "revision": 1, "account": "health", "privacy_unit": "patient"},
        **{"max_rows_per_unit": 1, "neighbours": "add_remove", "sensitivity": 1, "mechanism": "geometric"},
        **{"cells": domain.cells, "axes": axes, "ledger": {"number": 1, "hash": "0" * 64, "charged_at": ""}},
    }
    with tempfile.TemporaryDirectory() as folder:
        public = Path(folder, "public")
        published = public / "wide" / "period=all" / "revision=1"
        published.mkdir(parents=True)
        write_release(made, {}, facts, published)
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{build_catalogue(public, Path(folder))}' AS r (READ_ONLY)")
            box = f"{{'income': [{INCOMES // 3}, {INCOMES // 3 + 1}], 'town': 'town 0', 'ward': 'ward 3'}}"
            cell = f"income_lower = {INCOMES // 3} AND town = 'town 0' AND ward = 'ward 3'"
            tables = {
                "dph_box": f"r.dph_box('r.wide', {box})",
                "plain_sql_of_file": f"'{published}/histogram.parquet' WHERE {cell}",
                "plain_sql_of_view": f"r.wide WHERE {cell}",
            }
            questions = {name: f"SELECT estimate FROM {table}" for name, table in tables.items()}
            answers = {name: connection.execute(query).fetchall() for name, query in questions.items()}
            assert len({str(answer) for answer in answers.values()}) == 1, answers
            seconds = {
                name: best(lambda query=query: connection.execute(query).fetchall())
                for name, query in questions.items()
            }
    return {"cells": domain.cells, **seconds, "ratio": seconds["dph_box"] / seconds["plain_sql_of_file"]}


def publishing(periods: list[int], releases: int) -> list[dict[str, Any]]:
    """Processor seconds of the release of one more period, at some numbers of periods: the middle of some releases."""
    weeks = [FIRST + timedelta(weeks=week) for week in range(max(periods) + releases - 1)]
    at = {number + later: number for number in periods for later in range(releases)}
    spent: dict[int, list[tuple[float, float]]] = {number: [] for number in periods}
    with tempfile.TemporaryDirectory() as folder, in_an_office(Path(folder)):
        spec, store = office(Path(folder), weeks)
        for number, week in enumerate(weeks, 1):
            began, timed = processor_seconds(), list[float]()
            with mock.patch.object(Run, "refresh_catalogue", timing(Run.refresh_catalogue, timed)):
                release.release(spec, store, week.isoformat())
            if number in at:
                spent[at[number]].append((processor_seconds() - began, timed[0]))
    rows = [
        {
            "period": number,
            **dict(zip(("release", "catalogue"), map(statistics.median, zip(*seconds, strict=True)), strict=True)),
        }
        for number, seconds in spent.items()
    ]
    return [{**row, "release_ratio": row["release"] / rows[0]["release"]} for row in rows]


def timing(step: Callable[..., None], seconds: list[float]) -> Callable[..., None]:
    """A step that notes the processor seconds that it took."""

    def timed(*given: Any, **named: Any) -> None:
        began = processor_seconds()
        step(*given, **named)
        seconds.append(processor_seconds() - began)

    return timed


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    return sum(os.times()[:4])


def in_an_office(folder: Path) -> Any:
    """Key and witness of an operator in the folder, for as long as it lasts."""
    places = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    return mock.patch.dict(os.environ, places)


def office(folder: Path, weeks: list[date]) -> tuple[dph.ReleaseSpec, dph.Store]:
    """A spec with invented records, and a store with an account that pays for all weeks."""
    rows = {
        "patient": [f"{week}-{number}" for week in weeks for number in range(50)],
        "age": [number for _ in weeks for number in range(50)],
        "ward": [f"ward {number % 17}" for _ in weeks for number in range(50)],
        "day": [week for week in weeks for _ in range(50)],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    document = {"type": "dphist_pipeline.HistogramRelease", "attributes": SPEC}
    (folder / "spec.yaml").write_text(json.dumps(document), encoding="utf-8")
    spec, store = dph.load_spec(folder / "spec.yaml"), dph.Store.create(folder / "store")
    account = Account("health", "patient", "add_remove", Fraction(1000), None, store.id)
    store.ledger().open_account(account, Operator.load(), spec.reading)
    return spec, store


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, action="append", help="of the large table; default 1,000,000")
    parser.add_argument("--periods", type=int, action="append", help="how many are published; default 2, 50 and 200")
    parser.add_argument("--releases", type=int, default=5, help="of which the middle is told; default 5")
    parser.add_argument("--to", type=Path, help="a file for the JSON")
    given = parser.parse_args()
    found = {
        "boxes": [boxes(cells) for cells in given.cells or [1_000_000]],
        "publishing": publishing(given.periods or [2, 50, 200], given.releases),
    }
    text = json.dumps(found, indent=2)
    print(text)
    if given.to is not None:
        given.to.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

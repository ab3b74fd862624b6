"""A store made by hand in which every kind of noise and every kind of axis is asked."""

from __future__ import annotations

import atexit
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pytest
from by_hand import AGE
from numpy.typing import NDArray
from oracle import Oracle
from quick_catalogue import build_catalogue

from dphist_pipeline.answering._macro_calls import IDLE_OPTIMIZERS
from dphist_pipeline.estimates.answers import Answer, Quantile
from dphist_pipeline.estimates.chosen_cells import Condition
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.lines import NoisyWeightedSums, WeightedLine
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.solvers.trees.regular_tree import branching_tree, covariance, weights_in_a_cell
from examples import SOAKING

COUNTY: dict[str, Any] = {
    "column": "county",
    "values": ["01", "02", "03", "04"],
    "levels": {"state": ["A", "B", "A", "C"], "region": ["S", "S", "S", "N"]},
    "labels": ["Autauga", "", "Mobile", "Kodiak"],
    "other": True,
}
DAY: dict[str, Any] = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-03-30", "other": True}
AXES = [AGE, COUNTY, DAY]
# Of each period its noise: two alike, another scale, a tree twice, smoothed, none, and weighted sums.
PERIODS = {
    "2026-03-02": "cells",
    "2026-03-09": "cells",
    "2026-03-16": "wide",
    "2026-03-23": "tree",
    "2026-03-30": "tree",
    "2026-04-06": "smoothed",
    "2026-04-13": "none",
    "2026-04-20": "weighted",
}
# The periods that Python is asked for, too: each takes its time. The long runs ask for two more.
TOLD = ("2026-03-23", "2026-04-13", *(("2026-03-09", "2026-04-20") if SOAKING else ()))
Box = dict[str, Condition]
BOXES: list[Box] = [
    {},
    {"age": (18, None), "state": "A"},
    {"region": ["S", None], "day": ("2026-01-12", "2026-02-09")},
    {"county": ["01", "04"], "age": (None, None)},
]


@dataclass(frozen=True)
class Asked:
    """A catalogue, and by period the same releases, and what they answer as worked out cell by cell."""

    catalogue: Path
    releases: dict[str, Release]
    oracles: dict[str, Oracle]


def weighted(values: NDArray[np.float64]) -> NestedCells:
    """Cells with the covariance of weighted sums along every axis: two on each, over half of it and over all."""
    lines = []
    for size in values.shape:
        place = np.arange(size)
        lines.append(WeightedLine(np.array([5 + place % 3, (place < size // 2) * 3, 1 + place % 2])))
    measured = math.prod(size + 2 for size in values.shape)
    noisy = NoisyWeightedSums(np.zeros(measured), tuple(lines), Fraction(301))
    return replace(NestedCells.of_weighted_sums(noisy), values=values)


def made(kind: str, step: float = 0.0) -> Estimate:
    """An estimate of one kind of noise, with a quality table; `step` sets it apart from others of its kind."""
    scale = {"wide": Fraction(61, 3), "none": None}.get(kind, by_hand.SCALE)
    start = by_hand.estimate(AXES, scale=scale, off=40.0 if kind == "smoothed" else 0.25)
    start = replace(start, quality=by_hand.QUALITY)
    if kind == "weighted":
        return replace(start, values=start.values + step / 2, unbiased=weighted(start.values + step))
    if kind != "tree":
        return replace(start, values=start.values + step)
    tree = branching_tree(start.domain.shape, 2)
    parts = covariance(tree, [noise_law(by_hand.SCALE).variance] * len(tree.widths))
    # Version 0.2 published no tail, as here in the earlier period.
    weights = weights_in_a_cell(tree.volumes, parts, noise_law(by_hand.SCALE).variance)
    tail = noise_law(by_hand.SCALE).tail_of_sum(weights) if step > 10 else None
    unbiased = NestedCells(start.values + step, by_hand.SCALE, tuple(map(SharedNoise, parts, tree.widths)), tail)
    return replace(start, values=start.values + step / 2, unbiased=unbiased)


def published(public: Path, scratch: Path) -> Asked:
    """Publishes all periods, and builds their catalogue."""
    releases = {
        period: by_hand.publish(public, made(kind, 3.0 * number), AXES, period=period)
        for number, (period, kind) in enumerate(PERIODS.items())
    }
    oracles = {period: Oracle.of(release) for period, release in releases.items()}
    return Asked(build_catalogue(public, scratch), releases, oracles)


@cache
def published_once() -> Asked:
    """The same for all tests of a process, which change nothing: it takes four seconds."""
    folder = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("public", "scratch"):
        (folder / name).mkdir()
    return published(folder / "public", folder / "scratch")


@contextmanager
def attached(catalogue: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own to a catalogue, attached as `r`."""
    file = catalogue.stat()
    with _opened(catalogue, file.st_ino, file.st_mtime_ns).cursor() as connection:
        yield connection


@lru_cache(maxsize=4)
def _opened(catalogue: Path, inode: int, changed: int) -> duckdb.DuckDBPyConnection:
    """Attached once, since its macros are read each time; the numbers tell a file from the one that takes its place."""
    connection = duckdb.connect()
    # Small tables are asked a quarter faster so; the answers are the same.
    connection.execute(f"SET disabled_optimizers = '{IDLE_OPTIMIZERS},cte_inlining'")
    connection.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY)")
    return connection


def rows_of(connection: duckdb.DuckDBPyConnection, query: str, *parameters: object) -> list[dict[str, Any]]:
    found = connection.execute(query, parameters)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def as_json(box: Box) -> str:
    return json.dumps({axis: list(wanted) if isinstance(wanted, tuple) else wanted for axis, wanted in box.items()})


def assert_told(row: dict[str, Any], expected: Answer | Quantile, told: Answer | Quantile | None = None) -> None:
    """The row is what the oracle expects, but for rounding, and what Python tells, to the last digit."""
    unknown = ("capped", "chance", "bin", "ci_bins")  # which the oracle does not know
    for name in unknown:
        assert told is None or getattr(told, name, "") == (row.get(name) or "")
    for name, fact in asdict(expected).items():
        if name in unknown:
            continue
        value = _filled(name, row[name])
        near = pytest.approx(fact, rel=1e-9, abs=1e-7, nan_ok=True) if isinstance(fact, float) else fact
        assert value == near, name
        assert told is None or repr(value) == repr(getattr(told, name)), name
    if "reliability" in row and isinstance(expected, Answer):
        assert row["reliability"] == (expected.reliability or None)


def without_days(row: dict[str, Any]) -> tuple[Any, ...]:
    """What Python tells of a row of a macro: all but the period, its days and the revision."""
    return tuple(
        value for name, value in row.items() if name not in ("period", "revision", "period_start", "period_end")
    )


def assert_rows_told(
    rows: list[dict[str, Any]], release: Release, expected: list[dict[str, Any]], told: Any = None
) -> None:
    """The rows are what the oracle expects, and the table that Python tells, in the same order."""
    published = release.table
    assert len(rows) == len(expected)
    for row, one in zip(rows, expected, strict=True):
        cell = published.row(one["first"], named=True)
        columns = [name for name in row if name in cell and name not in asdict(one["answer"])]
        assert [row[name] for name in columns] == [cell[name] for name in columns]
        assert_told(row, one["answer"])
    if told is not None:
        assert repr([without_days(row) for row in rows]) == repr(list(told.rows()))
        assert [list(row)[2:-2] for row in rows[:1]] == [told.columns]


def _filled(name: str, value: Any) -> Any:
    return ("" if name == "note" else math.nan) if value is None else value

"""Do 95 % intervals hold the truth in 95 of 100 releases? For every mechanism and every kind of answer.

Releases the same counts many times through `sanitize`, puts the releases as periods of one catalogue in memory, and
asks each macro once for all of them. Inputs that mislead groups, buckets and trees: flat zeros, one spike, alternating
counts and a power law, on a line and on a rectangle. Prints the answer of each kind that is held least, and writes all
to benchmarks/results/interval_coverage.json: how often the truth was held, and the standard error of that frequency if
it were held in exactly 95 %.

Ends with 1 if an answer with at least 400 intervals is held in less than 95 % of them by more than three standard
errors. One that is held in exactly 95 % is flagged by chance once in some 740: with a thousand answers, about one flag
means nothing, so run it again before you believe it.

    python benchmarks/interval_coverage.py [--draws 10000] [--mechanism NAME …] [--processes 2]

A range that cuts a bin must hold both the rows within and those around it. A change is the difference of two releases;
its half width comes from one `dph_compare`, because it depends on the law of the noise alone. A mechanism without noisy
cells has intervals for some sums only: of these, how often they hold.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.answering.catalogue_rows import width_rows
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedSums, NoisySums
from dphist_pipeline.mechanisms import DomainRefused
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import write_release

RESULTS = Path(__file__).resolve().parent / "results" / "interval_coverage.json"
EPSILON, LEVEL, FEWEST = "1/2", 0.95, 400
SHAPES = {"line": (24,), "square": (6, 4)}
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Held:
    """How often an answer held the truth.

    Attributes:
        mechanism, shape, counts: what was released.
        kind: of the answer, such as cell or share.
        question: the macro with its arguments, and which of its rows.
        answered: releases with an interval.
        held: of these, releases whose interval held the truth.
    """

    mechanism: str
    shape: str
    counts: str
    kind: str
    question: str
    answered: int
    held: int

    @property
    def coverage(self) -> float:
        """How often the truth was held."""
        return self.held / self.answered

    @property
    def standard_error(self) -> float:
        """Of the coverage, if it were exactly 95 %."""
        return math.sqrt(LEVEL * (1 - LEVEL) / self.answered)

    @property
    def is_below(self) -> bool:
        """Whether the coverage is below 95 % by more than three standard errors; never said of few intervals."""
        return self.answered >= FEWEST and self.coverage < LEVEL - 3 * self.standard_error


def inputs(shape: tuple[int, ...]) -> dict[str, Counts]:
    """Exact counts by name: shapes that mislead groups, buckets and trees."""
    cells = math.prod(shape)
    spike = np.zeros(cells, dtype=np.int64)
    spike[cells // 3] = 100_000
    lines = {
        "zeros": np.zeros(cells, dtype=np.int64),
        "spike": spike,
        "alternating": np.where(np.arange(cells) % 2, 60, 30),
        "power law": (5_000 / (1 + np.arange(cells)) ** 1.5).astype(np.int64),
    }
    return {name: line.reshape(shape) for name, line in lines.items()}


def released(mechanism: str, exact: Counts, draws: int) -> list[Estimate]:
    """Independent releases of the same counts."""
    return [dph.sanitize(exact, mechanism=mechanism, epsilon=EPSILON, sensitivity=1) for _ in range(draws)]


def catalogue(made: list[Estimate], folder: Path) -> duckdb.DuckDBPyConnection:
    """A catalogue in memory with one period for each release; the release is called x."""
    first, cells = made[0], made[0].domain.cells
    axes = [
        {"name": axis.name, "column": axis.name, "start": 0, "stop": axis.size, "width": 1}
        for axis in first.domain.axes
    ]
    facts = {
        **{"schema_version": 2, "release": "x", "period": "0", "revision": 1, "account": "x", "privacy_unit": "unit"},
        **{"max_rows_per_unit": 1, "neighbours": "add_remove", "sensitivity": 1, "mechanism": "x", "settings": {}},
        **{
            "cells": cells,
            "axes": axes,
            "ledger": {"number": 1, "hash": "0" * 64, "charged_at": "2026-01-01T00:00:00Z"},
        },
    }
    write_release(first, {}, facts, folder)
    connection = duckdb.connect()
    create_tables(connection, [(folder, read_audit(folder))])
    periods = [str(number) for number in range(len(made))]
    missing = np.full(cells, math.nan)
    unbiased = [missing if one.unbiased is None else one.unbiased.values.ravel() for one in made]
    groups = [missing if one.groups is None else one.groups.ravel().astype(np.float64) for one in made]
    drawn = pa.table(
        {
            "period": np.repeat(periods, cells),
            "cell_number": np.tile(np.arange(cells), len(made)),
            "estimate": np.concatenate([one.values.ravel() for one in made]),
            "unbiased_estimate": pa.array(np.concatenate(unbiased), from_pandas=True),
            "group_id": pa.array(np.concatenate(groups), from_pandas=True).cast(pa.int64()),
        }
    )
    new = "d.period AS period, d.estimate AS estimate, d.unbiased_estimate AS unbiased_estimate, d.group_id AS group_id"
    connection.register("drawn", drawn)
    connection.execute(
        f"INSERT INTO internals.dph_cells_x SELECT x.* REPLACE ({new}) FROM internals.dph_cells_x AS x "
        "JOIN drawn AS d ON d.cell_number = x.cell_number WHERE x.period = '0' AND d.period <> '0'"
    )
    for table in ("dph_releases", "internals.dph_covariance"):
        connection.execute(
            f"INSERT INTO {table} SELECT x.* REPLACE (d.period AS period) FROM {table} AS x, "
            "(SELECT DISTINCT period FROM drawn WHERE period <> '0') AS d"
        )
    _add_sums(connection, made)
    return connection


def _add_sums(connection: duckdb.DuckDBPyConnection, made: list[Estimate]) -> None:
    """Replaces the sums of groups by those of all releases, and adds their widths."""
    connection.execute("DELETE FROM internals.dph_groups")
    scales: dict[Fraction, int] = {}
    tables = []
    for period, one in enumerate(made):
        if one.sums is None:
            continue
        sums = NestedSums.of_groups(one.sums) if isinstance(one.sums, NoisySums) else one.sums
        number = sums.values.size
        scales[sums.scale] = max(scales.get(sums.scale, 1), 2 * number)
        tables.append(
            pa.table(
                {
                    "release": ["x"] * number,
                    "period": [str(period)] * number,
                    "revision": [1] * number,
                    "sum_number": np.arange(number),
                    "parent": pa.array(sums.parents, mask=sums.parents < 0),
                    "first_group": sums.firsts,
                    "last_group": sums.lasts,
                    "cells": sums.sizes,
                    "noisy_sum": sums.values,
                    "noise_scale": [str(sums.scale)] * number,
                    "noise_variance": np.full(number, sums.variance),
                }
            )
        )
    if tables:
        connection.register("sums", pa.concat_tables(tables))
        connection.execute("INSERT INTO internals.dph_groups BY NAME FROM sums")
    for scale, draws in scales.items():
        connection.execute("DELETE FROM internals.dph_half_widths WHERE noise_scale = $scale", {"scale": str(scale)})
        connection.register("widths", width_rows("dph_half_widths", str(scale), max(draws, 4 * made[0].domain.cells)))
        connection.execute("INSERT INTO internals.dph_half_widths BY NAME FROM widths")


def asked(connection: duckdb.DuckDBPyConnection, question: str) -> dict[str, NDArray[Any]]:
    """The columns of a macro's answer; null is nan."""
    found = connection.sql(f"FROM {question}").to_arrow_table()
    return {name: found[name].to_numpy() for name in found.column_names}


def count(found: dict[str, NDArray[Any]], least: Any, most: Any, rows: Any = slice(None)) -> tuple[int, int]:
    """Intervals that there are, and those that hold everything from `least` to `most`."""
    lower, upper = found["ci_lower"][rows].astype(float), found["ci_upper"][rows].astype(float)
    return int((~np.isnan(lower + upper)).sum()), int(((lower <= least + 1e-9) & (upper >= most - 1e-9)).sum())


def boxes(shape: tuple[int, ...]) -> dict[str, list[tuple[int, int]]]:
    """Boxes by kind and number, as ranges along each axis: cells, boxes of several cells, all cells."""
    first, *others = shape
    rest = [(0, side) for side in others]
    spike = np.unravel_index(math.prod(shape) // 3, shape)
    return {
        "cell 0": [(0, 1) for _ in shape],
        "cell 1": [(int(place), int(place) + 1) for place in spike],
        "box 0": [(first // 3, first // 3 + 2), *rest],
        "box 1": [(1, first - 1), *((0, max(1, side // 2)) for side in others)],
        "total 0": [(0, side) for side in shape],
    }


def told(box: list[tuple[int, int]]) -> str:
    """A box as SQL writes it."""
    return "{" + ", ".join(f"'axis_{number}': [{low}, {high}]" for number, (low, high) in enumerate(box)) + "}"


def answers(connection: duckdb.DuckDBPyConnection, exact: Counts, draws: int) -> Iterator[tuple[str, str, int, int]]:
    """Kind, question, number of intervals, and how many hold the truth."""
    for kind, box in boxes(exact.shape).items():
        truth = exact[tuple(slice(*ends) for ends in box)].sum()
        question = "dph_total('x')" if kind == "total 0" else f"dph_box('x', {told(box)})"
        yield kind.split()[0], question, *count(asked(connection, question), truth, truth)
        yield from _change(connection, box, draws)
    yield from _ranges(connection, exact)
    yield from _marginals(connection, exact, draws)
    yield from _bands(connection, exact, draws)
    if exact.sum() > 0:
        yield from _shares(connection, exact)
        yield from _quantiles(connection, exact)


def _change(
    connection: duckdb.DuckDBPyConnection, box: list[tuple[int, int]], draws: int
) -> Iterator[tuple[str, str, int, int]]:
    """Differences of every two neighbouring releases, whose true difference is 0."""
    question = f"dph_compare('x', '0', '1', {told(box)})"
    found = asked(connection, question)
    reach = (found["ci_upper"][0] - found["ci_lower"][0]) / 2 if found["basis"][0] != "noise_only" else math.nan
    # The macro adds up noisy cells; so does a marginal without groups, but for the total.
    sums = "coalesce(sum(unbiased_estimate), 'nan')"
    inside = " AND ".join(
        f"axis_{number}_lower >= {low} AND axis_{number}_upper <= {high}" for number, (low, high) in enumerate(box)
    )
    cells = connection.sql(
        f"SELECT {sums} FROM internals.dph_cells_x WHERE {inside} GROUP BY period ORDER BY CAST(period AS BIGINT)"
    ).fetchnumpy()
    centres = next(iter(cells.values())).astype(float)[: draws - draws % 2].reshape(-1, 2)
    off = np.abs(centres[:, 1] - centres[:, 0])
    if math.isfinite(reach):
        assert abs(off[0] - abs(found["unbiased"][0])) < 1e-6
        yield "compare", question, off.size, int((off <= reach + 1e-9).sum())


def _ranges(connection: duckdb.DuckDBPyConnection, exact: Counts) -> Iterator[tuple[str, str, int, int]]:
    """A range whose ends are edges, and one that cuts bins."""
    size = exact.shape[0]
    for low, high in ((2, size - 2), (1.5, size - 1.25)):
        inner, outer = exact[math.ceil(low) : math.floor(high)].sum(), exact[math.floor(low) : math.ceil(high)].sum()
        question = f"dph_range('x', 'axis_0', {low}, {high})"
        found = asked(connection, question)
        if "exactly" in found["covers"]:
            yield "range", question, *count(found, inner, inner)
            continue
        ends = {name: found["covers"] == name for name in ("inner", "outer")}
        both = {"ci_lower": found["ci_lower"][ends["inner"]], "ci_upper": found["ci_upper"][ends["outer"]]}
        yield "range", question, *count(both, inner, outer)
        question = f"dph_box('x', {{'axis_0': [{low}, {high}]}})"
        yield "range", question, *count(asked(connection, question), inner, outer)


def _marginals(connection: duckdb.DuckDBPyConnection, exact: Counts, draws: int) -> Iterator[tuple[str, str, int, int]]:
    """Each row of the marginal of each axis."""
    for axis, size in enumerate(exact.shape):
        question = f"dph_marginal('x', ['axis_{axis}'])"
        found = asked(connection, question)
        truth = exact.sum(axis=tuple(other for other in range(exact.ndim) if other != axis))
        for row in range(size):
            rows = found[f"axis_{axis}_lower"] == row
            assert rows.sum() == draws
            yield "marginal", f"{question} row {row}", *count(found, truth[row], truth[row], rows)


def _bands(connection: duckdb.DuckDBPyConnection, exact: Counts, draws: int) -> Iterator[tuple[str, str, int, int]]:
    """All cells at once."""
    question = f"dph_band('x', {LEVEL})"
    found = asked(connection, question)
    lower, upper = (found[name].astype(float).reshape(draws, -1) for name in ("ci_lower", "ci_upper"))
    holds = (lower <= exact.ravel() + 1e-9) & (upper >= exact.ravel() - 1e-9)
    yield "band", question, int((~np.isnan(lower).any(axis=1)).sum()), int(holds.all(axis=1).sum())


def _shares(connection: duckdb.DuckDBPyConnection, exact: Counts) -> Iterator[tuple[str, str, int, int]]:
    size = exact.shape[0]
    for low, high in ((0, 1), (size // 3, size // 3 + 2), (1, size)):
        question = f"dph_share('x', {{'axis_0': [{low}, {high}]}})"
        truth = exact[low:high].sum() / exact.sum()
        yield "share", question, *count(asked(connection, question), truth, truth)


def _quantiles(connection: duckdb.DuckDBPyConnection, exact: Counts) -> Iterator[tuple[str, str, int, int]]:
    below = np.cumsum(exact.reshape(exact.shape[0], -1).sum(axis=1))
    for q in (0.1, 0.5, 0.9):
        question = f"dph_quantile('x', 'axis_0', {q})"
        place = int(np.argmax(below >= q * below[-1]))
        yield "quantile", question, *count(asked(connection, question), place, place + 1)


def measure(mechanism: str, draws: int) -> list[Held]:
    """All answers of one mechanism."""
    found = []
    for shape, sides in SHAPES.items():
        for name, exact in inputs(sides).items():
            try:
                made = released(mechanism, exact, draws)
            except DomainRefused:
                break
            with tempfile.TemporaryDirectory() as folder, catalogue(made, Path(folder)) as connection:
                for kind, question, number, held in answers(connection, exact, draws):
                    if number:
                        found.append(Held(mechanism, shape, name, kind, question, number, held))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10_000, help="releases of each input")
    parser.add_argument("--mechanism", action="append", help="only these")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    started, chosen = time.monotonic(), given.mechanism or mechanisms.names()
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        found = []
        for mechanism, some in zip(chosen, pool.map(measure, chosen, [given.draws] * len(chosen)), strict=True):
            found += some
            print(f"{mechanism}: {len(some)} answers, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    rows = [{**vars(one), "coverage": one.coverage, "standard_error": one.standard_error} for one in found]
    below = [one for one in found if one.is_below]
    facts = {"draws": given.draws, "epsilon": EPSILON, "level": LEVEL, "seconds": time.monotonic() - started}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**facts, "below": [vars(one) for one in below], "answers": rows}, indent=1) + "\n")
    table = Table("mechanism", "kind", "answers", "least held", "standard error", "of")
    for mechanism in chosen:
        for kind in dict.fromkeys(one.kind for one in found if one.mechanism == mechanism):
            same = [one for one in found if (one.mechanism, one.kind) == (mechanism, kind)]
            least = min(same, key=lambda one: (one.answered < FEWEST, (one.coverage - LEVEL) / one.standard_error))
            where = f"{least.counts}, {least.shape}: {least.question}"
            ends = (f"{least.coverage:.2%}", f"{least.standard_error:.2%}", where)
            table.add_row(mechanism, kind, str(len(same)), *ends, style="red" if least.is_below else None)
    Console(width=170).print(table)
    print(f"{len(found)} answers of {given.draws:,} releases each; {len(below)} below 95 % by more than three errors")
    sys.exit(bool(below))


if __name__ == "__main__":
    main()

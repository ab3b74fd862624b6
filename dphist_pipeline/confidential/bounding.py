"""Bounding: of each unit's rows, keep at most R, as a function of that unit's rows alone.

A row is (unit, cell, copy number among the unit's equal rows). Kept are a unit's R rows that come first in an order
that a secret key, fresh for every run, makes look random: every row has the same chance, so what is kept of a cell is
proportional to the unit's rows in it. No table order, engine order or other unit has a say, so neighbours differ by at
most R kept rows.

DuckDB, which spills beside the rows what memory does not hold, finds the units with more rows than R, and counts the
rows of all others. The rows of those few come sorted, and are ordered by plain arithmetic on 64-bit words with a keyed
BLAKE2b of the unit's name, so that every engine keeps the same rows under the same key. A collision of the hash merges
no units: rows are told apart by the unit itself, and ties fall to the lower cell and copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.confidential.reading.source import engine_settings
from dphist_pipeline.sql_files import literal

CHUNK_ROWS = 1 << 21
KEY_BYTES = 32

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]


def count_bounded(staged: Path, cells: int, max_rows: int, key: bytes) -> Numbers:
    """Counts the kept rows of every cell.

    Args:
        staged: Parquet with `unit` and `code`; rows without a code are in no cell.
        cells: how many the domain has.
        max_rows: R, the most rows that are kept of a unit.
        key: `KEY_BYTES` secret bytes, fresh for every run.

    Returns:
        Kept rows, shape (cells,). Memory: DuckDB's limit, and some 100 bytes for each of 2^21 rows.
    """
    counts = np.zeros(cells, dtype=np.int64)
    for codes, kept in kept_rows(staged, "code", max_rows, key):
        counts[codes] += kept
    return counts


def kept_rows(staged: Path, column: str, max_rows: int, key: bytes) -> Iterator[tuple[Numbers, Numbers]]:
    """The kept rows by code, in several parts, none of which has a code twice.

    Args:
        staged: as above.
        column: that holds the codes; rows where it is null do not count.
        max_rows: R, the most rows that are kept of a unit.
        key: see `count_bounded`.

    Yields:
        Codes, and how many rows each has.
    """
    with staged_rows(staged, column) as connection:
        above = "CREATE TEMP TABLE above AS SELECT unit FROM staged GROUP BY unit HAVING count(*) > $most"
        connection.execute(above, {"most": max_rows})
        within = "SELECT code, count(*) AS rows FROM staged ANTI JOIN above USING (unit) GROUP BY code"
        counted = connection.sql(within).pl()
        yield counted["code"].to_numpy(), counted["rows"].to_numpy()
        rows = connection.sql("SELECT unit, code FROM staged SEMI JOIN above USING (unit) ORDER BY unit, code")
        for codes in _first_rows(rows.to_arrow_reader(CHUNK_ROWS), max_rows, key):
            yield np.unique(codes, return_counts=True)


@contextmanager
def staged_rows(staged: Path, column: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in which the view `staged` has the `unit` of every row and its `code`, where there is one."""
    rows = f"SELECT unit, {column} AS code FROM read_parquet({literal(str(staged))}) WHERE {column} IS NOT NULL"
    with closing(duckdb.connect(config=engine_settings(staged.parent))) as connection:
        connection.execute(f"CREATE TEMP VIEW staged AS {rows}")
        yield connection


def count_rows(staged: Path, cells: int) -> Numbers:
    """The rows of every cell, where each row is its own unit, which reading has counted; shape (cells,)."""
    counts = np.zeros(cells, dtype=np.int64)
    found = pl.read_parquet(staged, columns=["code", "rows"], glob=False).drop_nulls()
    np.add.at(counts, found["code"].to_numpy(), found["rows"].to_numpy())
    return counts


def unit_word(unit: str, key: bytes) -> int:
    """A keyed 64-bit word of a unit's name."""
    return int.from_bytes(hashlib.blake2b(unit.encode(), digest_size=8, key=key).digest(), "little")


def row_order(unit_words: Words, codes: Numbers, copies: Numbers) -> Words:
    """Where each row stands in its unit's secret order; equal inputs give equal places, on every engine."""
    place = _mix(unit_words + codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return _mix(place + copies.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def _mix(words: Words) -> Words:
    """The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a permutation of 64-bit words that spreads every bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _first_rows(batches: Iterable[Any], max_rows: int, key: bytes) -> Iterator[Numbers]:
    """Cells of each unit's first rows, from rows sorted by unit and code; a unit may go on in the next batch."""
    unit, code, seen = None, -1, 0  # the last row, and how many rows of its unit and code there were
    places, codes = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)  # of the first rows of its unit
    for batch in batches:
        rows = pl.DataFrame(batch)
        ranks, more = rows["unit"].rle_id().to_numpy().astype(np.int64), rows["code"].to_numpy().astype(np.int64)
        starts = np.flatnonzero(np.diff(ranks, prepend=-1) | np.diff(more, prepend=-1))
        copies = np.arange(more.size) - np.repeat(starts, np.diff(starts, append=more.size))
        units = rows["unit"].filter(np.diff(ranks, prepend=-1) > 0).to_list()
        goes_on = units[0] == unit
        if goes_on and more[0] == code:
            copies[: starts[1] if starts.size > 1 else None] += seen
        words = np.fromiter((unit_word(str(each), key) for each in units), dtype=np.uint64, count=len(units))
        ranks = np.concatenate([np.full(codes.size, 0 if goes_on else -1), ranks])
        places = np.concatenate([places, row_order(words[ranks[codes.size :]], more, copies)])
        codes = np.concatenate([codes, more])
        order = np.lexsort((places, ranks))  # equal places stay in the order of the rows
        starts = np.flatnonzero(np.diff(ranks[order], prepend=-2))
        kept = order[np.arange(ranks.size) - np.repeat(starts, np.diff(starts, append=ranks.size)) < max_rows]
        finished = ranks[kept] < ranks[-1]
        yield codes[kept[finished]]
        places, codes = places[kept[~finished]], codes[kept[~finished]]
        unit, code, seen = units[-1], more[-1], copies[-1] + 1
    yield codes

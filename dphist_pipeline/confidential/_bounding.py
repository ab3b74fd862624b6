"""Bounding: of each unit's rows, keep at most R, as a function of that unit's rows alone.

A row is (unit, cell, copy number among the unit's equal rows). Kept are a unit's R rows that come first in an order
that a secret key, fresh for every run, makes look random: every row has the same chance, so what is kept of a cell is
proportional to the unit's rows in it. No table order, engine order or other unit has a say, so neighbours differ by at
most R kept rows.

DuckDB finds the few units with more rows than R, and counts the rows of all others. Theirs come sorted, and are ordered
by plain arithmetic on 64-bit words with a keyed SHA-256 of the unit's name, the same on every engine. A collision
merges no units: rows are told apart by the unit itself, and ties fall to the lower cell and copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.reading.source import engine_settings
from dphist_pipeline.sql_files import literal

CHUNK_ROWS = 1 << 21
KEY_BYTES = 32
# The finalizer of SplitMix64 (Steele, Lea, Flood 2014), a permutation of 64-bit words that spreads every bit: pairs of
# a shift and a factor, then one more shift. A code and a copy's number are first multiplied by odd numbers.
MIX, LAST_SHIFT = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31
CODE_STEP, COPY_STEP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]


def count_bounded(staged: Path, cells: int, max_rows: int, key: bytes) -> Numbers:
    """Counts the kept rows of every cell.

    Args:
        staged: Parquet with `unit` and `code`; rows without a code are in no cell.
        max_rows: R, the most rows that are kept of a unit.
        key: `KEY_BYTES` secret bytes, fresh for every run.

    Returns:
        Kept rows, shape (cells,). Memory: DuckDB's limit, and some 100 bytes for each of 2^21 rows.
    """
    counts = np.zeros(cells, dtype=np.int64)
    for (codes,), kept in kept_words(staged, ["code"], max_rows, key):
        np.add.at(counts, codes, kept)
    return counts


def kept_words(staged: Path, words: Sequence[str], max_rows: int, key: bytes) -> Iterator[tuple[Numbers, Numbers]]:
    """Codes of several words, shape (words, codes), and how many kept rows each has, in parts; codes may come again.

    Args:
        staged: Parquet with `unit` and a column for each word; rows where a word is null do not count.
        words: names of those columns, put into SQL as they stand: `code`, or our own of marks or packed rows.
        max_rows: the most rows that are kept of a unit: R, or T for a quality table.
    """
    names = ", ".join(words)
    with staged_rows(staged, words) as connection:
        above = "CREATE TEMP TABLE above AS SELECT unit FROM staged GROUP BY unit HAVING count(*) > $most"
        connection.execute(above, {"most": max_rows})
        within = f"SELECT {names}, count(*) AS copies FROM staged ANTI JOIN above USING (unit) GROUP BY ALL"
        counted = connection.sql(within).fetchnumpy()
        yield _codes(counted, words), counted["copies"]
        rows = connection.sql(f"SELECT unit, {names} FROM staged SEMI JOIN above USING (unit) ORDER BY unit, {names}")
        for codes in _first_rows(rows.to_arrow_reader(CHUNK_ROWS), words, max_rows, key):
            yield codes, np.ones(codes.shape[1], dtype=np.int64)


def _codes(columns: Any, words: Sequence[str]) -> Numbers:
    return np.stack([np.asarray(columns[word]).astype(np.int64) for word in words])


@contextmanager
def staged_rows(staged: Path, words: Sequence[str], more: str = "unit") -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in which the view `staged` has the code of every row that has one, and one more column.

    Args:
        staged: Parquet that reading wrote; DuckDB spills beside it.
        words: names of the columns with codes; rows where one is null are left out.
        more: the other column: `unit`, or `rows` where each row is its own unit.
    """
    condition = " AND ".join(f"{word} IS NOT NULL" for word in words)
    rows = f"SELECT {more}, {', '.join(words)} FROM read_parquet({literal(str(staged))}) WHERE {condition}"
    with closing(duckdb.connect(config=engine_settings(staged.parent))) as connection:
        connection.execute(f"CREATE TEMP VIEW staged AS {rows}")
        yield connection


def count_rows(staged: Path, cells: int) -> Numbers:
    """The rows of every cell, where each row is its own unit, which reading has counted; shape (cells,).

    Args:
        staged: Parquet with `code` and `rows`, how many rows have it; rows without a code are in no cell.
    """
    counts = np.zeros(cells, dtype=np.int64)
    (codes,), rows = counted_rows(staged, ["code"])
    np.add.at(counts, codes, rows)
    return counts


def counted_rows(staged: Path, words: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Codes of shape (words, codes), one of them maybe several times, and the rows that reading has counted.

    Args:
        staged: Parquet with `rows` and a column for each word; rows where a word is null do not count.
    """
    with staged_rows(staged, words, "rows") as connection:
        columns = connection.sql("FROM staged").fetchnumpy()
        return _codes(columns, words), columns["rows"]


def unit_word(unit: str, key: bytes) -> int:
    """A keyed word of a unit's name: 60 bits, which no engine takes for a negative number.

    Key and name are hashed one after the other: the key has a fixed length, and no hash is shown to anybody.

    Args:
        unit: as staged; a whole number as its decimal digits.
        key: `KEY_BYTES` bytes, the secret ones of a run; public ones where an engine is only tried.
    """
    return int(hashlib.sha256(key + unit.encode()).hexdigest()[:15], 16)


def row_order(unit_words: Words, codes: Numbers, copies: Numbers) -> Words:
    """Each row's place in its unit's secret order, shape (rows,), the lowest first; the same on every engine.

    Args:
        unit_words: `unit_word` of each row's unit, shape (rows,).
        codes: shape (words, rows), from 0.
        copies: each row's number among the equal rows of its unit, from 0, shape (rows,).
    """
    place = unit_words
    for word in codes:
        place = _mix(place + word.astype(np.uint64) * np.uint64(CODE_STEP))
    return _mix(place + copies.astype(np.uint64) * np.uint64(COPY_STEP))


def _mix(words: Words) -> Words:
    for shift, factor in MIX:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(LAST_SHIFT))


def _first_rows(batches: Iterable[Any], words: Sequence[str], max_rows: int, key: bytes) -> Iterator[Numbers]:
    """Codes of each unit's first rows, shape (words, rows), from rows in batches, sorted by unit and code."""
    # The last row, and how many of its unit had its code; the first rows of that unit so far, which may go on.
    unit, code, seen = None, None, 0
    places, codes = np.empty(0, dtype=np.uint64), np.empty((len(words), 0), dtype=np.int64)
    for batch in batches:
        import polars as pl  # here, so that nothing waits for it where no unit is above the bound

        rows = pl.DataFrame(batch)
        ranks, more = rows["unit"].rle_id().to_numpy().astype(np.int64), _codes(rows, words)
        starts = np.flatnonzero(np.diff(np.vstack([ranks, more]), axis=1, prepend=-1).any(axis=0))
        copies = np.arange(ranks.size) - np.repeat(starts, np.diff(starts, append=ranks.size))
        units = rows["unit"].filter(np.diff(ranks, prepend=-1) > 0).to_list()
        goes_on = units[0] == unit
        if goes_on and more[:, 0].tolist() == code:
            copies[: starts[1] if starts.size > 1 else None] += seen
        keyed = np.fromiter((unit_word(str(each), key) for each in units), dtype=np.uint64, count=len(units))
        places = np.concatenate([places, row_order(keyed[ranks], more, copies)])
        ranks = np.concatenate([np.full(codes.shape[1], 0 if goes_on else -1), ranks])
        codes = np.concatenate([codes, more], axis=1)
        order = np.lexsort((places, ranks))  # equal places stay in the order of the rows
        starts = np.flatnonzero(np.diff(ranks[order], prepend=-2))
        first = order[np.arange(ranks.size) - np.repeat(starts, np.diff(starts, append=ranks.size)) < max_rows]
        finished = ranks[first] < ranks[-1]
        yield codes[:, first[finished]]
        places, codes = places[first[~finished]], codes[:, first[~finished]]
        unit, code, seen = units[-1], more[:, -1].tolist(), copies[-1] + 1
    yield codes

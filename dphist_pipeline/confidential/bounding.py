"""Bounding: of each unit's rows, keep at most R, as a function of that unit's rows alone.

A row is (unit, cell, copy number among the unit's equal rows). Kept are a unit's R rows that come first in an order
that a secret key, fresh for every run, makes look random: every row has the same chance, so what is kept of a cell is
proportional to the unit's rows in it. No table order, engine order or other unit has a say, so neighbours differ by at
most R kept rows.

The order is plain arithmetic on 64-bit words with a keyed BLAKE2b of the unit's name, so that every engine which hands
arrays to Python keeps the same rows under the same key. A collision of the hash merges no units: rows are told
apart by the unit itself, and ties fall to the lower cell and copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

PASS_ROWS = 1 << 24
CHUNK_ROWS = 1 << 22
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
        Kept rows, shape (cells,). Memory: some 100 bytes for each of 2^24 rows; larger sources take several passes.
    """
    counts = np.zeros(cells, dtype=np.int64)
    rows = pl.scan_parquet(staged, glob=False).select("unit", "code").filter(pl.col("code").is_not_null())
    for codes, kept in kept_rows(rows, max_rows, key):
        counts[codes] += kept
    return counts


def kept_rows(rows: pl.LazyFrame, max_rows: int, key: bytes) -> Iterator[tuple[Numbers, Numbers]]:
    """The kept rows by code, in several parts, none of which has a code twice.

    Args:
        rows: `unit` and `code`.
        max_rows: R, the most rows that are kept of a unit.
        key: see `count_bounded`.

    Yields:
        Codes, and how many rows each has.
    """
    for (codes,), kept in kept_words(rows, max_rows, key, ["code"]):
        yield codes, kept


def kept_words(
    rows: pl.LazyFrame, max_rows: int, key: bytes, words: Sequence[str]
) -> Iterator[tuple[Numbers, Numbers]]:
    """The same for codes of several words, the columns `words`; yields codes of shape (words, codes)."""
    for part in in_passes(rows):
        per_code = part.group_by("unit", *words).agg(copies=pl.len().cast(pl.Int64)).collect(engine="streaming")
        per_code = per_code.with_columns(rows=pl.col("copies").sum().over("unit"))
        within = per_code.filter(pl.col("rows") <= max_rows).group_by(words).agg(pl.col("copies").sum())
        yield _codes(within, words), within["copies"].to_numpy()
        over = per_code.filter(pl.col("rows") > max_rows)
        if not over.is_empty():
            yield np.unique(_chosen(over, max_rows, key, words), axis=1, return_counts=True)


def _codes(frame: pl.DataFrame, words: Sequence[str]) -> Numbers:
    return np.stack([frame[word].to_numpy().astype(np.int64) for word in words])


def in_passes(rows: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
    """Rows in parts that memory can hold; the rows of a unit are in one part."""
    passes = -(-rows.select(pl.len()).collect().item() // PASS_ROWS) or 1
    for number in range(passes):
        # Any split that keeps a unit's rows together will do; this hash decides nothing else.
        yield rows if passes == 1 else rows.filter(pl.col("unit").hash(seed=0) % passes == number)


def count_rows(staged: Path, cells: int) -> Numbers:
    """Counts all rows of every cell, where each row is its own unit; shape (cells,)."""
    counts = np.zeros(cells, dtype=np.int64)
    rows = pl.scan_parquet(staged, glob=False).select("code").filter(pl.col("code").is_not_null())
    per_cell = rows.group_by("code").agg(rows=pl.len()).collect(engine="streaming")
    counts[per_cell["code"].to_numpy()] = per_cell["rows"].to_numpy()
    return counts


def _chosen(over: pl.DataFrame, max_rows: int, key: bytes, words: Sequence[str]) -> Numbers:
    """Codes of the kept rows of units that have more than they may keep; `over`: unit, words of the code, copies."""
    units = over.select(pl.col("unit").unique())["unit"]
    ranks = pl.DataFrame({"unit": units, "rank": np.arange(units.len())})
    ordered = over.join(ranks, on="unit")
    unit_words = np.fromiter((unit_word(str(unit), key) for unit in units), dtype=np.uint64, count=units.len())
    return _first_rows(
        ordered["rank"].to_numpy(),
        _codes(ordered, words),
        ordered["copies"].to_numpy().astype(np.int64),
        unit_words,
        max_rows,
    )


def unit_word(unit: str, key: bytes) -> int:
    """A keyed 64-bit word of a unit's name."""
    return int.from_bytes(hashlib.blake2b(unit.encode(), digest_size=8, key=key).digest(), "little")


def row_order(unit_words: Words, codes: Numbers, copies: Numbers) -> Words:
    """Where each row stands in its unit's secret order; equal inputs give equal places, on every engine.

    Args:
        unit_words: of each row's unit, shape (rows,).
        codes: of the rows, shape (words, rows).
        copies: number of each row among the unit's equal ones, shape (rows,).
    """
    place = unit_words
    for word in codes:
        place = _mix(place + word.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return _mix(place + copies.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


def _mix(words: Words) -> Words:
    """The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a permutation of 64-bit words that spreads every bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _first_rows(ranks: Numbers, codes: Numbers, copies: Numbers, unit_words: Words, max_rows: int) -> Numbers:
    """Codes of each unit's first rows, shape (words, kept).

    Goes through the rows in chunks, so that a unit with very many rows needs no more memory than others.
    """
    best = np.empty((2 + len(codes), 0), dtype=np.int64)
    for chunk in _chunks(ranks, codes, copies):
        best = _firsts(np.concatenate([best, chunk], axis=1), unit_words, max_rows)
    return best[1:-1]


def _chunks(ranks: Numbers, codes: Numbers, copies: Numbers) -> Iterator[Numbers]:
    """Single rows as (rank of the unit, code, copy number), shape (2 + words, rows of the chunk)."""
    ends = np.cumsum(copies)
    for start in range(0, int(ends[-1]), CHUNK_ROWS):
        row = np.arange(start, min(start + CHUNK_ROWS, int(ends[-1])))
        entry = np.searchsorted(ends, row, side="right")
        yield np.stack([ranks[entry], *codes[:, entry], row - (ends - copies)[entry]])


def _firsts(rows: Numbers, unit_words: Words, max_rows: int) -> Numbers:
    """The first `max_rows` of each unit among the rows (rank, code, copy), shape (2 + words, kept)."""
    ranks, codes, copies = rows[0], rows[1:-1], rows[-1]
    order = np.lexsort((copies, *codes, row_order(unit_words[ranks], codes, copies), ranks))
    ranks = ranks[order]
    starts = np.flatnonzero(np.diff(ranks, prepend=-1))
    place = np.arange(ranks.size) - np.repeat(starts, np.diff(starts, append=ranks.size))
    return rows[:, order[place < max_rows]]

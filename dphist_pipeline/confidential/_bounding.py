"""Bounding: of each unit's rows, keep at most R, as a function of that unit's rows alone.

A row is (unit, cell, copy number among the unit's equal rows). Kept are a unit's R rows that come first in an order
that a secret key, fresh for every run, makes look random: every row has the same chance, so what is kept of a cell is
proportional to the unit's rows in it. No table order, engine order or other unit has a say, so neighbours differ by at
most R kept rows.

Every row is counted. Then the units that may have more than R rows are found: the hashes of the units of all rows are
sorted, and a hash that stands more than R times is *crowded*. The rows of crowded hashes, the *candidates*, are taken
out of the counts, put in order, and each unit's first R counted again. So a hash decides only whose rows are looked at
once more.

The order is plain arithmetic on 64-bit words with a keyed SHA-256 of the unit's name, the same on every engine. A
collision merges no units: rows are told apart by the unit itself, and ties fall to the lower cell and copy.

*Distinct* counts are of units in cells: before all that, equal rows of a unit become one row. What is left of a unit
depends on its own rows alone, and bounding keeps at most R rows of it as before. So neighbours differ by as much: proof
and Δ are those of bounding. (After the bound, a unit's equal rows would take the places of its other cells.)

Polars holds what it works on in memory and spills nothing. So rows are taken in slices by the hash of their unit, and
grouped as they are read where one unit has more rows than a slice; those of crowded hashes in passes, a unit with more
rows than one pass in parts by cell, and equal rows in blocks. All these give the same counts; how many there are
follows from the numbers of rows and `DPHIST_MEMORY`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.confidential.reading.source import memory_limit

KEY_BYTES = 32
# The finalizer of SplitMix64 (Steele, Lea, Flood 2014), a permutation of 64-bit words that spreads every bit: pairs of
# a shift and a factor, then one more shift. A code and a copy's number are first multiplied by odd numbers.
MIX, LAST_SHIFT = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31
CODE_STEP, COPY_STEP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
# What a row takes while hashes are sorted, and as much for each word; and what while rows are put in order.
SLICE_BYTES, PASS_BYTES = 50, 250
PAIR = 1 << 32  # a unit's number times this, and a cell's number, are one word

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]


def count_bounded(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool = False) -> Numbers:
    """Counts the kept rows of every cell.

    Args:
        staged: Parquet with `unit` and `code`; rows without a code are in no cell.
        max_rows: R, the most rows that are kept of a unit.
        key: `KEY_BYTES` secret bytes, fresh for every run.
        distinct: whether equal rows of a unit are one row.

    Returns:
        Kept rows, shape (cells,).
    """
    counts = np.zeros(cells, dtype=np.int64)
    for (codes,), rows in kept_words(staged, ["code"], max_rows, key, distinct):
        np.add.at(counts, codes, rows)
    return counts


def count_amounts(staged: Path, cells: int, max_rows: int, key: bytes) -> tuple[Numbers, Numbers]:
    """Counts the kept rows of every cell, and the parts of these that the upper end of the amount has.

    The parts are a word of a row: which rows are kept of a unit depends on its rows and the key alone. They are added
    up before anything leaves the engine, since nearly as many (code, parts) may differ as there are rows.

    Args:
        staged: as for `count_bounded`, with `amount`, the parts of each row.

    Returns:
        Kept rows and their parts, shape (cells,) each; exact, since 2^63 holds the parts of 2^47 rows.
    """
    counts, parts, words = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64), ["code", "amount"]
    for rows in slices(staged, words, key):
        sums = pl.len().cast(pl.Int64).alias("rows"), pl.col("amount").cast(pl.Int64).sum().alias("parts")
        counted = rows.group_by("code").agg(*sums).collect(engine="streaming")
        counts[counted["code"].to_numpy()] += counted["rows"].to_numpy()
        parts[counted["code"].to_numpy()] += counted["parts"].to_numpy()
        hashes = _rows_by_hash(rows)
        for (codes, of_row), more in _corrections(rows, hashes, words, max_rows, key):
            np.add.at(counts, codes, more)
            np.add.at(parts, codes, more * of_row)
    return counts, parts


def kept_words(
    staged: Path, words: Sequence[str], max_rows: int, key: bytes, distinct: bool = False
) -> Iterator[tuple[Numbers, Numbers]]:
    """Codes of several words, shape (words, codes), and what to add to the kept rows of each, in parts.

    Codes come again, and what is added may be negative; all parts together give the kept rows.

    Args:
        staged: Parquet with `unit` and a column for each word; rows where a word is null do not count.
        words: names of those columns.
        max_rows: the most rows that are kept of a unit: R, or T for a quality table.
        distinct: whether equal rows of a unit are one row.
    """
    most = 2 * _most_rows(SLICE_BYTES * (1 + len(words)))
    for rows in slices(staged, words, key, distinct):
        hashed = rows.select("hash", *words).head(most).collect(engine="streaming")
        fits = hashed.height < most
        if not fits:  # one unit has so many rows that they are grouped as they are read
            hashed = hashed.clear()
        if fits and _is_cell(rows, words):  # to add up one by one is quicker than to group
            yield _codes(hashed, words), np.broadcast_to(np.int64(1), hashed.height)
        else:
            counted = (hashed.lazy() if fits else rows).group_by(*words).agg(rows=pl.len()).collect(engine="streaming")
            yield _codes(counted, words), counted["rows"].to_numpy().astype(np.int64)
            del counted
        hashes = hashed["hash"].sort().rle().struct.unnest() if fits else _rows_by_hash(rows)
        del hashed  # it is as large as memory allows
        yield from _corrections(rows, hashes, words, max_rows, key)


def slices(staged: Path, words: Sequence[str], key: bytes, distinct: bool = False) -> Iterator[pl.LazyFrame]:
    """The rows of a staged file that have a code: `unit`, its `hash`, and `words`; all rows of a unit in one slice.

    `distinct`: each row of a unit once, by the unit itself, so that no collision of hashes joins two units.
    """
    rows = scan(staged, words).select("unit", *words, hash=_hash(key))
    most = _most_rows((PASS_BYTES if distinct else SLICE_BYTES) * (1 + len(words)))
    number = 1 + pl.scan_parquet(staged, glob=False).select(pl.len()).collect().item() // most
    for remainder in range(number):
        part = rows.filter(pl.col("hash") % number == remainder) if number > 1 else rows
        yield part.unique() if distinct else part


def scan(staged: Path, words: Sequence[str]) -> pl.LazyFrame:
    """The rows of a staged file of which no word is null: a null word leaves a row out of the count."""
    return pl.scan_parquet(staged, glob=False).drop_nulls(words)


def count_rows(staged: Path, cells: int, column: str = "rows") -> Numbers:
    """The rows of every cell, where each row is its own unit, which reading has counted; shape (cells,).

    Args:
        staged: Parquet with `code` and `rows`, how many rows have it; rows without a code are in no cell.
        column: what is added up; `amount` has the parts of these rows that the upper end of an amount has.
    """
    counts = np.zeros(cells, dtype=np.int64)
    counted = scan(staged, ["code"]).collect(engine="streaming")
    np.add.at(counts, counted["code"].to_numpy(), counted[column].to_numpy())
    return counts


def counted_rows(staged: Path, words: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Codes of shape (words, codes), one of them maybe several times, and the rows that reading has counted.

    Args:
        staged: Parquet with `rows` and a column for each word; rows where a word is null do not count.
    """
    counted = scan(staged, words).collect(engine="streaming")
    return _codes(counted, words), counted["rows"].to_numpy()


def unit_words(units: Sequence[str], key: bytes) -> Words:
    """A keyed word of each unit's name: 60 bits, which no engine takes for a negative number.

    Key and name are hashed one after the other: the key has a fixed length, and no hash is shown to anybody.

    Args:
        units: as staged; whole numbers as their decimal digits.
        key: `KEY_BYTES` bytes, the secret ones of a run; public ones where an engine is only tried.
    """
    digests = b"".join([sha256(key + unit.encode()).digest()[:8] for unit in units])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64) >> np.uint64(4)


def row_order(unit_words: Words, codes: Numbers, copies: Numbers) -> Words:
    """Each row's place in its unit's secret order, shape (rows,), the lowest first; the same on every engine.

    Args:
        unit_words: the word of each row's unit, shape (rows,).
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


def _codes(rows: pl.DataFrame, words: Sequence[str]) -> Numbers:
    return np.stack([rows[word].to_numpy().astype(np.int64) for word in words])


def _is_cell(rows: pl.LazyFrame, words: Sequence[str]) -> bool:
    """Whether a row is the number of one cell, and not its position along all axes: the spec decides which."""
    schema = rows.collect_schema()
    return [schema[word] for word in words] == [pl.Int32]


def _hash(key: bytes) -> pl.Expr:
    """A hash of each row's unit that nobody can foresee: 64 bits, which units seldom share."""
    return pl.col("unit").hash(int.from_bytes(sha256(b"units" + key).digest()[:8]))


def _most_rows(bytes_each: int) -> int:
    """The number of rows that may be in memory at once; Polars numbers them by 32 bits."""
    return max(1, min(memory_limit() // bytes_each, 1 << 30))


def _rows_by_hash(rows: pl.LazyFrame) -> pl.DataFrame:
    """The number of rows of each hash of a unit, as `value` and `len`, added up as they are read."""
    return rows.group_by(value="hash").agg(len=pl.len()).collect(engine="streaming")


def _corrections(
    rows: pl.LazyFrame, hashes: pl.DataFrame, words: Sequence[str], max_rows: int, key: bytes
) -> Iterator[tuple[Numbers, Numbers]]:
    """The corrections of the counts of all rows by bounding: codes, and what to add to the rows of each.

    Args:
        rows: with `unit`, its `hash`, and `words`.
        hashes: of these rows, and how many rows each has; those of more than `max_rows` are crowded.
    """
    most, crowded = _most_rows(PASS_BYTES), hashes.filter(pl.col("len") > max_rows)
    # A pass has hashes of at most `most` rows, and all rows of one more: it may be that of a unit with very many.
    passes = crowded.with_columns(turn=(pl.col("len").cast(pl.Int64).cum_sum() - pl.col("len")) // most)
    for hashes in passes.partition_by("turn", maintain_order=True):
        candidates = rows.join(hashes.lazy().select(hash="value").with_row_index("number"), on="hash")
        units, parts = _pairs(candidates, words, hashes.height, max(1, int(hashes["len"].sum()) // (2 * most)))
        place_of_unit = unit_words(units.cast(pl.String).to_list(), key)
        kept: pl.DataFrame | None = None
        for pairs in parts:
            yield _codes(pairs, words), -pairs["copies"].to_numpy().astype(np.int64)
            for block in _blocks(pairs, words, place_of_unit, most):
                kept = _first_rows(block if kept is None else pl.concat([kept, block]), words, max_rows)
        if kept is not None:
            yield _codes(kept, words), np.broadcast_to(np.int64(1), kept.height)


def _pairs(
    candidates: pl.LazyFrame, words: Sequence[str], hashes: int, parts: int
) -> tuple[pl.Series, Iterator[pl.DataFrame]]:
    """The units of a pass, by their number from 0, and in some parts the copies of each (number, cell).

    Where a cell is one number, one sort does all: a unit's number and the cell's are one word of 64 bits. That takes
    one unit for each hash; where two share one, as where a pass has very many rows, units are numbered anew.

    Args:
        candidates: with `unit`, the `number` of its hash, and `words`.
        hashes: how many there are.
    """
    if parts == 1 and _is_cell(candidates, words):
        rows = candidates.select("number", "unit", code=words[0]).collect(engine="streaming")
        row_of = np.zeros(hashes, dtype=np.int64)
        row_of[rows["number"].to_numpy()] = np.arange(rows.height)
        units = rows["unit"].gather(row_of)
        if (rows["unit"] == units.gather(rows["number"])).all():
            both = rows["number"].cast(pl.UInt64) * PAIR + rows["code"].cast(pl.UInt64)
            number, code = (pl.col("value") // PAIR).cast(pl.UInt32), (pl.col("value") % PAIR).cast(pl.Int32)
            pairs = both.sort().rle().struct.unnest()
            return units, iter([pairs.select(number.alias("number"), code.alias(words[0]), copies="len")])
    units = candidates.select("unit").unique().collect(engine="streaming")["unit"]
    numbers = units.to_frame().lazy().with_row_index("number")
    cells = candidates.select("unit", *words).join(numbers, on="unit").select("number", *words)
    part_of = pl.sum_horizontal(pl.col(word).hash() // parts for word in words) % parts
    grouped = (cells.filter(part_of == part).group_by("number", *words).agg(copies=pl.len()) for part in range(parts))
    return units, (pairs.collect(engine="streaming").sort("number") for pairs in grouped)


def _blocks(pairs: pl.DataFrame, words: Sequence[str], unit_place: Words, most: int) -> Iterator[pl.DataFrame]:
    """Every row of (number, cell, copies) with its place in the order of its unit, at most `most` rows at once."""
    copies = pairs["copies"].to_numpy().astype(np.int64)
    ends = np.cumsum(copies)
    for begin in range(0, int(ends[-1]) if ends.size else 0, most):
        first, last = np.searchsorted(ends, begin, side="right"), np.searchsorted(ends, begin + most)
        held = pairs[int(first) : int(last) + 1]
        before = ends[first : last + 1] - copies[first : last + 1]
        low, high = np.maximum(begin - before, 0), np.minimum(begin + most - before, copies[first : last + 1])
        rows = np.repeat(np.arange(held.height), high - low)
        copy = np.arange(rows.size) - (np.cumsum(high - low) - high)[rows]
        block = held[rows].drop("copies") if rows.size > held.height else held.drop("copies")
        place = row_order(unit_place[block["number"].to_numpy()], _codes(block, words), copy)
        yield block.with_columns(place=place, copy=copy)


def _first_rows(rows: pl.DataFrame, words: Sequence[str], max_rows: int) -> pl.DataFrame:
    """The first rows of each unit; equal places stay in the order of cells and copies."""
    return rows.sort("number", "place", *words, "copy").group_by("number", maintain_order=True).head(max_rows)

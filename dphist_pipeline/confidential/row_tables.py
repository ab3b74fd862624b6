"""Exact numbers about the first T rows of each unit: what the bound cuts, and what fails to be a declared value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.confidential._bounding import count_amounts, count_bounded, counted_rows, kept_words, slices
from dphist_pipeline.confidential._row_words import names_of, words_of
from dphist_pipeline.confidential._table_counts import count_marginals
from dphist_pipeline.confidential.plan import CountingPlan, Marginal
from dphist_pipeline.confidential.reading._positions import MARKS, UNDECLARED, UNPARSED, mark_words
from dphist_pipeline.confidential.row_queries import ObservedRows

Numbers = NDArray[np.int64]

FILE = "quality.npz"


def observe_rows(plan: CountingPlan, seen: int, staged: Path, counts: Numbers, key: bytes) -> ObservedRows:
    """Counts the first `seen` rows of each unit in the order of the key.

    Args:
        plan: with the bound and the grid, or the tables that are counted instead of it.
        seen: T, at least the bound.
        staged: Parquet with `code`, or the words of each row, null for rows in no cell; the columns of
            `positions.mark_words`; and `unit` unless each row is its own.
        counts: rows that the bound leaves of the grid, without an amount, by the same key; of tables nothing is read
            here.

    Of a plan that counts a unit once in a cell, what units hold and what is cut are cells; marks stay those of rows.
    """
    marks = list(mark_words(len(plan.domain.axes)))
    if plan.privacy_unit == "row":
        units, cut = np.zeros(seen, dtype=np.int64), np.zeros(sum(plan.domain.of_rows.shape), dtype=np.int64)
        batches = iter([counted_rows(staged, marks)])
    else:
        units = _units_by_rows(plan, staged, seen, key)
        cut = _cut_by_position(plan, staged, seen, counts, key)
        batches = kept_words(staged, marks, seen, key)
    # A row in a cell has one position along every axis, so the positions of any axis hold all rows that are cut; of an
    # amount it has none.
    whole = cut[: plan.domain.of_rows.shape[0]].sum(keepdims=True)
    return ObservedRows(units, whole, cut, *_failures(plan, batches))


def first_rows(plan: CountingPlan, seen: int, staged: Path, key: bytes) -> int:
    """How many rows were staged, in cells or in none, of each unit its first `seen` alone."""
    marks = list(mark_words(len(plan.domain.axes)))
    if plan.privacy_unit == "row":
        return int(counted_rows(staged, marks)[1].sum())
    parts = (_rows_by_unit(rows, seen).select(pl.col("rows").sum()) for rows in slices(staged, marks, key))
    return sum(part.collect(engine="streaming").item() for part in parts)


def _rows_by_unit(rows: pl.LazyFrame, seen: int) -> pl.LazyFrame:
    """The rows of each unit, at most `seen`."""
    return rows.group_by("unit").agg(rows=pl.len().clip(upper_bound=seen).cast(pl.Int64))


def _units_by_rows(plan: CountingPlan, staged: Path, seen: int, key: bytes) -> Numbers:
    """Units that hold 1, 2, …, `seen` or more rows in declared cells."""
    codes = names_of(words_of(plan.domain)) if plan.marginals else ["code"]
    units = np.zeros(seen, dtype=np.int64)
    for rows in slices(staged, codes, key, plan.distinct):
        histogram = _rows_by_unit(rows, seen).group_by("rows").agg(units=pl.len()).collect(engine="streaming")
        units[histogram["rows"].to_numpy() - 1] += histogram["units"].to_numpy()
    return units


def _cut_by_position(plan: CountingPlan, staged: Path, seen: int, counts: Numbers, key: bytes) -> Numbers:
    """Rows R+1 … T of each unit by position along each axis, one axis after the other.

    The first R rows of a unit are among its first T, so these are how many of the latter the bound cuts.
    """
    shape = plan.domain.of_rows.shape
    if plan.marginals:
        axes = tuple(Marginal((axis,), (None,), (size,)) for axis, size in enumerate(shape))
        first, bounded = (
            count_marginals(replace(plan, marginals=axes, max_rows_per_unit=most), staged, key)
            for most in (seen, plan.max_rows_per_unit)
        )
        return first - bounded
    if plan.domain.amount is None:
        first = count_bounded(staged, plan.domain.cells, seen, key, plan.distinct)
    else:  # rows, not parts; the parts are a word of the order by which rows are kept
        first, _ = count_amounts(staged, plan.domain.of_rows.cells, seen, key)
    cells = (first - counts).reshape(shape)
    every = range(len(shape))
    return np.concatenate([cells.sum(axis=tuple(one for one in every if one != axis)) for axis in every])


def _failures(plan: CountingPlan, kept: Iterator[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Rows by place and failures by axis, from pairs of marks, shape (words, …), and numbers of rows."""
    axes = plan.domain.axes
    places, failures = np.zeros(3, dtype=np.int64), np.zeros((len(axes), 2), dtype=np.int64)
    for marks, rows in kept:
        place = np.zeros(rows.size, dtype=np.int64)
        for word, within in zip(marks, mark_words(len(axes)).values(), strict=True):
            for number in within:
                digit = word // MARKS ** (number - within[0]) % MARKS
                for failure in (UNPARSED, UNDECLARED):
                    failures[number, failure - 1] += rows[digit == failure].sum()
                # An amount beyond the ends is cut to the nearer one, and its row stays in its cells.
                counts_anyway = (digit == 0) | ((digit == UNDECLARED) & (number == plan.domain.amount))
                place = np.maximum(place, np.where(counts_anyway, 0, 2 if axes[number].other_cell is None else 1))
        np.add.at(places, place, rows)
    return places, failures


def save(observed: ObservedRows, folder: Path) -> None:
    """Leaves the numbers in a private folder, in `FILE`."""
    np.savez(folder / FILE, **vars(observed))


def load(folder: Path) -> ObservedRows:
    """The numbers that `save` left, and deletes their file."""
    with np.load(folder / FILE, allow_pickle=False) as arrays:
        observed = ObservedRows(**{name: arrays[name] for name in arrays.files})
    (folder / FILE).unlink()
    return observed

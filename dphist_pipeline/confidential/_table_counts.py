"""Counts several tables from the same kept rows, on a grid whose cells are never numbered.

A unit's kept rows are chosen once, as whole rows: a row is its positions along all axes, packed into as few 64-bit
words as hold them. So every table counts the same rows, and each of them moves by at most what the kept rows do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dphist_pipeline.confidential._bounding import Numbers, counted_rows, kept_words
from dphist_pipeline.confidential._row_words import names_of, words_of
from dphist_pipeline.confidential.plan import CountingPlan

CHUNK_ROWS = 1 << 20


def count_marginals(plan: CountingPlan, staged: Path, key: bytes) -> Numbers:
    """Kept rows by cell of every marginal of a plan, one marginal after the other; shape (cells of all,).

    Args:
        staged: Parquet with the words of each row, and `unit` unless each row is its own unit.
    """
    words = words_of(plan.domain)
    counts = [np.zeros(marginal.cells, dtype=np.int64) for marginal in plan.marginals]
    levels = [[None if one is None else np.array(one) for one in marginal.groups] for marginal in plan.marginals]
    for found, rows in _in_chunks(_row_words(plan, staged, names_of(words), key)):
        places = {
            axis: found[number] // stride % plan.domain.shape[axis]
            for number, word in enumerate(words)
            for axis, stride in word
        }
        for marginal, level, table in zip(plan.marginals, levels, counts, strict=True):
            cells = np.zeros(rows.size, dtype=np.int64)
            for axis, groups, size in zip(marginal.axes, level, marginal.shape, strict=True):
                cells = cells * size + (places[axis] if groups is None else groups[places[axis]])
            np.add.at(table, cells, rows)
    return np.concatenate(counts)


def _in_chunks(parts: Iterator[tuple[Numbers, Numbers]]) -> Iterator[tuple[Numbers, Numbers]]:
    """The same in smaller parts: a row's positions along all axes take more memory than its words."""
    for found, rows in parts:
        for start in range(0, rows.size, CHUNK_ROWS):
            yield found[:, start : start + CHUNK_ROWS], rows[start : start + CHUNK_ROWS]


def _row_words(plan: CountingPlan, staged: Path, names: list[str], key: bytes) -> Iterator[tuple[Numbers, Numbers]]:
    """Distinct kept rows as words, shape (words, rows), and how often each was kept; in several parts."""
    if plan.privacy_unit == "row":
        yield counted_rows(staged, names)
    else:
        yield from kept_words(staged, names, plan.max_rows_per_unit, key, plan.distinct)

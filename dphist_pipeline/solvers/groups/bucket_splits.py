"""The cheapest splits of a line into a given number of buckets, from the cost of every stretch as one bucket."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Numbers = NDArray[np.int64]

LARGEST_CEILING = 1_000_000
MOST_CELLS = 1 << 20  # sums of squares stay below 2^63
BLOCK = 1 << 19  # entries of a part of a table of stretches


def costs_of_last_starts(bucket_costs: Iterator[Numbers], buckets: int) -> Numbers:
    """The cost of the cheapest split into `buckets` buckets, for a last one that starts at cell buckets - 1, …, n - 1.

    If a step of one in one count changes the cost of every stretch that holds it by at most c, it changes each of these
    costs by at most c: in a fixed split one bucket holds the count, and a minimum changes by no more than its terms do.
    O(n² · buckets) time, O(n · buckets) memory beside a part of the table.

    Args:
        bucket_costs: the table [start, last] -> cost of the cells start … last as one bucket, shape (n, n), in parts of
            some rows, from the first row to the last. The cost of every split must be below 2^63.
        buckets: from 2 to n; none is empty.
    """
    cheapest, costs, first = np.empty((0, 0), dtype=np.int64), list[Numbers](), 0
    for rows in bucket_costs:
        if first == 0:
            cheapest = np.full((buckets - 1, rows.shape[1]), np.iinfo(np.int64).max)
            cheapest[0] = rows[0]
        for used in range(1, buckets - 1):
            _one_more_bucket(cheapest[used - 1], rows, max(used - first, 0), first, cheapest[used])
        starts = np.arange(max(first, buckets - 1), first + len(rows))
        costs.append(cheapest[-1, starts - 1] + rows[starts - first, -1])
        first += len(rows)
    return np.concatenate(costs)


@compile_function
def _one_more_bucket(cheapest: Numbers, rows: Numbers, skipped: int, first: int, more: Numbers) -> None:
    """Lowers `more`, the costs of the cheapest splits of the cells 0 … last, by splits with last buckets of these rows.

    `cheapest` holds the same for a bucket less; `first` is the start of the first row, and `skipped` rows start too
    early to leave a cell for every bucket before.
    """
    for row in range(skipped, len(rows)):
        start = first + row
        before = cheapest[start - 1]
        for last in range(start, more.size):
            more[last] = min(more[last], before + rows[row, last])


def squared_errors(counts: Numbers, ceiling: int) -> Iterator[Numbers]:
    """Squared errors around the mean, rounded up, for every stretch of cells.

    Counts are first clipped to 0 … `ceiling`, which brings two lines no further apart. Then a step of one in one count
    changes every entry by at most 2 · ceiling - 1. For a stretch of n counts of sum S, let one of them go from a to
    a + 1: its squared error changes by (2a + 1) - (2S + 1) / n. With a <= ceiling - 1 and S >= a this is at most
    (2a + 1)(1 - 1/n) <= 2 · ceiling - 1; with S <= a + (n - 1) · ceiling it is at least (2a + 1 - 2 · ceiling)(1 - 1/n)
    >= 1 - 2 · ceiling. This bound is a whole number, so it also holds for the rounded numbers. Sums of squares are
    whole, so rounding up takes the floor of S²/n: no float takes part. O(n²) time, and the memory of a part.

    Args:
        counts: shape (n,), n up to 2^20.
        ceiling: from 1 to 1,000,000.

    Yields:
        Parts of some rows, from the first row to the last, of a table of shape (n, n): entry [start, last] for the
        cells start … last; 0 where last < start.
    """
    if not 1 <= ceiling <= LARGEST_CEILING or counts.size > MOST_CELLS:
        raise ValueError(f"squares stay below 2^63 for a ceiling from 1 to {LARGEST_CEILING} and {MOST_CELLS} counts")
    line = np.clip(counts, 0, ceiling).astype(np.int64)
    for first, stop in parts_of_rows(line.size):
        rows = np.zeros((stop - first, line.size), dtype=np.int64)
        _squared_errors(line, first, rows)
        yield rows


def parts_of_rows(cells: int) -> Iterator[tuple[int, int]]:
    """Rows that a table of (n, n) numbers, n >= 1, is made and used in, so that it is never held as a whole."""
    step = max(1, BLOCK // cells)
    return ((first, min(first + step, cells)) for first in range(0, cells, step))


@compile_function
def _squared_errors(counts: Numbers, first: int, rows: Numbers) -> None:
    """Writes the rows of `squared_errors` from the start `first`, for clipped counts."""
    for row in range(len(rows)):
        total, squares = 0, 0
        for last in range(first + row, counts.size):
            total += counts[last]
            squares += counts[last] * counts[last]
            size = last - first - row + 1
            mean, rest = total // size, total % size
            rows[row, last] = squares - mean * (total + rest) - rest * rest // size  # total² // size, without total²

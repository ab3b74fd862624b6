"""Optimal splits of a line of cells into buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import at_once, compiled

LONG = 65_536  # cells that are worth a second thread; two at least
ROOM = 64  # pieces at first
LANES = 8  # pieces that are worked on at once
COLUMNS = 7  # numbers of a piece: its left end, and
RIGHT, BASE, CENTRE, SIZE, START, COST = (np.uint64(LANES * column) for column in range(1, COLUMNS))
BLOCK = np.uint64(LANES * COLUMNS)  # unsigned: places are not looked up from the end
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Borders = NDArray[np.int32]


def v_optimal(values: Reals, price_per_bucket: float) -> Numbers:
    """Finds the cheapest split of a line of cells into buckets.

    The cost of a bucket is its squared error around its mean plus `price_per_bucket`. Exact, over every number of
    buckets at once. Functional pruning (Maidstone, Hocking, Rigaill, Fearnhead 2017): a last cut is kept only for the
    bucket means at which it is still the best. Near-linear in practice, O(n) memory. Equal neighbours are never parted:
    the cost is concave in how many of them the left bucket holds, so least where it holds none or all. Of equally cheap
    splits, the one with the earliest last cuts, as far as rounding tells them apart. Long lines are split from both
    ends at once, by two threads that meet in the middle: from there on, the one with the latest first cuts.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        price_per_bucket: at least 0, in records squared.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    price = float(price_per_bucket)
    if values.size >= LONG and price > 0.0:
        return numbers_within(_from_both_ends(values, price))
    line = centred(values)
    runs, ends = _runs_in_place(line)
    if price == 0.0:
        return numbers_within(np.append(np.int32(0), ends))
    cuts, _ = cheapest_cuts(runs, ends, price)
    return numbers_within(_borders(cuts, ends, ends.size))


def _from_both_ends(values: Reals, price: float) -> Borders:
    """Where the buckets of `v_optimal` start, and where the last one ends.

    Both halves at once, the second one backwards, then the bucket that holds the middle, if any. Equal neighbours in
    the middle lie in one bucket, like any others, for that is cheaper.
    """
    middle, centre = values.size // 2, centre_of(values)

    def half(part: Reals) -> tuple[Borders, Borders, Reals]:
        runs, ends = _runs_in_place(np.subtract(part, centre, out=np.empty(part.size)))
        return ends, *cheapest_cuts(runs, ends, price)

    left, right = at_once(lambda: half(values[:middle]), lambda: half(values[: middle - 1 : -1]))
    starts = _shared_bucket(left[2], left[0].size, right[2], right[0].size, price)
    before, after = (_borders(cuts, ends, start) for (ends, cuts, _), start in zip((left, right), starts, strict=True))
    after = values.size - after[::-1]
    # Where no bucket holds the middle, the two meet there.
    return np.concatenate([before[: before.size - (before[-1] == after[0])], after], dtype=np.int32)


def bucket_means(values: Reals, buckets: Numbers) -> Reals:
    """The mean of each cell's bucket, shape (n,); any grouping of cells, numbered from 0."""
    sizes = np.bincount(buckets)
    # Centred first, so that a large common part does not eat the digits of the rest.
    centre = float(np.median(values))
    means: Reals = centre + np.bincount(buckets, weights=values - centre) / sizes
    return means[buckets]


def centred(values: Reals) -> Reals:
    """The values less one of them that lies amid the others, so that a large common part does not eat their digits."""
    away: Reals = np.ascontiguousarray(values, dtype=np.float64) - centre_of(values)
    return away


def centre_of(values: Reals) -> float:
    """One of the values that lies amid the others."""
    some = values[:: values.size // 1024 + 1]
    return float(np.partition(some, some.size // 2)[some.size // 2])


def runs_of(line: Reals) -> tuple[Reals, Reals, Borders]:
    """Equal neighbours as one: the value and length of each run, and the cell after it. Overwrites the line."""
    runs, ends = _runs_in_place(line)
    return runs, np.diff(ends, prepend=np.int32(0)).astype(np.float64), ends


def _runs_in_place(line: Reals) -> tuple[Reals, Borders]:
    # Large arrays are made by NumPy, not in compiled code: it asks the system for large pages.
    ends = np.empty(line.size, dtype=np.int32)
    runs = _write_runs(line, ends)
    return line[:runs], ends[:runs]


@compiled
def _write_runs(line, ends):  # type: ignore[no-untyped-def]
    """Moves the value of each run to the front and writes the cell after it; how many runs there are."""
    run, before = 0, line[0]
    for cell in range(line.size):
        # No branch to guess: what is written is overwritten until the run has ended.
        value = line[cell]
        run += value != before
        line[run], ends[run], before = value, cell + 1, value
    return run + 1


def numbered(first: NDArray[np.bool_], ends: Borders) -> Numbers:
    """Bucket number of each cell, given which runs are the first of theirs."""
    return numbers_within(np.append(np.int32(0), ends)[np.append(first, True)])


def numbers_within(borders: Borders) -> Numbers:
    """Bucket number of each cell, given where buckets start, from 0 on, and where the last one ends."""
    cells = int(borders[-1])
    buckets = np.empty(cells, dtype=np.int64)
    middle = cells // 2 if cells >= LONG else 0
    half = int(np.searchsorted(borders, middle))
    if half == 0:
        _number(borders[1:-1], buckets, 0, 0)
    else:
        at_once(
            lambda: _number(borders[1:half], buckets[:middle], 0, 0),
            lambda: _number(borders[half:-1], buckets[middle:], middle, half - 1),
        )
    return buckets


@compiled
def _number(borders, buckets, cell, bucket):  # type: ignore[no-untyped-def]
    """Writes the bucket numbers from a cell on, that lies in a bucket of which the next ones' borders are given."""
    for place in range(buckets.size):
        buckets[place] = 0
    for border in borders:
        buckets[border - cell] = 1
    for place in range(buckets.size):
        bucket += buckets[place]
        buckets[place] = bucket


@compiled
def _borders(cuts, ends, runs):  # type: ignore[no-untyped-def]
    """Where the buckets start in the cheapest split of so many runs, from 0 on, and where the last one ends."""
    buckets, run = 0, runs
    while run > 0:
        buckets, run = buckets + 1, cuts[run - 1]
    borders = np.zeros(buckets + 1, dtype=np.int32)
    run = runs
    for bucket in range(buckets, 0, -1):
        borders[bucket], run = ends[run - 1], cuts[run - 1]
    return borders


@compiled
def _shared_bucket(left_pieces, left_runs, right_pieces, right_runs, price):  # type: ignore[no-untyped-def]
    """How many runs of either half, counted from its far end, lie outside the bucket that holds the middle.

    It pays where, at some mean, its parts cost at most a bucket more than the cheapest splits of the halves. What a
    piece says beyond its ends is true as well, only not the cheapest there: so every pair is looked at as it is.
    """
    least, left_start, right_start = np.inf, 0, 0
    for p in range(left_pieces.shape[0]):
        for q in range(right_pieces.shape[0]):
            base, centre, size, start = left_pieces[p]
            other_base, other_centre, other_size, other_start = right_pieces[q]
            apart = other_centre - centre
            cost = base + other_base + apart * apart * (size * other_size / (size + other_size))
            if cost < least:
                least, left_start, right_start = cost, int(start), int(other_start)
    return (left_start, right_start) if least <= price else (left_runs, right_runs)


@compiled
def cheapest_cuts(values, ends, price):  # type: ignore[no-untyped-def]
    """Where the last bucket starts in the cheapest split up to each run, and the pieces that are left at the end.

    Of those, base, centre, size and start, a row each. Neighbours differ, and `price` is above 0.

    Pieces lie from left to right along the possible means of the last bucket. A piece says: for means in [left, right],
    the cheapest last bucket starts at `start`, and costs base + size · (mean - centre)². Sums of squares are kept
    around the bucket's own mean (Welford), and costs are told relative to the cheapest split up to the value before, so
    nothing cancels and nothing grows.

    Each step fills the holes with the bucket that starts at the value, cuts all pieces back to where they cost at most
    a bucket more than the cheapest, adds the value to come, and moves those of which something is left from one half of
    `pieces` to the other. Pieces are few, and what becomes of them cannot be foretold: so they are worked on by eights,
    without a branch to guess.

    Not every hole is filled. A value next to an optimal cut is nearer to its own bucket's mean than to the other's, or
    it would change sides: so a cut is one upwards or one downwards, as the two values beside it are, and a new bucket
    is of use on one side of the mean before only, further from it than the value before.
    """
    last = values.size - 1
    cuts = np.empty(values.size, dtype=np.int32)
    room, pieces = ROOM, np.ones(2 * ROOM * COLUMNS)
    # The first row of a half is left free for a hole on the left.
    here, there, count, holes = np.uint64(0), np.uint64(pieces.size // 2), 0, False
    value, weight = values[0], float(ends[0])
    best, start, mean = price, 0.0, value
    before, before_mean = value, value
    place = 0
    while place < last:
        # Pieces get more room outside this loop, or their holders would be counted at every step.
        while place < last and 2 * count + 4 <= room:
            cuts[place] = int(start)
            to_come, weight_to_come = values[place + 1], float(ends[place + 1] - ends[place])
            reach = np.sqrt(np.divide(best, weight))  # of a bucket that starts with the value: it costs `price` at best
            low, high = 0.0, -1.0
            if before < value and before_mean < value:
                low, high = max(value - reach, 2.0 * before - before_mean), value + reach
            elif before > value and before_mean > value:
                low, high = value - reach, min(value + reach, 2.0 * before - before_mean)
            before, before_mean = value, mean
            first, end = 1, 1 + count
            if low < high and count > 0:
                if holes:
                    end = _filled(pieces, here, end, low, high, price, value, weight, place)
                left, right = pieces[_at(here, 1)], pieces[_at(here, end - 1) + RIGHT]
                if low < left:
                    first = 0
                    _put(pieces, _at(here, 0), low, min(high, left), price, value, weight, place)
                if right < high:
                    _put(pieces, _at(here, end), max(low, right), high, price, value, weight, place)
                    end += 1
            kept, next_best = 0, price
            while kept == 0:
                if first == end:  # the first value, or one where rounding left nothing
                    beyond = np.nextafter(value + reach, np.inf)
                    _put(pieces, _at(here, first), value - reach, beyond, price, value, weight, place)
                    end += 1
                for block in range((end - 1) // LANES + 1):
                    _add(pieces, here + np.uint64(block) * BLOCK, price + best, best, to_come, weight_to_come)
                next_best, kept, holes = _kept(pieces, here, first, end, there, price)
                end = end if kept > 0 else first
            # One bucket more, of the value to come alone, or the earliest start of equally cheap ones.
            start, mean = place + 1.0, to_come
            for row in range(first, end):
                at = _at(here, row)
                earlier = (pieces[at + COST] == next_best) & (pieces[at + START] < start)
                start = pieces[at + START] if earlier else start
                mean = min(max(pieces[at + CENTRE], pieces[at]), pieces[at + RIGHT]) if earlier else mean
            here, there, count = there, here, kept
            best, value, weight = next_best, to_come, weight_to_come
            place += 1
        if place < last:
            pieces, here, there, room = _grown(pieces, here), np.uint64(0), np.uint64(pieces.size), 2 * room
    cuts[last] = int(start)
    # With the bucket of the last value alone, and with costs beside that of the cheapest split.
    _put(pieces, _at(here, count + 1), value, value, price, value, weight, last)
    left_over = np.empty((count + 1, 4))
    for row in range(count + 1):
        at = _at(here, row + 1)
        left_over[row, 0], left_over[row, 1] = pieces[at + BASE] - best, pieces[at + CENTRE]
        left_over[row, 2], left_over[row, 3] = pieces[at + SIZE], pieces[at + START]
    return cuts, left_over


@compiled
def _add(pieces, block, ceiling, best, to_come, weight):  # type: ignore[no-untyped-def]
    """Cuts the pieces of a block back to the ceiling, adds a value to them, and writes what each costs then at best.

    That is infinite where all of a piece lies above the ceiling.
    """
    for lane in range(np.uint64(LANES)):
        at = block + lane
        left, right, base = pieces[at], pieces[at + RIGHT], pieces[at + BASE]
        centre, size = pieces[at + CENTRE], pieces[at + SIZE]
        slack, off_left, off_right = ceiling - base, centre - left, right - centre
        beyond_left, beyond_right = size * off_left * off_left > slack, size * off_right * off_right > slack
        above = (slack < 0.0) | (beyond_left & (off_left < 0.0)) | (beyond_right & (off_right < 0.0))
        far = np.sqrt(np.divide(max(slack, 0.0), size))
        left = centre - far if beyond_left else left
        right = centre + far if beyond_right else right
        size += weight
        step = to_come - centre
        centre += step * np.divide(weight, size)
        base += weight * step * (to_come - centre) - best
        off = min(max(centre, left), right) - centre
        pieces[at], pieces[at + RIGHT], pieces[at + BASE] = left, right, base
        pieces[at + CENTRE], pieces[at + SIZE] = centre, size
        pieces[at + COST] = np.inf if above else base + size * off * off


@compiled
def _kept(pieces, here, first, end, there, price):  # type: ignore[no-untyped-def]
    """Moves pieces of finite cost to the other half; the least cost, or `price`, how many, if holes part them."""
    kept, best, holes, edge = 0, price, False, np.inf
    for row in range(first, end):
        # What does not stay is overwritten by the next one.
        at, to = _at(here, row), _at(there, 1 + kept)
        _copy(pieces, at, to)
        left, right, cost = pieces[at], pieces[at + RIGHT], pieces[at + COST]
        stays = cost < np.inf
        kept += stays
        best = min(cost, best)
        holes |= (left > edge) & stays
        edge = right if stays else edge
    return best, kept, holes


@compiled
def _filled(pieces, here, end, low, high, base, centre, size, start):  # type: ignore[no-untyped-def]
    """Fills the holes between pieces from `low` to `high`; the row after the last one then."""
    for row in range(end - 1, 1, -1):
        left, right = max(low, pieces[_at(here, row - 1) + RIGHT]), min(high, pieces[_at(here, row)])
        if left < right:
            for moved in range(end, row, -1):
                _copy(pieces, _at(here, moved - 1), _at(here, moved))
            end += 1
            _put(pieces, _at(here, row), left, right, base, centre, size, start)
    return end


@compiled
def _at(half, row):  # type: ignore[no-untyped-def]
    """Where the left end of a piece stands; the other numbers stand so many lanes further on."""
    return half + np.uint64(row // LANES) * BLOCK + np.uint64(row % LANES)


@compiled
def _put(pieces, at, left, right, base, centre, size, start):  # type: ignore[no-untyped-def]
    pieces[at], pieces[at + RIGHT], pieces[at + BASE] = left, right, base
    pieces[at + CENTRE], pieces[at + SIZE], pieces[at + START] = centre, size, float(start)


@compiled
def _copy(pieces, at, to):  # type: ignore[no-untyped-def]
    pieces[to], pieces[to + RIGHT], pieces[to + BASE] = pieces[at], pieces[at + RIGHT], pieces[at + BASE]
    pieces[to + CENTRE], pieces[to + SIZE], pieces[to + START] = (
        pieces[at + CENTRE],
        pieces[at + SIZE],
        pieces[at + START],
    )


@compiled
def _grown(pieces, here):  # type: ignore[no-untyped-def]
    """Twice the room, with the half that is in use in front."""
    larger, half = np.ones(2 * pieces.size), pieces.size // 2
    larger[:half] = pieces[here : here + np.uint64(half)]
    return larger

"""Messages along a tree whose nodes are halved: what the counts below a node say of it, and what the rest says.

A count stands in steps of a grid (a step is some records where the noise is wide). Of each node a window of counts is
looked at: from `lows`, one entry a count, `starts` says where its entries begin in one array for all nodes of a level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Reals = NDArray[np.float64]
Singles = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A level holds: the first counts of windows in steps, where their entries start, noisy counts, the spread of each
# one's noise in records (empty: not measured), and whether that is normal, not discrete Laplace.
Nodes = tuple[Numbers, Numbers, Reals, Reals, bool]

TABLED = 400  # steps; counts up to it have exact laws in a table, larger ones the law of a count near by
NEGLIGIBLE = 1e-9  # of the largest entry of a message
# Laws of how a count N is split: nearly even, with a spread of the even part's share besides the binomial one; then all
# splits alike; the arcsine law; and all of it on one side.
SPREADS = np.array([0.0, 0.03, 0.08, 0.2])
LAWS = SPREADS.size + 3
# Rounding to steps blurs a binomial split of few.
BLUR = 0.08
LARGEST_OF_A_CLASS = np.array([1, 3, 8, 24, 96, 400], dtype=np.int64)  # steps; weights are learned class by class
CLASSES = LARGEST_OF_A_CLASS.size + 1


@compile_function
def size_class(count: int) -> int:
    """The class of a count in steps."""
    number = 0
    while number < LARGEST_OF_A_CLASS.size and count > LARGEST_OF_A_CLASS[number]:
        number += 1
    return number


@compile_function
def law_tables(step: float) -> Reals:
    """The probability by each law that the left part of N steps is l steps, shape (laws, N, l); a row sums to 1."""
    tables = np.zeros((LAWS, TABLED + 1, TABLED + 1))
    tables[:, 0, 0] = 1.0
    for count in range(1, TABLED + 1):
        for law in range(LAWS):
            total = 0.0
            for left in range(count + 1):
                if law < LAWS - 1:
                    tables[law, count, left] = _density(law, count, 2.0 * left - count, step)
                else:
                    tables[law, count, left] = 1.0 if left in (0, count) else 0.0
                total += tables[law, count, left]
            for left in range(count + 1):
                tables[law, count, left] /= total
    return tables


@compile_function
def mixed_table(tables: Reals, weights: Reals) -> Reals:
    """The laws mixed by the weights of each count's class, shape (N, l).

    Args:
        tables: see `law_tables`.
        weights: shape (classes, laws); a row sums to 1.
    """
    mixed = np.zeros((TABLED + 1, TABLED + 1))
    for count in range(TABLED + 1):
        row = size_class(count)
        for law in range(LAWS):
            for left in range(count + 1):
                mixed[count, left] += weights[row, law] * tables[law, count, left]
    return mixed


@compile_function
def _density(law: int, count: int, difference: float, step: float) -> float:
    """About the probability of a difference of the two parts, in steps, by a law without atoms."""
    if law < SPREADS.size:
        variance = count / (4.0 * step) + (SPREADS[law] * count) ** 2 + BLUR
        exponent = difference * difference / (8.0 * variance)
        return math.exp(-exponent) / math.sqrt(2.0 * math.pi * variance) if exponent < 60.0 else 0.0
    if law == SPREADS.size:
        return 1.0 / (count + 1.0)
    left, right = max(0.0, (count + difference) / 2.0), max(0.0, (count - difference) / 2.0)
    return 1.0 / (math.pi * math.sqrt((left + 0.5) * (right + 0.5)))


@compile_function
def _differences(count: int, first: int, weights: Reals, step: float, line: Reals) -> None:
    """Writes the mixed law of a large count for the differences first, first + 1, …, without the atoms."""
    row = size_class(count)
    for place in range(line.size):
        line[place] = 0.0
        for law in range(LAWS - 1):
            line[place] += weights[row, law] * _density(law, count, float(first + place), step)


@compile_function
def _own_evidence(node: int, nodes: Nodes, step: float, out: Reals) -> None:
    """Writes the likelihood of a node's noisy count at each count of its window, 1 at its largest; 1 without one."""
    lows, _, values, spreads, normal = nodes
    if values.size == 0:
        out[:] = 1.0
        return
    spread, least = spreads[node], math.inf
    for place in range(out.size):
        far = abs(values[node] - (lows[node] + place) * step) / spread
        out[place] = 0.5 * far * far if normal else far
        least = min(least, out[place])
    for place in range(out.size):
        out[place] = math.exp(least - out[place])


@compile_function
def _message(node: int, nodes: Nodes, step: float, stored: Singles, out: Reals) -> int:
    """Writes what a node and all below it say of its count; returns the size of its window.

    Args:
        stored: messages of the level; empty for the last level, which has nothing below.
        out: at least as long as the window.
    """
    starts = nodes[1]
    size = starts[node + 1] - starts[node]
    if stored.size:
        for place in range(size):
            out[place] = stored[starts[node] + place]
    else:
        _own_evidence(node, nodes, step, out[:size])
    return int(size)


@compile_function
def _ends(message: Reals) -> tuple[int, int]:
    """The first entry that is not negligible, and the one after the last."""
    least = NEGLIGIBLE * message.max()
    first, end = 0, message.size
    while first < end and message[first] <= least:
        first += 1
    while end > first and message[end - 1] <= least:
        end -= 1
    return first, end


@compile_function
def upwards(
    parents: Nodes,
    children: Nodes,
    halves: tuple[Numbers, Numbers],
    law: tuple[Reals, Reals, float],
    below: Singles,
    above: Singles,
    peaks: Reals,
) -> None:
    """Writes the messages of a level from those of the level below.

    Args:
        parents, children: of the level, and of the level below.
        halves: the left and the right child of each parent; the right one is -1 where there is none.
        law: the table of mixed laws, the weights, records a step.
        below: messages of the children; empty where they are cells.
        above: is filled; the largest entry of a node is 1.
        peaks: is filled: what each node's message was divided by; 0 where no count fits, and the node's own evidence
            stands in `above`.
    """
    lows, starts = parents[0], parents[1]
    table, weights, step = law
    widest = int(np.diff(children[1]).max())
    left, right, line = np.empty(widest), np.empty(widest), np.empty(2 * widest)
    evidence = np.empty(int(np.diff(starts).max()))
    for node in range(lows.size):
        size, low = int(starts[node + 1] - starts[node]), int(lows[node])
        own, out = evidence[:size], above[starts[node] : starts[node + 1]]
        _own_evidence(node, parents, step, own)
        one, two = halves[0][node], halves[1][node]
        many = _message(one, children, step, below, left)
        low_one = int(children[0][one])
        if two < 0:
            for place in range(size):
                at = low + place - low_one
                own[place] *= left[at] if 0 <= at < many else 0.0
        else:
            low_two = int(children[0][two])
            a0, a1 = _ends(left[:many])
            b0, b1 = _ends(right[: _message(two, children, step, below, right)])
            last = low + size - 1
            typical = max(low + size // 2, TABLED + 1)
            if last > TABLED:
                _differences(typical, low_one + a0 - low_two - b1 + 1, weights, step, line[: a1 - a0 + b1 - b0 - 1])
            atom = 0.5 * weights[size_class(typical), LAWS - 1]
            for place in range(size):
                count, total = low + place, 0.0
                first, end = max(low_one + a0, count - low_two - b1 + 1), min(low_one + a1, count - low_two - b0 + 1)
                if count <= TABLED:
                    row = table[count]
                    for part in range(first, end):
                        total += row[part] * left[part - low_one] * right[count - part - low_two]
                else:
                    for part in range(first, end):
                        i, j = part - low_one, count - part - low_two
                        total += line[i - a0 - j + b1 - 1] * left[i] * right[j]
                    if first == 0 and end > 0:
                        total += atom * left[-low_one] * right[count - low_two]
                    if end == count + 1 and end > first:
                        total += atom * left[count - low_one] * right[-low_two]
                own[place] *= total
        most = own.max()
        peaks[node] = most
        if most <= 0.0:
            _own_evidence(node, parents, step, own)
            most = 1.0
        for place in range(size):
            out[place] = own[place] / most


@compile_function
def downwards(
    parents: Nodes,
    children: Nodes,
    halves: tuple[Numbers, Numbers],
    law: tuple[Reals, Reals, float],
    below: Singles,
    above: tuple[Singles, Singles, Reals],
    results: tuple[Singles, Reals, Reals, Reals],
    learns: bool,
) -> None:
    """Writes what the rest of the tree says of each child; of cells, their mean counts.

    Args:
        parents, children, halves, law, below: see `upwards`.
        above: messages of the parents from below, from the rest of the tree, and `peaks`.
        results: what the rest says of each child (empty where they are cells); means and variances of cells in steps,
            shape (cells, 2), NaN where no count fits (empty elsewhere); expected pairs of a count and its left part
            over their probability, shape (N, l), added to; expected uses of the laws by large counts, shape (classes,
            laws), added to.
        learns: whether the last two are wanted.
    """
    lows, starts = parents[0], parents[1]
    table, weights, step = law
    from_below, from_rest, peaks = above
    rest, means, pairs, uses = results
    widest = int(np.diff(children[1]).max())
    left, right, line, used = np.empty(widest), np.empty(widest), np.empty(2 * widest), np.empty(2 * widest)
    to_left, to_right = np.empty(widest), np.empty(widest)
    evidence = np.empty(int(np.diff(starts).max()))
    for node in range(lows.size):
        size, low = int(starts[node + 1] - starts[node]), int(lows[node])
        known = from_rest[starts[node] : starts[node + 1]]
        one, two = halves[0][node], halves[1][node]
        many = _message(one, children, step, below, left)
        other = _message(two, children, step, below, right) if two >= 0 else 0
        to_left[:many], to_right[:other] = 0.0, 0.0
        total = 0.0
        for place in range(size):
            total += known[place] * from_below[starts[node] + place]
        low_one, low_two = int(children[0][one]), int(children[0][two]) if two >= 0 else 0
        if peaks[node] <= 0.0 or total <= 0.0:
            to_left[:many], to_right[:other] = 1.0, 1.0
        else:
            own = evidence[:size]
            _own_evidence(node, parents, step, own)
            share = 1.0 / (total * peaks[node])
            for place in range(size):
                own[place] *= known[place] * share
            if two < 0:
                for place in range(size):
                    at = low + place - low_one
                    if 0 <= at < many:
                        to_left[at] = own[place]
            else:
                a0, a1 = _ends(left[:many])
                b0, b1 = _ends(right[:other])
                typical = max(low + size // 2, TABLED + 1)
                large = line[: a1 - a0 + b1 - b0 - 1]
                from_first = low_one + a0 - low_two - b1 + 1
                if low + size - 1 > TABLED:
                    _differences(typical, from_first, weights, step, large)
                used[: large.size] = 0.0
                group = size_class(typical)
                atom = 0.5 * weights[group, LAWS - 1]
                for place in range(size):
                    if own[place] <= 0.0:
                        continue
                    count, weight = low + place, own[place]
                    first = max(low_one + a0, count - low_two - b1 + 1)
                    end = min(low_one + a1, count - low_two - b0 + 1)
                    if count <= TABLED:
                        row = table[count]
                        for part in range(first, end):
                            i, j = part - low_one, count - part - low_two
                            to_left[i] += weight * row[part] * right[j]
                            to_right[j] += weight * row[part] * left[i]
                        if learns:
                            for part in range(first, end):
                                pairs[count, part] += weight * left[part - low_one] * right[count - part - low_two]
                        continue
                    for part in range(first, end):
                        i, j = part - low_one, count - part - low_two
                        chance = weight * large[i - a0 - j + b1 - 1]
                        to_left[i] += chance * right[j]
                        to_right[j] += chance * left[i]
                    if learns:
                        for part in range(first, end):
                            i, j = part - low_one, count - part - low_two
                            used[i - a0 - j + b1 - 1] += weight * left[i] * right[j]
                    for at_left in range(2):
                        part = 0 if at_left == 0 else count
                        if first <= part < end:
                            i, j = part - low_one, count - part - low_two
                            to_left[i] += weight * atom * right[j]
                            to_right[j] += weight * atom * left[i]
                            uses[group, LAWS - 1] += weight * atom * left[i] * right[j]
                if learns and low + size - 1 > TABLED:
                    for place in range(large.size):
                        if used[place] > 0.0:
                            for kind in range(LAWS - 1):
                                density = _density(kind, typical, float(from_first + place), step)
                                uses[group, kind] += used[place] * weights[group, kind] * density
        for side in range(2 if two >= 0 else 1):
            child, message, own_message = (one, to_left, left) if side == 0 else (two, to_right, right)
            begin, end = int(children[1][child]), int(children[1][child + 1])
            if rest.size:
                most = max(message[: end - begin].max(), 1e-300)
                for place in range(end - begin):
                    rest[begin + place] = message[place] / most
            else:
                mass, moment = 0.0, 0.0
                for place in range(end - begin):
                    mass += message[place] * own_message[place]
                    moment += message[place] * own_message[place] * (children[0][child] + place)
                mean = moment / mass if mass > 0.0 else math.nan
                square = 0.0
                for place in range(end - begin):
                    away = children[0][child] + place - mean
                    square += message[place] * own_message[place] * away * away
                means[child, 0], means[child, 1] = mean, square / mass if mass > 0.0 else math.nan

"""NOT PRIVATE. Algorithms as their papers print them, where that breaks the privacy which the papers declare.

They live here alone, to measure what a paper's figures owe to the break. No spec names them, the package does not ship
or import them, and their noise is NumPy's ordinary generator. The sound forms are mechanisms of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from dphist_pipeline.solvers.groups.closest_neighbours import closest_neighbours
from dphist_pipeline.solvers.groups.relative_groups import relative_groups
from dphist_pipeline.solvers.groups.segmentation import bucket_means
from dphist_pipeline.solvers.groups.value_groups import groups_by_value


@dataclass(frozen=True)
class Printed:
    """What a printed algorithm publishes, and what it really costs.

    Attributes:
        values: one per cell.
        groups: group number of every cell, where there are groups.
        spent: the epsilon that its draws add up to; infinite where no finite one covers it.
    """

    values: np.ndarray
    groups: np.ndarray | None
    spent: float


def sreb_gca(exact: np.ndarray, epsilon: float, random: np.random.Generator, least: float = -np.inf) -> Printed:
    """Chen et al. 2024, algorithm 1, an even split: each bin of a group C has a draw of Lap(λ₂)/|C| of its own.

    The mean of a group is published |C| times with noise of scale λ₂/|C|, which costs |C|·ε₂; averaged over the group,
    next to nothing is left of the noise.

    Args:
        exact: exact counts, one axis.
        epsilon: as declared.
        random: ordinary noise.
        least: noisy counts below count as this when they are grouped. The paper's equations hold for counts of at
            least 1 and do not say what becomes of others.
    """
    scale = 2 / epsilon
    noisy = np.maximum(exact + random.laplace(0, scale, exact.size), least)
    groups = groups_by_value(noisy, lambda line: relative_groups(line, scale))
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=exact) / sizes
    values = means[groups] + random.laplace(0, scale, exact.size) / sizes[groups]
    return Printed(values, groups, epsilon / 2 * (1 + float(sizes.max())))


@numba.njit
def relative_by_loops(line: np.ndarray, scale: float, ahead: bool) -> np.ndarray:
    """Where groups start, 1 or 0 for each value: GGS or, with `ahead`, GP of Chen et al. 2024, every sum taken anew.

    Args:
        line: rising, counts below 1 taken as 1 in a denominator.
        scale: λ, of the noise of a group's sum.
        ahead: GP, which seeks the least error of each value in a group with values after it (equation 28).
    """
    n, start, before = line.size, 0, 0.0
    starts = np.zeros(n, dtype=np.int64)
    for place in range(n):
        size = place - start + 1
        mean, joined = line[start : place + 1].mean(), 0.0
        for one in range(start, place + 1):
            joined += (abs(line[one] - mean) + scale / size) / max(line[one], 1.0)
        alone = scale / (n - place)
        if ahead and place + 1 < n:
            total, alone = line[place], np.inf
            for end in range(place + 1, n):
                total += line[end]
                alone = min(alone, total / (end - place + 1) - line[place] + scale / (end - place + 1))
        if place == 0 or joined >= before + alone / max(line[place], 1.0):
            start, starts[place] = place, 1
            joined = scale / max(line[place], 1.0)
        before = joined
    return starts


def dphr(
    exact: np.ndarray,
    epsilon: float,
    random: np.random.Generator,
    cluster: Callable[[np.ndarray, float], np.ndarray] | None = None,
) -> Printed:
    """Tao et al. 2023, algorithms 1 to 3: a walk over exact counts, grouped by exact counts, a draw a group.

    Each of the n selections of the walk spends all of ε₁; the candidates of a selection are read from exact counts, and
    so are the groups. No finite epsilon covers that.

    Args:
        exact: exact counts, one axis.
        epsilon: as declared.
        random: ordinary noise.
        cluster: the groups of a line at a price, `cheapest_groups` unless given.
    """
    first = second = epsilon / 2
    order = approximate_sort(exact, first, random)
    groups = np.empty(exact.size, dtype=np.int64)
    groups[order] = (cluster or cheapest_groups)(exact[order].astype(float), 2 / second**2)
    sizes = np.bincount(groups)
    noisy = np.bincount(groups, weights=exact) / sizes + random.laplace(0, 1 / second, sizes.size) / sizes
    return Printed(noisy[groups], groups, float("inf"))


def dphr_example(exact: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """As the example behind table 3 of Tao et al. 2023: sorted by exact counts, and Lap(1/2) for every bin.

    At ε = 1 the algorithm's own noise is Lap(2) divided by the size of the group; the example draws with a quarter of
    that scale.
    """
    order = np.argsort(exact, kind="stable")
    groups = np.empty(exact.size, dtype=np.int64)
    groups[order] = cheapest_groups(exact[order].astype(float), 2.0)
    means = np.bincount(groups, weights=exact) / np.bincount(groups)
    return means[groups] + random.laplace(0, 0.5, exact.size)


def sreb_gca_at_least_one(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> Printed:
    """The same where every count that is grouped is at least 1, which makes one large group of the small ones."""
    return sreb_gca(exact, epsilon, random, least=1.0)


def cnfg(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> Printed:
    """Sun et al., algorithm 1: noise of scale 1/ε, although a substituted record moves two counts."""
    noisy = exact + random.laplace(0, 1 / epsilon, exact.size)
    buckets = closest_neighbours(noisy, 2 / epsilon**2)
    return Printed(bucket_means(noisy, buckets), buckets, 2 * epsilon)


def noise_first(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> Printed:
    """Xu et al. 2012 as the CNFG paper runs it: noise of scale 1/ε, then the least Q of equation (7), in O(m³)."""
    noisy = exact + random.laplace(0, 1 / epsilon, exact.size)
    buckets = buckets_by_loops(noisy, 4 / epsilon**2)
    return Printed(bucket_means(noisy, buckets), buckets, 2 * epsilon)


@numba.njit
def buckets_by_loops(line: np.ndarray, price: float) -> np.ndarray:
    """The buckets of least SSE + price·k by a table over numbers of buckets k, ends and starts: O(m³), O(m²) memory."""
    m = line.size
    sums, squares = np.zeros(m + 1), np.zeros(m + 1)
    for place in range(m):
        sums[place + 1] = sums[place] + line[place]
        squares[place + 1] = squares[place] + line[place] ** 2
    before, row, cut = np.empty(m + 1), np.empty(m + 1), np.zeros((m + 1, m + 1), dtype=np.int32)
    before[0] = 0.0
    for end in range(1, m + 1):
        before[end] = squares[end] - sums[end] ** 2 / end
    best, least = 1, before[m] + price
    for k in range(2, m + 1):
        for end in range(k, m + 1):
            found, chosen = np.inf, k - 1
            for start in range(k - 1, end):
                inside = sums[end] - sums[start]
                cost = before[start] + squares[end] - squares[start] - inside * inside / (end - start)
                if cost < found:
                    found, chosen = cost, start
            row[end], cut[k, end] = found, chosen
        before, row = row, before
        if before[m] + price * k < least:
            best, least = k, before[m] + price * k
    buckets, end = np.zeros(m, dtype=np.int64), m
    for k in range(best, 0, -1):
        start = cut[k, end]
        buckets[start:end] = k - 1
        end = start
    return buckets


def laplace(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> Printed:
    """Dwork's mechanism as the CNFG paper runs it: noise of scale 1/ε, half of what substitution needs."""
    return Printed(exact + random.laplace(0, 1 / epsilon, exact.size), None, 2 * epsilon)


def approximate_sort(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> np.ndarray:
    """Tao et al. 2023, algorithm 2: from each bin to one with a near count and a near place, drawn exponentially.

    Candidates lie within the distances of the counts that are left, summed and divided by n as in the paper's example;
    where that leaves none, which the paper does not provide for, the nearest count is taken. O(n²).

    Returns:
        Cell numbers in the order of the walk, shape (n,).
    """
    left, counts = np.arange(1, exact.size), exact[1:].astype(float)
    order = np.zeros(exact.size, dtype=np.int64)
    here, count = 0, float(exact[0])
    for step in range(1, exact.size):
        apart = np.abs(counts - count)
        near = np.flatnonzero(apart <= apart.sum() / exact.size)
        if near.size == 0:
            near = np.array([int(np.argmin(apart))])
        score = -(apart[near] + np.abs(left[near] - here))
        chosen = int(near[np.argmax(epsilon * score / 2 + random.gumbel(size=near.size))])
        here, count = int(left[chosen]), float(counts[chosen])
        order[step] = here
        left[chosen], counts[chosen] = left[-1], counts[-1]
        left, counts = left[:-1], counts[:-1]
    return order


def cheapest_groups(line: np.ndarray, price: float) -> np.ndarray:
    """Tao et al. 2023, algorithm 3, for every number of groups at once: least sum of SSE + price/size. O(n²).

    The line need not be sorted, so the fast solver of the package does not serve.
    """
    n = line.size
    sums, squares = (np.concatenate(([0.0], np.cumsum(part))) for part in (line, line**2))
    best, start = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):
        size = np.arange(end, 0, -1)
        inside = sums[end] - sums[:end]
        cost = best[:end] + squares[end] - squares[:end] - inside**2 / size + price / size
        start[end] = int(np.argmin(cost))
        best[end] = cost[start[end]]
    first, end = np.zeros(n, dtype=np.int64), n
    while end > 0:
        end = int(start[end])
        first[end] = 1
    return np.cumsum(first) - 1


def cheapest_groups_by_loops(line: np.ndarray, price: float) -> np.ndarray:
    """Tao et al. 2023, algorithm 3, as it is printed: loops over numbers of groups, over ends and over starts. O(n³).

    The same groups as those of `cheapest_groups`, or others as cheap.
    """
    n, counts = line.size, line.tolist()
    sums, squares = [0.0], [0.0]
    for count in counts:
        sums.append(sums[-1] + count)
        squares.append(squares[-1] + count * count)

    def cost(start: int, end: int) -> float:
        size, inside = end - start, sums[end] - sums[start]
        return squares[end] - squares[start] - inside * inside / size + price / size

    table = [[0.0] + [cost(0, end) for end in range(1, n + 1)]]
    cut = [[0] * (n + 1)]
    for k in range(2, n + 1):
        before, row, starts = table[-1], [float("inf")] * (n + 1), [0] * (n + 1)
        for end in range(k, n + 1):
            for start in range(k - 1, end):
                if (found := before[start] + cost(start, end)) < row[end]:
                    row[end], starts[end] = found, start
        table.append(row)
        cut.append(starts)
    best, end = min(range(n), key=lambda k: table[k][n]), n
    first = np.zeros(n, dtype=np.int64)
    for k in range(best, 0, -1):
        end = cut[k][end]
        first[end] = 1
    return np.cumsum(first)


def dphr_by_loops(exact: np.ndarray, epsilon: float, random: np.random.Generator) -> Printed:
    """`dphr` with the loops of algorithm 3 as they are printed, to be timed."""
    return dphr(exact, epsilon, random, cheapest_groups_by_loops)

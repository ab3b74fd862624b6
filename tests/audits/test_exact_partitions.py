"""What the choice of buckets loses, computed exactly: never more than its share, all of it at worst, more with a fault.

Scale 2 is that of Δ = 1 and ε = 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from black_box import pooled
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential._queries import Buckets
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from examples import mostly_audited

Reals = NDArray[np.float64]
Split = tuple[int, ...]  # the sizes of its buckets
LEFT = 1e-16


@dataclass(frozen=True)
class Spread:
    """Probabilities of whole numbers from `low` on."""

    low: int
    parts: Reals

    def moved(self, by: int) -> Spread:
        return Spread(self.low + by, self.parts)

    def plus(self, other: Spread) -> Spread:
        """The law of the sum of independent numbers."""
        return Spread(self.low + other.low, np.convolve(self.parts, other.parts))

    def above(self, values: NDArray[np.int64]) -> Reals:
        """The probability of more than each value."""
        tails = np.append(np.cumsum(self.parts[::-1])[::-1], 0.0)
        return tails[np.clip(values + 1 - self.low, 0, self.parts.size)]

    @property
    def values(self) -> NDArray[np.int64]:
        return self.low + np.arange(self.parts.size)


Noise = Callable[[int, int], Spread]  # of a bucket, from its size and its exact cost: its noisy cost


def one_sided(scale: float) -> Noise:
    """What the measurement does: every bucket's cost minus geometric noise."""
    many = math.ceil(-scale * math.log(LEFT))
    parts = np.exp(-np.arange(many) / scale) * -math.expm1(-1 / scale)
    return lambda size, cost: Spread(cost - many + 1, parts[::-1])


def two_sided(scale: float) -> Noise:
    """Discrete Laplace noise on every bucket's cost."""
    many = math.ceil(-scale * math.log(LEFT))
    parts = np.exp(-np.abs(np.arange(-many, many + 1)) / scale)
    return lambda size, cost: Spread(cost - many, parts / parts.sum())


def bare_cells(noise: Noise) -> Noise:
    """No noise on buckets of one cell."""
    return lambda size, cost: Spread(cost, np.ones(1)) if size == 1 else noise(size, cost)


def cut_at_zero(noise: Noise) -> Noise:
    """Noisy costs below 0 count as 0."""

    def cut(size: int, cost: int) -> Spread:
        made = noise(size, cost)
        below = max(0, -made.low)
        if below == 0:
            return made
        kept = made.parts[below:] if below < made.parts.size else np.zeros(1)
        parts = kept.copy()
        parts[0] += made.parts[:below].sum()
        return Spread(0, parts)

    return cut


def splits(counts: list[int], savings: tuple[int, ...], noise: Noise) -> dict[Split, float]:
    """The probability of every split of a line of counts."""
    cells = len(counts)
    question = Buckets(np.arange(cells), savings, cells)
    free = Buckets(np.arange(cells), (0,) * len(savings), cells)
    exact, plain = (one.costs(np.array(counts, dtype=np.int64)) for one in (question, free))
    nodes = [{(1,): noise(1, 0).moved(int(exact[0][cell]))} for cell in range(cells)]
    for costs, unpriced in zip(exact[1:], plain[1:], strict=True):
        pairs = [
            _joined(*nodes[2 * at : 2 * at + 2], int(costs[at]), int(unpriced[at]), noise) for at in range(costs.size)
        ]
        nodes = pairs + nodes[2 * costs.size :]
    return {split: float(found.parts.sum()) for split, found in nodes[0].items()}


def _joined(
    left: dict[Split, Spread], right: dict[Split, Spread], cost: int, unpriced: int, noise: Noise
) -> dict[Split, Spread]:
    """The splits of a node from those of its parts; `cost` has its price, which comes after the noise."""
    size = sum(next(iter(left))) + sum(next(iter(right)))
    whole = noise(size, unpriced).moved(cost - unpriced)
    found = {}
    at_least = np.zeros(whole.parts.size)
    for (first, one), (second, other) in product(left.items(), right.items()):
        both = one.plus(other)
        at_least += both.above(whole.values - 1)
        found[first + second] = Spread(both.low, both.parts * whole.above(both.values))
    found[(size,)] = Spread(whole.low, whole.parts * at_least)
    return found


def loss(here: dict[Split, float], there: dict[Split, float], least: float = 1e-10) -> float:
    """The largest logarithm by which the probability of a split differs, of those that are not too rare to tell."""
    return max(abs(math.log(here[split] / there[split])) for split in here if min(here[split], there[split]) > least)


def worst(
    lines: Iterator[tuple[list[int], list[int]]], savings: tuple[int, ...], noise: Noise
) -> tuple[float, list[int], list[int]]:
    """The largest loss of neighbouring lines, and these."""
    known: dict[tuple[int, ...], dict[Split, float]] = {}
    found = (0.0, [0], [0])
    for here, there in lines:
        for line in (here, there):
            if tuple(line) not in known:
                known[tuple(line)] = splits(line, savings, noise)
        found = max(found, (loss(known[tuple(here)], known[tuple(there)]), here, there))
    return found


def one_row_apart(cells: int, most: int) -> Iterator[tuple[list[int], list[int]]]:
    """All lines of counts up to `most`, each with every line that has one row more in one cell."""
    for line in product(range(most + 1), repeat=cells):
        for cell in range(cells):
            yield list(line), [count + (place == cell) for place, count in enumerate(line)]


SCALE = 2.0
ROUNDING = 1e-6
# Lines of eight cells on which the choice loses most, of those tried.
EIGHT = [
    ([9, 9, 9, 9, 0, 0, 0, 0], [9, 9, 9, 9, 1, 0, 0, 0]),
    ([0, 0, 0, 5, 5, 5, 5, 5], [1, 0, 0, 5, 5, 5, 5, 5]),
    ([9, 0, 9, 0, 9, 0, 9, 0], [10, 0, 9, 0, 9, 0, 9, 0]),
    ([30] * 8, [31] + [30] * 7),
]
# What one unit of two rows may do, also by moving.
TWO_ROWS = [
    ([3, 3, 0, 0], [3, 3, 1, 1]),
    ([3, 3, 0, 0], [3, 2, 1, 0]),
    ([9, 9, 0, 0], [9, 9, 2, 0]),
    ([0, 5, 5, 5, 5], [1, 5, 5, 5, 6]),
    ([4, 0, 4, 0, 4], [5, 0, 3, 0, 4]),
]


@pytest.mark.parametrize(
    ("cells", "most", "savings"),
    mostly_audited([(2, 4, (2,)), (3, 3, (0, 0)), (3, 3, (2, 1)), (4, 2, (2, 1)), (4, 2, (6, 5))], [0, 2]),
)
def test_no_split_of_few_cells_loses_more_than_its_share(cells: int, most: int, savings: tuple[int, ...]) -> None:
    found, *_ = worst(one_row_apart(cells, most), savings, one_sided(SCALE))
    assert 0.4 < found <= 1 + ROUNDING


@pytest.mark.parametrize("savings", mostly_audited([((0, 0, 0),), ((2, 1, 1),), ((6, 5, 4),)], [1]))
def test_nor_does_one_of_eight_cells(savings: tuple[int, ...]) -> None:
    found, *_ = worst(iter(EIGHT), savings, one_sided(SCALE))
    assert found <= 1 + ROUNDING


def test_the_share_is_all_lost_at_worst_so_a_smaller_scale_would_not_do() -> None:
    found, *_ = worst(iter(EIGHT), (20, 20, 20), one_sided(SCALE))
    assert found == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("pair", mostly_audited([(pair,) for pair in TWO_ROWS], [0, 3]))
def test_two_rows_lose_no_more_than_a_share_that_was_made_for_two(pair: tuple[list[int], list[int]]) -> None:
    here, there = pair
    savings = (4, 3, 2)[: (len(here) - 1).bit_length()]
    assert loss(*(splits(line, savings, one_sided(2 * SCALE)) for line in (here, there))) <= 1 + ROUNDING


FAULTS = {
    "half the scale": (one_sided(SCALE / 2), (20, 20, 20), 2.0),
    "half the scale of Laplace noise, single cells bare": (bare_cells(two_sided(SCALE / 2)), (2, 1, 1), 2.87),
    "single cells bare": (bare_cells(one_sided(SCALE)), (6, 5, 4), 1.06),
    "single cells bare, Laplace noise": (bare_cells(two_sided(SCALE)), (2, 1, 1), 1.5),
    "costs cut at zero": (cut_at_zero(one_sided(SCALE)), (6, 5, 4), 1.06),
    "costs cut at zero, Laplace noise": (cut_at_zero(two_sided(SCALE)), (2, 1, 1), 1.5),
}


@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_the_exact_computation_finds_a_planted_fault(name: str) -> None:
    noise, savings, known = FAULTS[name]
    found, *_ = worst(iter(EIGHT), savings, noise)
    assert found == pytest.approx(known, abs=0.01)


@pytest.mark.slow
def test_the_measurement_chooses_with_these_probabilities() -> None:
    line, savings, runs = [0, 4, 4, 5, 0], (3, 2, 1), 5_000
    exact = np.array(line, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape((5,)), 1, lambda: exact)
    seen: Counter[tuple[int, ...]] = Counter()
    with pooled():
        for _ in range(runs):
            starts = counts.choose_buckets(np.arange(5), savings, Budget(Fraction(1)))
            seen[tuple(np.diff(starts, append=5).tolist())] += 1
    assert differing(seen, splits(line, savings, one_sided(SCALE))) < 6
    for wrong in (0.7, 1.3):
        assert differing(seen, splits(line, savings, one_sided(wrong * SCALE))) > 6


def differing(seen: Counter[tuple[int, ...]], chances: dict[tuple[int, ...], float]) -> float:
    """How many standard deviations the frequencies are from the probabilities: of the worst split."""
    runs = seen.total()
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9) and set(seen) <= set(chances)
    return max(
        abs(seen[split] - runs * chance) / (runs * chance * (1 - chance)) ** 0.5
        for split, chance in chances.items()
        if runs * chance > 30
    )

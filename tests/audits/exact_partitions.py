"""The exact probability of every split that noisy costs of buckets can choose, for a few cells: no sampling.

Values of whole numbers are arrays of probabilities. From the cells upwards, each split of a node has the joint
probability that it is chosen and costs so much; a node stays whole where its own noisy cost is not above that of the
best split of its parts. Noise is cut off where less than 10^-16 is left of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.questions import Buckets

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
        """Of the sum of independent numbers."""
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
    """What the door does: every bucket's cost minus geometric noise."""
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

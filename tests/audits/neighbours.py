"""The worst neighbours that a search over small counts finds, and the trials that the bound is then made from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from black_box import Bound, lower_bound, outputs
from grey_box import Audited, Counts, Log, LoggedCounts

from dphist_pipeline.mechanisms import Mechanism

# Counts, and what one unit changes in them; how far that is, is their sensitivity.
SMALL: list[tuple[list[int], list[int]]] = [
    ([0, 0], [1, 0]),
    ([0, 0], [1, 1]),
    ([1, 0], [-1, 1]),
    ([0, 3], [1, 0]),
    ([1, 1], [1, 0]),
    ([2, 2], [1, -1]),
    ([0, 0, 0], [1, 0, 0]),
    ([0, 0, 0], [1, 0, 1]),
    ([1, 1, 1], [0, 1, 0]),
    ([0, 4, 0], [0, -1, 1]),
    ([2, 0, 2], [0, 1, 0]),
    ([0, 1, 4, 4], [0, 0, 1, 0]),
    ([3, 3, 0, 0], [0, -1, 1, 0]),
    ([0, 0, 0, 0], [1, 1, 1, 1]),
    ([0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
    ([0, 0, 0, 4, 4, 4], [0, 0, 1, 0, 0, 0]),
]
PILOT, SHORTEST = 200, 20  # runs on each side of a pair that is searched
FEWEST, SLOW_FEWEST = 10_000, 400  # trials; of a mechanism that takes more than `SLOW` seconds for a run
SLOW = 0.005


@dataclass(frozen=True)
class Pair:
    """Two neighbours."""

    here: Counts
    there: Counts

    @property
    def sensitivity(self) -> int:
        return int(np.abs(self.there - self.here).sum())

    def __str__(self) -> str:
        return f"{self.here.tolist()} | {self.there.tolist()}"


def pairs() -> Iterator[Pair]:
    """All neighbours that are searched."""
    for here, moved in SMALL:
        yield Pair(np.array(here), np.array(here) + moved)


def audited_on(
    mechanism: Mechanism, pair: Pair, epsilon: Fraction, measurements: type[LoggedCounts] = LoggedCounts
) -> Audited:
    """A mechanism on the grid of a pair, with its distance as the sensitivity."""
    return Audited(mechanism, pair.here.shape, pair.sensitivity, epsilon, measurements)


def bounded(audited: Audited, pair: Pair, trials: int) -> Bound:
    """The bound from half as many runs on each of two neighbours."""
    return lower_bound(outputs(audited, pair.here, trials // 2), outputs(audited, pair.there, trials // 2))


def kinds_of_measurements(mechanism: Mechanism, pair: Pair, epsilon: Fraction) -> int:
    """How many kinds of measurements a run asks: with few cells, some mechanisms have nothing to choose."""
    return len({asked.measurement for asked in audited_on(mechanism, pair, epsilon).run(pair.here, Log()).log.asked})


def worst_pair(mechanism: Mechanism, epsilon: Fraction, pilot: int = PILOT) -> Pair:
    """Of the pairs with the most kinds of measurements, the one on which a short run shows the largest bound."""
    opened = [(kinds_of_measurements(mechanism, pair, epsilon), pair) for pair in pairs()]
    most = max(kinds for kinds, _ in opened)
    able = [pair for kinds, pair in opened if kinds == most]
    found = [(bounded(audited_on(mechanism, pair, epsilon), pair, 2 * pilot).shown, pair) for pair in able]
    return max(found, key=lambda seen: seen[0])[1]


def audit(mechanism: Mechanism, epsilon: Fraction, seconds: float, most: int) -> tuple[Pair, Bound]:
    """The bound on the worst pair, from as many runs as fit into the time.

    The number of trials is decided before any of their outputs is looked at.
    """
    first = audited_on(mechanism, next(pairs()), epsilon)
    slow = _seconds_each(first, next(pairs()), SHORTEST) > SLOW
    pair = worst_pair(mechanism, epsilon, SHORTEST if slow else PILOT)
    audited = audited_on(mechanism, pair, epsilon)
    each, fewest = _seconds_each(audited, pair, SHORTEST if slow else PILOT), SLOW_FEWEST if slow else FEWEST
    return pair, bounded(audited, pair, int(min(most, max(fewest, seconds / each))))


def _seconds_each(audited: Audited, pair: Pair, runs: int) -> float:
    outputs(audited, pair.here, 2)  # compiles
    start = time.process_time()
    outputs(audited, pair.here, runs)
    return (time.process_time() - start) / runs

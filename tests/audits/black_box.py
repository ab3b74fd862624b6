"""Lower bounds on epsilon from samples of two neighbours' outputs, without a look inside.

Events are chosen on one half of the samples and bounded on the other, by Clopper–Pearson, all at once (Bonferroni over
events, directions and both ends): log(lower bound of P(event | x) / upper bound of P(event | x')) is above epsilon with
at most the stated probability if the mechanism is epsilon-differentially private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from grey_box import Audited, Counts, LoggedCounts
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate

Rows = NDArray[np.float64]
EVENTS = 6  # of each direction
SHOWN, SURE = 0.05, 1e-8  # SURE: 10^-6 over up to a hundred audits
CUTS = 24
BULK = 1 << 16


@dataclass(frozen=True)
class Bound:
    """What was found: epsilon is at least `shown` at 95 %, and at least `sure` at 1 - 10^-6 over all audits."""

    shown: float
    sure: float
    event: str
    trials: int


@dataclass(frozen=True)
class Event:
    """A set of outputs, as a flag for every sample of both neighbours."""

    about: str
    here: NDArray[np.bool_]
    there: NDArray[np.bool_]

    def swapped(self) -> Event:
        return Event(f"{self.about}, reversed", self.there, self.here)


def ratio_bound(hits: Any, misses: Any, trials: int, alpha: float) -> Any:
    """Lower bound on log(P(hit) / P(miss)), each from so many trials, wrong with probability `alpha` at most."""
    hits, misses = np.asarray(hits, dtype=float), np.asarray(misses, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(hits > 0, stats.beta.ppf(alpha / 2, hits, trials - hits + 1), 0.0)
        high = np.where(misses < trials, stats.beta.isf(alpha / 2, misses + 1, trials - misses), 1.0)
        return np.log(low) - np.log(high)


def lower_bound(here: Rows, there: Rows) -> Bound:
    """The best bound that a search over events finds in the outputs of two neighbours, shape (trials, numbers)."""
    half = len(here) // 2
    scored = _likelihood_ratio(here, there, half)
    columns = [(f"number {number}", here[:, number], there[:, number]) for number in range(here.shape[1])]
    single = [event for column in (*columns, ("likelihood ratio", *scored)) for event in _thresholds(*column, half)]
    whole = list(_sets(here, there, half))
    return _held_out([single, whole], half)


def _held_out(families: list[list[Event]], half: int) -> Bound:
    """Chooses by the first half of the samples, as many of every family, and bounds by the rest."""
    chosen: list[Event] = []
    for family in families:
        events = [*family, *(event.swapped() for event in family)]
        hits, misses = (np.array([part[:half].sum() for part in parts]) for parts in _flags(events))
        promise = ratio_bound(hits, misses, half, 0.01)
        chosen += [events[number] for number in np.argsort(promise)[::-1][:EVENTS]]
    hits, misses = (np.array([part[half:].sum() for part in parts]) for parts in _flags(chosen))
    size = chosen[0].here.size
    shown, sure = (ratio_bound(hits, misses, size - half, alpha / len(chosen)) for alpha in (SHOWN, SURE))
    best = int(np.argmax(shown))
    return Bound(max(0.0, float(shown[best])), max(0.0, float(sure.max())), chosen[best].about, 2 * size)


def _flags(events: list[Event]) -> tuple[list[NDArray[np.bool_]], list[NDArray[np.bool_]]]:
    return [event.here for event in events], [event.there for event in events]


def _thresholds(about: str, here: Rows, there: Rows, half: int) -> Iterator[Event]:
    """At most, at least or exactly a value."""
    seen = np.unique(np.concatenate([here[:half], there[:half]]))
    for cut in np.unique(seen[np.linspace(0, seen.size - 1, CUTS).astype(int)]):
        yield Event(f"{about} ≤ {cut:.4g}", here <= cut, there <= cut)
        yield Event(f"{about} ≥ {cut:.4g}", here >= cut, there >= cut)
        yield Event(f"{about} = {cut:.4g}", here == cut, there == cut)


def _coarse(here: Rows, there: Rows, half: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers as below, at, between, or beyond their two medians in the first half: noise says no more than that."""
    low = np.minimum(np.median(here[:half], axis=0), np.median(there[:half], axis=0))
    high = np.maximum(np.median(here[:half], axis=0), np.median(there[:half], axis=0))
    first, second = (
        (part >= low).astype(np.int64) + (part > low) + (part >= high) + (part > high) for part in (here, there)
    )
    return first, second


def _likelihood_ratio(here: Rows, there: Rows, half: int) -> tuple[Rows, Rows]:
    """How much likelier a sample looks under one neighbour, if its numbers were independent; from the first half."""
    first, second = _coarse(here, there, half)
    scores = [np.zeros(len(part)) for part in (here, there)]
    for number in range(here.shape[1]):
        hits, misses = (np.bincount(part[:half, number], minlength=5) + 1.0 for part in (first, second))
        ratios = np.log(hits / misses)
        for score, part in zip(scores, (first, second), strict=True):
            score += ratios[part[:, number]]
    return scores[0], scores[1]


def _sets(here: Rows, there: Rows, half: int) -> Iterator[Event]:
    """Sets of whole outputs, as they are and coarse, that look likelier under one neighbour in the first half."""
    yield from _likelier("outputs", np.round(np.concatenate([here, there]), 9), half)
    yield from _likelier("coarse outputs", np.concatenate(_coarse(here, there, half)), half)


def _likelier(about: str, both: NDArray[Any], half: int) -> Iterator[Event]:
    _, symbols = np.unique(both, axis=0, return_inverse=True)
    here, there = np.split(symbols.ravel(), 2)
    many = int(symbols.max()) + 1
    hits, misses = (np.bincount(part[:half], minlength=many) for part in (here, there))
    ends = np.unique(np.geomspace(1, many, 200).astype(int)) - 1
    for more, less in ((hits, misses), (misses, hits)):
        order = np.argsort(-(more + 0.5) / (less + 0.5), kind="stable")
        found = ratio_bound(np.cumsum(more[order])[ends], np.cumsum(less[order])[ends], half, 0.01)
        for best in np.argsort(found)[::-1][:3]:
            member = np.zeros(many, dtype=bool)
            member[order[: ends[best] + 1]] = True
            yield Event(f"{ends[best] + 1} {about}", member[here], member[there])


class Pool:
    """Noise that the real sampler drew in bulk; every number is given out once, in order."""

    def __init__(self, sampler: Callable[[Fraction, int], Counts]) -> None:
        self._sampler = sampler
        self._left: dict[Fraction, tuple[Counts, int]] = {}

    def __call__(self, scale: Fraction, size: int) -> Counts:
        stock, used = self._left.get(scale, (np.empty(0, dtype=np.int64), 0))
        if used + size > stock.size:
            stock, used = self._sampler(scale, max(BULK, size)), 0
        self._left[scale] = stock, used + size
        return stock[used : used + size].copy()


@contextmanager
def pooled() -> Iterator[None]:
    """The samplers, drawing in bulk."""
    with patch.multiple(noise, discrete_laplace=Pool(noise.discrete_laplace), geometric=Pool(noise.geometric)):
        yield


def outputs(audited: Audited, exact: Counts, trials: int) -> Rows:
    """What many runs publish: estimates and their total, unbiased cells, groups, all sums; shape (trials, numbers)."""
    domain = Domain.from_shape(audited.shape)
    measurements: type[LoggedCounts] = audited.measurements
    rows = []
    with pooled():
        for _ in range(trials):
            counts = measurements(domain, audited.sensitivity, lambda: exact)
            rows.append(_row(audited.mechanism.release(counts, Budget(audited.epsilon))))
    return np.array(rows)


def _row(made: Estimate) -> Rows:
    unbiased = None if made.unbiased is None else made.unbiased.values
    parts = [[made.values.sum()], made.values, unbiased, made.groups, made.sums and [made.sums.values.sum()]]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


def cells_as_trials(audited: Callable[[tuple[int, int]], Audited], cells: int) -> Bound:
    """The bound for a mechanism that treats every cell alike and apart: each cell of a large grid is a trial.

    One cell's count is 0 or 1, so neighbours differ in every trial by one row.
    """
    side = math.isqrt(cells - 1) + 1
    grid = (side, side)
    drawn = []
    for count in (0, 1):
        exact = np.full(side * side, count, dtype=np.int64)
        counts = LoggedCounts(Domain.from_shape(grid), 1, lambda exact=exact: exact)
        made = audited(grid)
        drawn.append(made.mechanism.release(counts, Budget(made.epsilon)).values.ravel())
    here, there = drawn
    events = [Event(f"cell ≤ {cut}", here <= cut, there <= cut) for cut in range(-3, 5)]
    return _held_out([events], here.size // 2)

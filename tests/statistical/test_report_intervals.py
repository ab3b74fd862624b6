"""Intervals of estimates from reports hold the truth as often as they say, by the exact law of the reports.

The number of yes in a set of values is a sum of two binomial numbers, so how often an interval holds is worked out and
not simulated, but where contributors take part by chance or questions are made of several sets. A true claim that is
simulated is refused with a probability below 10^-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray
from oracle import Oracle
from reported import ENCODINGS, Encoding, chances, law
from scipy import stats  # type: ignore[import-untyped]

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.estimates.laws import ReportLaw, bernstein_factor, normal_factor, report_reach
from dphist_pipeline.estimates.noisy import ReportedCells
from examples import SOAKING, mostly_soaked

pytestmark = pytest.mark.many_examples
UNLIKELY = 1e-9
RUNS, EACH = (1500, 1) if SOAKING else (800, 4)  # simulated; one of so many sets
NARROW = 0.7
LEVELS = tuple(Fraction(*level) for level in ((95, 100), (975, 1000), (999, 1000)))
EPSILONS = (0.1, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
REPORTS = (1, 2, 3, 5, 8, 13, 20, 40, 150, 1000, 10_000)
INTERVALS = (3, 12, 60)
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Set:
    """So many true values in so many of the intervals that contributors were asked about."""

    encoding: Encoding
    epsilon: float
    intervals: int
    reports: int
    atoms: int
    count: int

    @property
    def law(self) -> ReportLaw:
        return law(self.encoding, self.reports, self.epsilon, self.intervals)

    def estimates(self) -> tuple[Reals, Reals]:
        """What may be estimated, and how probable that is."""
        p, q = chances(self.encoding, self.epsilon, self.intervals)
        if self.encoding == "grr":
            laws = binomial(self.count, p + (self.atoms - 1) * q), binomial(self.reports - self.count, self.atoms * q)
        else:
            laws = binomial(self.count, p), binomial(self.reports * self.atoms - self.count, q)
        (first, one), (second, two) = laws
        ones = first + second + np.arange(one.size + two.size - 1)
        return (ones - self.reports * self.atoms * q) / (p - q), np.convolve(one, two)

    @property
    def deviations(self) -> float:
        """The standard deviation of the estimate, in steps, or in what its variance changes by with a record."""
        atoms, count = np.array(self.atoms), np.array(float(self.count))
        largest = max(self.law.step, abs(float(self.law.slope(atoms))))
        return math.sqrt(float(self.law.variance(atoms, count))) / largest

    def held(self, factor: float, narrower: float = 1) -> float:
        """How probably the interval holds the true count."""
        found, probability = self.estimates()
        atoms = np.full(found.shape, self.atoms)
        reach = report_reach(factor, self.law.variance(atoms, found), self.law.slope(atoms), self.law.step)
        return float(probability[np.abs(found - self.count) <= narrower * reach + 1e-9 * self.law.step].sum())


@lru_cache(maxsize=4096)
def binomial(trials: int, chance: float) -> tuple[int, Reals]:
    """The first number that is worth mention, and the probabilities from there on."""
    middle, reach = trials * chance, 9 * math.sqrt(trials * chance * (1 - chance)) + 25
    low, high = max(0, math.floor(middle - reach)), min(trials, math.ceil(middle + reach))
    return low, stats.binom.pmf(np.arange(low, high + 1), trials, chance)


def sets(encoding: Encoding) -> Iterator[Set]:
    return itertools.islice(all_sets(encoding), 0, None, EACH)


def all_sets(encoding: Encoding) -> Iterator[Set]:
    for epsilon, intervals, reports in itertools.product(EPSILONS, INTERVALS, REPORTS):
        for atoms in sorted({1, 2, intervals // 2, intervals}):
            for count in sorted({0, 1, 2, reports // 20, reports // 3, reports}):
                if count <= reports:
                    yield Set(encoding, epsilon, intervals, reports, atoms, count)


def refused(held: int, trials: int, level: float) -> bool:
    """Whether so few would hold with a probability below 10^-9 if each held with `level` or more."""
    return bool(stats.binom.cdf(held, trials, level) < UNLIKELY)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_interval_holds_as_often_as_it_says_by_the_exact_law(encoding: Encoding) -> None:
    for one in sets(encoding):
        for level in LEVELS:
            assert one.held(normal_factor(level)) >= float(level) - 1e-9, (one, level)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_side_of_an_interval_is_missed_as_seldom_as_ranges_say(encoding: Encoding) -> None:
    missed = []
    for one in sets(encoding):
        if one.reports <= 1000:
            found, probability = one.estimates()
            atoms = np.full(found.shape, one.atoms)
            factor = normal_factor(LEVELS[0])
            reach = report_reach(factor, one.law.variance(atoms, found), one.law.slope(atoms), one.law.step)
            reach += 1e-9 * one.law.step
            missed += [probability[found - one.count > reach].sum(), probability[one.count - found > reach].sum()]
    assert max(missed) <= 0.031
    assert encoding == "optimized" or max(missed) > 0.0295


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_intervals_30_percent_too_narrow_are_found_and_none_is_far_too_wide(encoding: Encoding) -> None:
    many = [one for one in sets(encoding) if one.deviations > 20]
    assert len(many) > 300 // EACH
    for level in LEVELS:
        assert all(one.held(NARROW * normal_factor(level)) < float(level) - 0.0005 for one in many)
        wide = [one.held(normal_factor(level)) for one in many]
        assert max(wide) < 1 - (1 - float(level)) / 4


def test_few_bits_are_not_normal() -> None:
    """Without the part that is Bernstein's, a normal law falls short; where bits are many, that part hardly shows."""
    few = Set("symmetric", 12, 12, 13, 2, 13)
    found, probability = few.estimates()
    reach = (
        normal_factor(LEVELS[0]) * math.sqrt(float(few.law.variance(np.array(2), np.array(13.0)))) + few.law.step / 2
    )
    assert probability[np.abs(found - 13) <= reach].sum() < 0.94
    many = law("optimized", 10**6, 1.0, 10)
    variance = float(many.variance(np.array(3), np.array(1e5)))
    width = float(report_reach(normal_factor(LEVELS[0]), variance, many.slope(np.array(3)), many.step))
    assert 1 < width / (normal_factor(LEVELS[0]) * math.sqrt(variance)) < 1.002


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bands_hold_every_cell_by_bernsteins_inequality(encoding: Encoding) -> None:
    found_out = 0
    for one in sets(encoding):
        for missed in (0.05, 0.05 / 64):
            assert one.held(bernstein_factor(missed)) >= 1 - missed - 1e-12, one
            found_out += one.held(NARROW * bernstein_factor(missed)) < 1 - missed
    assert found_out > 300 // EACH


def brute_variance(encoding: Encoding, epsilon: float, weights: Reals, counts: Reals, none: int, share: float) -> float:
    """Variance of a weighted sum of estimates of single intervals, from all that one report can say."""
    p, q = chances(encoding, epsilon, weights.size)
    total = 0.0
    for place, number in enumerate([*counts, none]):
        odds = np.full(weights.size, q)
        if place < weights.size:
            odds[place] = p
        mean, square = float(odds @ (0 * weights + weights)), 0.0
        if encoding == "grr":
            square = float(odds @ weights**2)
        else:
            square = float((odds * (1 - odds)) @ weights**2) + mean**2
        centred, squared = mean - q * weights.sum(), square - 2 * q * weights.sum() * mean + (q * weights.sum()) ** 2
        total += number * (share * squared - (share * centred) ** 2)
    return total / ((p - q) * share) ** 2


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_law_of_weighted_sums_is_that_of_single_reports(encoding: Encoding, share: float) -> None:
    counts, atoms = np.array([30.0, 0, 12, 5, 80, 3]), [1, 3, 2]
    for q, epsilon in itertools.product((0.0, 0.2, 0.5), (0.3, 2, 6)):
        weights = np.array([1 - q] + [-q] * 3 + [0.0] * 2)
        # Of those who take part, as many as are expected: the law takes the reports that came.
        found = law(encoding, 200, epsilon, 6, 1).weighted_variance(
            [(1 - q, np.array(atoms[0]), counts[0]), (-q, np.array(atoms[1]), counts[1:4].sum())]
        )
        if share < 1:
            some = law(encoding, 60, epsilon, 6, share)  # 200 · 0.3
            found = some.weighted_variance([(1 - q, np.array(1), counts[0]), (-q, np.array(3), counts[1:4].sum())])
        assert float(found) == pytest.approx(brute_variance(encoding, epsilon, weights, counts, 70, share))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_estimate_below_zero_has_the_variance_of_zero(encoding: Encoding) -> None:
    one = law(encoding, 200, 2, 6, 1)
    assert one.variance(np.array(2), np.array(-50.0)) == one.variance(np.array(2), np.array(0.0)) > 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_balance_reaches_as_far_as_its_variance_and_what_a_record_changes_of_it(encoding: Encoding) -> None:
    values, atoms = np.array([30.0, 20, 12, 5]), np.array([1, 7, 2, 4])
    one, factor = law(encoding, 90, 1.5, 14, 0.4), 3.0
    cells = Oracle(Domain.from_shape((4,)), values, ReportedCells(values, atoms, one))
    for q in (0.1, 0.5, 0.8):
        found = [
            cells.balance_reach(np.where(np.arange(4) <= edge, 1 - q, -q), q, missed=2 * math.exp(-(factor**2) / 2))
            for edge in range(3)
        ]
        for edge in range(3):

            def variance(below: float, above: float, edge: int = edge, q: float = q) -> float:
                parts = [
                    (1 - q, atoms[: edge + 1].sum(), np.array(below)),
                    (-q, atoms[edge + 1 :].sum(), np.array(above)),
                ]
                return float(one.weighted_variance(parts))

            below, above = values[: edge + 1].sum(), values[edge + 1 :].sum()
            here = variance(below, above)
            slopes = abs(variance(below + 1, above) - here) / (1 - q), abs(variance(below, above + 1) - here) / q
            assert found[edge] == pytest.approx(float(report_reach(factor, here, max(slopes), one.step)))


def drawn(
    encoding: Encoding,
    epsilon: float,
    counts: NDArray[np.int64],
    none: int,
    atoms: NDArray[np.int64],
    share: float,
    runs: int,
) -> list[ReportedCells]:
    """Estimates of the same counts, so many times, from reports drawn anew; contributors take part by chance."""
    source = np.random.default_rng(random_words(4))
    p, q = chances(encoding, epsilon, int(atoms.sum()))
    there, nowhere = source.binomial(counts, share, (runs, counts.size)), source.binomial(none, share, runs)
    reports = there.sum(axis=1) + nowhere
    if encoding == "grr":
        said = np.append(atoms * q, 1 - q * atoms.sum())
        ones = np.zeros(there.shape, dtype=np.int64)
        for place in range(counts.size + 1):
            chance = said.copy()
            if place < counts.size:
                chance[place] += p - q
                chance[-1] -= p - q
            number = there[:, place] if place < counts.size else nowhere
            ones += source.multinomial(number, chance)[:, :-1]
    else:
        ones = source.binomial(there, p) + source.binomial(reports[:, np.newaxis] * atoms - there, q)
    values = (ones - reports[:, np.newaxis] * atoms * q) / ((p - q) * share)
    laws = (law(encoding, int(number), epsilon, int(atoms.sum()), share) for number in reports)
    return [ReportedCells(one, atoms, each) for one, each in zip(values, laws, strict=True)]


COUNTS = np.array([300, 0, 180, 700, 50, 400, 90, 20])
ATOMS = np.array([1, 2, 1, 3, 1, 1, 2, 1])


@pytest.mark.slow
@pytest.mark.parametrize("share", mostly_soaked([0.05, 0.4, 0.9], [1]))
@pytest.mark.parametrize("encoding", mostly_soaked(ENCODINGS, [0, 1]))
def test_intervals_hold_where_contributors_take_part_by_chance(encoding: Encoding, share: float) -> None:
    runs = RUNS
    for epsilon, scale in itertools.product((1, 4, 12), (1, 40)):
        counts = COUNTS // scale
        found = drawn(encoding, epsilon, counts, 30, ATOMS, share, runs)
        for place in (np.array([1]), np.array([3]), np.arange(2, 7), np.arange(8)):
            truth = counts[place].sum()
            for level in LEVELS[:2]:
                off = np.array([abs(one.values[place].sum() - truth) for one in found])
                reach = np.array([one.half_width_of_box([place], level) for one in found])
                assert not refused(int((off <= reach).sum()), runs, float(level)), (epsilon, scale, place)
                if scale == 1 and share > 0.1 and place.size > 1 and level == LEVELS[0]:
                    assert refused(int((off <= NARROW * reach).sum()), runs, float(level))


@pytest.mark.slow
@pytest.mark.parametrize("encoding", mostly_soaked(ENCODINGS, [0, 1]))
def test_shares_and_changes_of_reports_are_held_as_often_as_promised(encoding: Encoding) -> None:
    runs, domain = RUNS, Domain.from_shape(COUNTS.shape)
    for epsilon, share in ((1.5, 1.0), (9.0, 0.3)):
        before = drawn(encoding, epsilon, COUNTS, 60, ATOMS, share, runs)
        after = drawn(encoding, epsilon, COUNTS // 2, 60, ATOMS, share, runs)
        held, narrow = {"small": 0, "large": 0, "change": 0}, 0
        for one, two in zip(before, after, strict=True):
            earlier, later = Oracle(domain, one.values, one), Oracle(domain, two.values, two)
            small = earlier.share({"axis_0": (2, 4)}, {})
            large = earlier.share({"axis_0": (1, 8)}, {})
            moved = later.change_since(earlier, {"axis_0": (2, 7)})
            truth = (COUNTS // 2)[2:7].sum() - COUNTS[2:7].sum()
            held["small"] += small.ci_lower <= COUNTS[2:4].sum() / COUNTS.sum() <= small.ci_upper
            held["large"] += large.ci_lower <= COUNTS[1:].sum() / COUNTS.sum() <= large.ci_upper
            held["change"] += moved.ci_lower <= truth <= moved.ci_upper
            middle, reach = (moved.ci_lower + moved.ci_upper) / 2, (moved.ci_upper - moved.ci_lower) / 2
            narrow += abs(middle - truth) <= NARROW * reach
        assert not any(refused(number, runs, 0.95) for number in held.values()), held
        assert refused(narrow, runs, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", mostly_soaked(ENCODINGS, [0, 1]))
def test_a_quantile_of_reports_that_lies_at_an_edge_is_held_as_often_as_promised(encoding: Encoding) -> None:
    counts, atoms, runs = np.full(8, 400), np.ones(8, dtype=np.int64), RUNS // 2
    domain = Domain.from_shape(counts.shape)
    for epsilon, share in ((6.0, 1.0), (12.0, 0.4)):
        held = neighbour = inside = 0
        for one in drawn(encoding, epsilon, counts, 0, atoms, share, runs):
            cells = Oracle(domain, one.values, one)
            median = cells.quantile("axis_0", 0.5, {})
            held += median.ci_lower <= 3 and median.ci_upper >= 4  # the first four bins hold just half
            neighbour += median.ci_lower <= 2 and median.ci_upper >= 3
            below = np.cumsum(one.values)
            off = np.abs(below[:-1] - 0.5 * below[-1] - (np.cumsum(counts)[:-1] - counts.sum() / 2))
            weights = (np.where(np.arange(8) <= edge, 0.5, -0.5) for edge in range(7))
            inside += bool((off <= [cells.balance_reach(each, 0.5, 0.05 / 7) for each in weights]).all())
        assert not refused(held, runs, 0.95)
        assert refused(neighbour, runs, 0.95)
        assert not refused(inside, runs, 0.95)


@pytest.mark.parametrize("missed", [0.5, 0.05, 1e-6])
def test_the_factor_of_a_band_pays_for_both_sides(missed: float) -> None:
    # Bernstein: each side misses with a probability of at most exp(-z²/2).
    assert 2 * math.exp(-(bernstein_factor(missed) ** 2) / 2) == pytest.approx(missed)

"""The exact likelihood of every report: the real encoder, driven through every outcome of its coins.

With u = e^g, where g divides every exponent of a question, a sequence of outcomes has a probability of a fraction times
a power of u, over powers of w + u^k that are the same for all sequences. So a likelihood is a polynomial in u over a
denominator that cancels in ratios, and nothing is rounded: u^m · L(report | x') - L(report | x), written in t = u - 1,
has no negative coefficient, therefore L(report | x) <= e^(m·g) · L(report | x') for every g at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.local import contributor, encoding
from dphist_pipeline.local._coins import Chance
from dphist_pipeline.local.question import Question

Polynomial = dict[int, Fraction]  # the coefficient of each power


@dataclass
class Outcomes:
    """Every sequence of coins, whole numbers and orders that an encoder may draw, each once.

    Attributes:
        unit: g.
        free: which bits of a byte of coins with this chance are looked at; the others always come up 1.
        power, factor, over: of the probability of the sequence so far: u^power · factor / over.
    """

    unit: Fraction
    free: Mapping[Chance, int]
    power: int = 0
    factor: Fraction = Fraction(1)
    over: Counter[tuple[int, int]] = field(default_factory=Counter)
    _path: list[tuple[int, int]] = field(default_factory=list)
    _depth: int = 0

    def of(self, run: Callable[[], Hashable]) -> Iterator[Hashable]:
        """What a run gives, for every sequence in turn."""
        while True:
            self.power, self.factor, self.over, self._depth = 0, Fraction(1), Counter(), 0
            with self._drawing():
                yield run()
            while self._path and self._path[-1][0] == self._path[-1][1] - 1:
                self._path.pop()
            if not self._path:
                return
            last, many = self._path[-1]
            self._path[-1] = last + 1, many

    def coins(self, chance: Chance, size: int) -> NDArray[np.uint8]:
        bits = [self._toss(chance) if place % 8 < self.free[chance] else 1 for place in range(8 * size)]
        return np.packbits(np.array(bits, dtype=np.uint8))

    def uniform_below(self, bound: int, size: int) -> NDArray[np.int64]:
        return np.array([self._uniform(bound) for _ in range(size)], dtype=np.int64)

    def fair(self, size: int) -> NDArray[np.uint8]:
        return np.array([self._uniform(2) for _ in range(size)], dtype=np.uint8)

    def order(self, size: int) -> NDArray[np.uint64]:
        """Words of which only the order is looked at."""
        orders = list(permutations(range(size)))
        return np.array(orders[self._uniform(len(orders))], dtype=np.uint64)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        drawn = {"coins": self.coins, "uniform_below": self.uniform_below, "_fair": self.fair}
        ids = patch.object(contributor, "report_ids", lambda reports: np.zeros((reports, 16), dtype=np.uint8))
        with patch.multiple(encoding, **drawn, random_words=self.order), ids:
            yield

    def _branch(self, many: int) -> int:
        if self._depth == len(self._path):
            self._path.append((0, many))
        chosen, known = self._path[self._depth]
        assert known == many, "what is drawn depends on more than what was drawn before"
        self._depth += 1
        return chosen

    def _uniform(self, many: int) -> int:
        self.factor /= many
        return self._branch(many)

    def _toss(self, chance: Chance) -> int:
        power = chance.exponent / self.unit
        assert power.denominator == 1
        self.over[chance.weight, int(power)] += 1
        one = self._branch(2)
        if one:
            self.factor *= chance.weight
        else:
            self.power += int(power)
        return one


@dataclass(frozen=True)
class Likelihoods:
    """Of every report that can be, over one denominator."""

    of: dict[Hashable, Polynomial]
    over: Counter[tuple[int, int]]

    def total(self) -> bool:
        """Whether they add up to 1: all of them to the denominator."""
        whole: Polynomial = {0: Fraction(1)}
        for (weight, power), times in self.over.items():
            for _ in range(times):
                whole = _plus(_times(whole, 0, Fraction(weight)), _times(whole, power, Fraction(1)))
        found: Polynomial = {}
        for polynomial in self.of.values():
            found = _plus(found, polynomial)
        return _plus(found, _times(whole, 0, Fraction(-1))) == {}


def unit_of(question: Question) -> Fraction:
    """The largest number that divides half of every epsilon."""
    halves = [part.epsilon / 2 for part in question.parts]
    common = math.lcm(*(half.denominator for half in halves))
    return Fraction(math.gcd(*(int(half * common) for half in halves)), common)


def likelihoods(question: Question, run: Callable[[], Hashable]) -> Likelihoods:
    """Those of all that a run gives, with intervals of up to eight, and values of up to eight under grr."""
    free = {
        encoding.chance_of(part): question.values if part.encoding == "grr" else part.intervals
        for part in question.parts
    }
    outcomes = Outcomes(unit_of(question), free)
    found: dict[Hashable, Polynomial] = {}
    overs = []
    for report in outcomes.of(run):
        found[report] = _plus(found.get(report, {}), {outcomes.power: outcomes.factor})
        overs.append(outcomes.over)
    assert all(over == overs[0] for over in overs)
    return Likelihoods(found, overs[0])


@dataclass
class Losses:
    """What reports tell of which of any two contributors they come from.

    Attributes:
        power: m; the declared epsilon is m · g.
        unit: g.
        findings: reports that may tell more than epsilon.
        reached: whether a report tells epsilon exactly.
        most: the largest part of epsilon that a report tells, in doubles.
    """

    power: int
    unit: Fraction
    findings: list[str] = field(default_factory=list)
    reached: bool = False
    most: float = 0.0

    def compare(self, name: str, here: Likelihoods, there: Likelihoods) -> None:
        """Adds what the reports of one contributor tell against another."""
        assert here.over == there.over
        for report, likely in here.of.items():
            other = there.of.get(report, {})
            left = _plus(_times(other, self.power, Fraction(1)), _times(likely, 0, Fraction(-1)))
            self.reached |= left == {}
            self.most = max(self.most, self._part(likely, other))
            if any(coefficient < 0 for coefficient in _shifted(left)):
                part = self._part(likely, other)
                self.findings.append(f"{name}: report {report} tells {part:.3g} of epsilon")

    def _part(self, likely: Polynomial, other: Polynomial) -> float:
        if not other:
            return math.inf
        unit = float(self.unit)
        here, there = (
            sum(float(factor) * math.exp(power * unit) for power, factor in polynomial.items())
            for polynomial in (likely, other)
        )
        return math.log(here / there) / (self.power * unit)


def losses(
    question: Question, answer: Callable[[Question, Sequence[float]], Hashable], lists: Sequence[Sequence[float]]
) -> Losses:
    """What reports tell of any two contributors.

    Args:
        answer: what a contributor of these values sends.
        lists: all values of each contributor.
    """
    unit = unit_of(question)
    power = question.epsilon / unit
    found = Losses(int(power), unit)
    laws = [likelihoods(question, lambda values=values: answer(question, values)) for values in lists]  # type: ignore[misc]
    assert all(law.total() for law in laws)
    for number, here in enumerate(laws):
        for other, there in enumerate(laws):
            if other != number:
                found.compare(f"{list(lists[number])} or {list(lists[other])}", here, there)
    return found


def _plus(one: Polynomial, other: Polynomial) -> Polynomial:
    powers = one.keys() | other.keys()
    added = {power: one.get(power, Fraction(0)) + other.get(power, Fraction(0)) for power in powers}
    return {power: coefficient for power, coefficient in added.items() if coefficient}


def _times(polynomial: Polynomial, power: int, factor: Fraction) -> Polynomial:
    return {at + power: coefficient * factor for at, coefficient in polynomial.items()}


def _shifted(polynomial: Polynomial) -> list[Any]:
    """The coefficients of the polynomial in t = u - 1."""
    degree = max(polynomial, default=0)
    return [
        sum((coefficient * math.comb(power, lower) for power, coefficient in polynomial.items()), Fraction(0))
        for lower in range(degree + 1)
    ]

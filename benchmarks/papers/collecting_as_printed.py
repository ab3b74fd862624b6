"""Zheng et al. 2021 as printed: intervals closed at both ends, so that a value on a boundary lies in two.

What contributors send is drawn from exact counts: bits are independent given the counts, but for who is asked at all.
The printed form is not private at the declared epsilon, and lives here to be measured alone. How the estimates of
sampled reports are scaled is not printed; they are divided by the share, so that they are unbiased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from collecting import SEED, City, Way, measures

from dphist_pipeline.local.partition import Spans
from dphist_pipeline.local.question import Part
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores

PRINTED = "intervals are closed at both ends, and so are those that are counted exactly"


@dataclass(frozen=True, eq=False)
class Told:
    """What a consumer is told, and by which law.

    Attributes:
        truth: exact counts of the consumer's intervals, closed at both ends, shape (intervals,).
        mean: the expected estimates.
        variance: of the estimates.
        drawn: estimates of every run, shape (runs, intervals).
    """

    truth: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    drawn: np.ndarray


def as_printed(city: City, way: Way, epsilon: str, runs: int) -> list[Told]:
    """What every consumer is told.

    Args:
        city: its contributors, one value each.
        way: who asks, and how they answer; bits, by the symmetric encoding.
        epsilon: as declared, of all consumers together.
        runs: how many collections are drawn.
    """
    random = np.random.default_rng(SEED)
    question, places = way.asked(city, epsilon)
    share, parts = float(question.participation), list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
    for part in question.parts:
        bits, counts = _kinds(part, city)
        parts.append((bits, counts, _estimates(part, bits, counts, city.contributors, share, runs, random)))
    return [_told(question.parts[at.part], at, *parts[at.part], city.contributors, share) for at in places]


def collect_as_printed(name: str, city: City, way: Way, epsilons: Sequence[str], repeat: int) -> list[MeasureResult]:
    """As `collect` measures: the MSE of every consumer's histogram and their mean, drawn and by the law."""
    found = []
    for epsilon in epsilons:
        told = as_printed(city, way, epsilon, repeat)
        law = [float((one.variance + (one.mean - one.truth) ** 2).mean()) for one in told]
        drawn = np.array([((one.drawn - one.truth) ** 2).mean(axis=1) for one in told])
        runs = [{**measures("mse", way, run.tolist()), **measures("law_mse", way, law)} for run in drawn.T]
        found += aggregate_scores(name, Fraction(epsilon), runs)
    return found


def _kinds(part: Part, city: City) -> tuple[np.ndarray, np.ndarray]:
    """The bits of every kind of value, shape (kinds, intervals), and how many have them: inside one, or on an edge."""
    edges = np.array(part.doubles)
    inside = np.histogram(city.values[~np.isin(city.values, edges)], edges)[0]
    on_edge = np.array([np.count_nonzero(city.values == edge) for edge in edges])
    bits = np.zeros((2 * edges.size - 1, edges.size - 1))
    bits[: edges.size - 1] = np.eye(edges.size - 1)
    bits[edges.size - 1 :] = np.eye(edges.size, edges.size - 1) + np.eye(edges.size, edges.size - 1, -1)
    return bits, np.concatenate([inside, on_edge])


def _lie(part: Part) -> float:
    """The probability that a bit is not told as it is: half of f, equations 6 and 13."""
    return 1 / (exp(float(part.epsilon) / 2) + 1)


def _estimates(
    part: Part,
    bits: np.ndarray,
    counts: np.ndarray,
    contributors: int,
    share: float,
    runs: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Equations 7 and 14, of every run; shape (runs, intervals of the part)."""
    lie = _lie(part)
    kinds = np.append(counts, contributors - counts.sum())  # the last lie in no interval
    asked = random.binomial(kinds, share, (runs, kinds.size)) if share < 1 else np.tile(kinds, (runs, 1))
    true = (asked[:, :-1] @ bits).astype(np.int64)
    sent = asked.sum(axis=1, keepdims=True)
    ones = random.binomial(true, 1 - lie) + random.binomial(sent - true, lie)
    return (ones - lie * sent) / ((1 - 2 * lie) * share)


def _told(
    part: Part, at: Spans, bits: np.ndarray, counts: np.ndarray, drawn: np.ndarray, contributors: int, share: float
) -> Told:
    """Equation 15: sums over a consumer's intervals, and the law of these sums."""
    lie, places = _lie(part), np.arange(bits.shape[1])[:, None]
    within = ((places >= np.array(at.first)) & (places <= np.array(at.last))).astype(float)
    times = bits @ within  # how often each kind of value is counted in an interval of the consumer's
    noise = contributors * np.array(at.atoms) * lie * (1 - lie) / ((1 - 2 * lie) ** 2 * share)
    return Told(counts @ (times > 0), counts @ times, noise + (1 - share) / share * (counts @ times**2), drawn @ within)

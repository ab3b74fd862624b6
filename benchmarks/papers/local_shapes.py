"""Zheng et al. 2021 (histograms under local privacy): figures 1 to 3, and theorem 8 by exact likelihoods."""

from __future__ import annotations

from itertools import product
from math import exp, isclose, log

import numpy as np
from collecting import City, Way, cities
from report import Claim, Section, Verdict

from dphist_pipeline.local.encoding import encode, places_of, sent
from dphist_pipeline.local.law import estimates
from dphist_pipeline.local.tally import Tally

EPSILON, FOLDS = "15", (3, 5, 7)
SHARE = "0.8"
WAYS = {
    "chp": Way(FOLDS, "chp"),
    "sampled": Way(FOLDS, "sampled", participation=SHARE),
    "baseline": Way(FOLDS, "split_budget"),
}
OURS = ("chp", "sampled")
INTERVALS = 9  # few enough to go through all reports; the loss does not depend on it
EPSILONS = (0.5, 3.0, 15.0)
Histograms = dict[str, list[list[float]]]


def study(quick: bool) -> Section:
    """Collects once from every city, and counts all reports for the theorem."""
    known = cities()
    shapes = {name: _shapes(city) for name, city in known.items()}
    claims = [
        *(
            Claim(
                f"Figure {number}",
                f"{name}: closer to the exact histogram than the baseline, by total absolute error, each consumer",
                "the same estimates",
                Verdict.over(
                    _off(shapes[name], way, place) < _off(shapes[name], "baseline", place)
                    for way in OURS
                    for place in range(len(FOLDS))
                ),
            )
            for number, name in enumerate(known, 1)
        ),
        Claim(
            "Theorem 8",
            "no report is more than e^ε likelier from one value than from another",
            Verdict.over(_loss(epsilon, closed=True) <= epsilon * (1 + 1e-9) for epsilon in EPSILONS),
            Verdict.over(isclose(_loss(epsilon, closed=False), epsilon) for epsilon in EPSILONS),
            note="over all reports and values. Printed intervals are closed at both ends: a value on a boundary sets "
            "two bits, and the loss is 2ε. Consumers who collude hold sums of the same reports, so no more",
        ),
    ]
    setting = (
        f"One collection each at ε = {EPSILON}, consumers of 3, 5 and 7 equal intervals. The paper's order is "
        "Baltimore, New York, San Francisco; its New York is larger; its San Francisco is not public, so that "
        "is invented."
    )
    tables = [_table(name, shapes[name]) for name in known]
    return Section(
        "LDP histograms, shapes (Zheng et al. 2021)",
        setting,
        claims,
        tables,
        series=shapes,
        contenders={name: str(way) for name, way in WAYS.items()},
        data=f"salaries of {', '.join(known)}; one collection",
    )


def _shapes(city: City) -> Histograms:
    """The histograms of every consumer: exact, and as each way estimates them."""
    question, places = WAYS["chp"].asked(city, EPSILON)
    exact = [
        _summed(np.bincount(places_of(question.parts[at.part], city.values), minlength=at.last[-1] + 1), at)
        for at in places
    ]
    found: Histograms = {"exact": [counts.tolist() for counts in exact]}
    for name, way in WAYS.items():
        question, places = way.asked(city, EPSILON)
        tally = Tally(question)
        tally.add(encode(question, city.values[sent(question, city.contributors), None]))
        found[name] = [_summed(estimates(tally, at.part), at).round(1).tolist() for at in places]
    return found


def _summed(counts: np.ndarray, at: object) -> np.ndarray:
    return np.add.reduceat(counts[: at.last[-1] + 1], at.first)  # type: ignore[attr-defined]


def _off(shape: Histograms, way: str, place: int) -> float:
    return float(np.abs(np.array(shape[way][place]) - np.array(shape["exact"][place])).sum())


def _loss(epsilon: float, closed: bool) -> float:
    """The largest log-ratio of the probabilities of a report, over all 2^K reports and pairs of values.

    Each bit is told as it is with probability e^(ε/2) / (1 + e^(ε/2)). A value sets the bit of its interval; if
    intervals are closed at both ends, a value on a boundary sets those of both.
    """
    truthful = exp(epsilon / 2) / (1 + exp(epsilon / 2))
    values = [(place,) for place in range(INTERVALS)]
    if closed:
        values += [(place, place + 1) for place in range(INTERVALS - 1)]
    bits = np.array([[place in value for place in range(INTERVALS)] for value in values])
    reports = np.array(list(product((False, True), repeat=INTERVALS)))
    told = (reports[:, None, :] == bits[None, :, :]).sum(axis=2)
    chances = told * log(truthful) + (INTERVALS - told) * log(1 - truthful)
    return float((chances.max(axis=1) - chances.min(axis=1)).max())


def _table(name: str, shape: Histograms) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [f"{fold} intervals, {place + 1}", *(f"{shape[way][number][place]:,.0f}" for way in shape)]
        for number, fold in enumerate(FOLDS)
        for place in range(fold)
    ]
    return f"Figures 1 to 3: {name}", ["interval", *shape], rows

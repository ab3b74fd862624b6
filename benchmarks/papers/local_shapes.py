"""Zheng et al. 2021 (histograms under local privacy): figures 1 to 3, and theorems 6 to 8."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, isclose, log

import numpy as np
from collecting import City, Way, cities
from collecting_as_printed import PRINTED, as_printed
from measuring import smaller
from report import Claim, Section, Verdict, shown

from dphist_pipeline.local.encoding import encode, places_of, sent_reports
from dphist_pipeline.local.law import estimates
from dphist_pipeline.local.partition import Spans
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores

MOST = 4  # standard errors; of 45 unbiased means about one in 25 studies has one beyond
RUNS = (20, 3)  # in the whole and with `--quick`
EPSILON, FOLDS = "15", (3, 5, 7)
SHARE = "0.8"
WAYS = {
    "chp": Way(FOLDS, "chp"),
    "sampled": Way(FOLDS, "sampled", participation=SHARE),
    "baseline": Way(FOLDS, "split_budget"),
}
OURS = {"chp": "CHP", "sampled": "sampling"}
INTERVALS = 9  # few enough to go through all reports; the loss does not depend on it
EPSILONS = (0.5, 3.0, 15.0)
Histograms = dict[str, list[np.ndarray]]  # by the way, for every consumer; of estimates, a row a run


def study(quick: bool) -> Section:
    """Collects from every city, and counts all reports for the theorems."""
    known, runs = cities(), RUNS[quick]
    shapes = {name: _shapes(city, runs) for name, city in known.items()}
    printed = {name: _printed_shapes(city, runs) for name, city in known.items()}
    biases, apart = {name: _bias(city) for name, city in known.items()}, {n: _apart(s) for n, s in shapes.items()}
    claims = [
        *(
            Claim(
                f"Figure {number}",
                f"{name}: {said} closer to the exact histogram than the baseline, by total absolute error, each "
                "consumer",
                _nearer(printed[name], way),
                _nearer(shapes[name], way),
                note=f"as printed, {PRINTED}",
                figures=_told(shapes[name], way),
                printed_figures=_told(printed[name], way),
            )
            for number, name in enumerate(known, 1)
            for way, said in OURS.items()
        ),
        Claim(
            "Theorem 7",
            "what CHP tells every consumer is unbiased, in every city",
            Verdict.over(bias == 0 for bias in biases.values()),
            Verdict.over(off <= MOST for off in apart.values()),
            note=f"held if every mean of {runs} estimates lies within {MOST} standard errors of the exact count; "
            "tests/statistical/test_report_intervals.py",
            figures=f"at most {', '.join(f'{off:.1f} ({name})' for name, off in apart.items())} standard errors",
            printed_figures="a value on a boundary within a consumer's interval is counted twice: by the law the "
            f"largest bias is {', '.join(f'{bias:.0f} ({name})' for name, bias in biases.items())} contributors",
        ),
        *(
            Claim(
                theorem,
                f"{who}: no report is more than e^ε likelier from one value than from another",
                Verdict.over(_of_epsilon(epsilon, closed=True) <= epsilon * (1 + 1e-9) for epsilon in EPSILONS),
                Verdict.over(isclose(_of_epsilon(epsilon, closed=False), epsilon) for epsilon in EPSILONS),
                note=f"over all reports and values of {INTERVALS} intervals{more}",
                figures="half-open intervals: the loss is ε",
                printed_figures="intervals closed at both ends: a value on a boundary sets two bits, the loss is 2ε",
            )
            for theorem, who, more in (
                ("Theorem 6", "SHP", ""),
                ("Theorem 8", "CHP", ". Consumers who collude hold sums of the same reports, so no more"),
            )
        ),
    ]
    setting = (
        f"{runs} collections at ε = {EPSILON}, consumers of 3, 5 and 7 equal intervals of the range of table 1: "
        f"{', '.join(f'{city.range} ({name})' for name, city in known.items())}; sampling asks {SHARE} of the "
        "contributors, as told of figure 5 alone. Settings of a claim: the three consumers. The paper shows one "
        "collection each. The paper's order is Baltimore, New York, San Francisco; its New York is "
        "larger; its San Francisco is not public, so that is invented."
    )
    tables = [_table(name, shapes[name]) for name in known]
    return Section(
        "LDP histograms, shapes (Zheng et al. 2021)",
        setting,
        claims,
        tables,
        series={
            name: {way: [counts.tolist() for counts in found] for way, found in shape.items()}
            for name, shape in shapes.items()
        },
        contenders={name: str(way) for name, way in WAYS.items()},
        data=f"salaries of {', '.join(known)}; {runs} collections",
        few=f"{RUNS[1]} collections in place of {RUNS[0]}",
    )


def _shapes(city: City, runs: int) -> Histograms:
    """The histograms of every consumer: exact, and as each way estimates them."""
    question, places = WAYS["chp"].asked(city, EPSILON)
    found: Histograms = {
        "exact": [
            _summed(np.bincount(places_of(question.parts[at.part], city.values), minlength=at.last[-1] + 1), at)[None]
            for at in places
        ]
    }
    for name, way in WAYS.items():
        question, places = way.asked(city, EPSILON)
        drawn = []
        for _ in range(runs):
            tally = Tally(question)
            tally.add(encode(question, city.values[sent_reports(question, city.contributors), None]))
            drawn.append([_summed(estimates(tally, at.part), at) for at in places])
        found[name] = [np.array(of_consumer) for of_consumer in zip(*drawn, strict=True)]
    return found


def _printed_shapes(city: City, runs: int) -> Histograms:
    """The same of intervals that are closed at both ends."""
    told = {name: as_printed(city, way, EPSILON, runs) for name, way in WAYS.items()}
    exact = [one.truth[None] for one in told["chp"]]
    return {"exact": exact, **{name: [one.drawn for one in found] for name, found in told.items()}}


def _summed(counts: np.ndarray, at: Spans) -> np.ndarray:
    return np.add.reduceat(counts[: at.last[-1] + 1], at.first)


def _each(shape: Histograms, way: str, place: int) -> np.ndarray:
    """The total absolute error of every run."""
    off: np.ndarray = np.abs(shape[way][place] - shape["exact"][place]).sum(axis=1)
    return off


def _off(shape: Histograms, way: str, place: int) -> MeasureResult:
    runs = [{("off", ""): off} for off in _each(shape, way, place).tolist()]
    (score,) = aggregate_scores(way, Fraction(EPSILON), runs)
    return score


def _nearer(shape: Histograms, way: str) -> Verdict:
    """The verdict on the means over the collections, by the rule of the page."""
    return Verdict.over(smaller(_off(shape, way, place), _off(shape, "baseline", place)) for place in range(len(FOLDS)))


def _told(shape: Histograms, way: str) -> str:
    """The errors of every consumer, and in how many single collections each is the nearer one."""
    told = (
        f"{fold} intervals: {shown(_off(shape, way, place))}, baseline {shown(_off(shape, 'baseline', place))}"
        for place, fold in enumerate(FOLDS)
    )
    every = [_each(shape, way, place) < _each(shape, "baseline", place) for place in range(len(FOLDS))]
    all_three = int(np.logical_and.reduce(every).sum())
    return f"{'; '.join(told)}; nearer for all three in {all_three} of {every[0].size} single collections"


def loss(truthful: float, closed: bool) -> float:
    """The largest log-ratio of the probabilities of a report, over all 2^K reports and pairs of values.

    A value sets the bit of its interval; if intervals are closed at both ends, one on a boundary sets those of both.

    Args:
        truthful: the probability that a bit is told as it is; e^(ε/2) / (1 + e^(ε/2)) in the paper.
        closed: whether intervals are closed at both ends.
    """
    values: list[tuple[int, ...]] = [(place,) for place in range(INTERVALS)]
    if closed:
        values += [(place, place + 1) for place in range(INTERVALS - 1)]
    told = chances(truthful, values)
    return float((told.max(axis=1) - told.min(axis=1)).max())


def chances(truthful: float, values: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Logarithms of the probabilities of all reports, shape (2^K, values).

    Args:
        truthful: the probability that a bit is told as it is.
        values: for each, the bits that it sets.
    """
    bits = np.array([[place in value for place in range(INTERVALS)] for value in values])
    reports = np.array(list(product((False, True), repeat=INTERVALS)))
    alike = (reports[:, None, :] == bits[None, :, :]).sum(axis=2)
    logs: np.ndarray = alike * log(truthful) + (INTERVALS - alike) * log(1 - truthful)
    return logs


def _of_epsilon(epsilon: float, closed: bool) -> float:
    return loss(exp(epsilon / 2) / (1 + exp(epsilon / 2)), closed)


def _bias(city: City) -> float:
    """The largest difference of an expected and an exact count that CHP tells as printed, in contributors."""
    return max(float(np.abs(one.mean - one.truth).max()) for one in as_printed(city, WAYS["chp"], EPSILON, 1))


def _apart(shape: Histograms) -> float:
    """How many standard errors CHP's mean estimates lie from the exact counts, at most."""
    return max(
        float(np.abs((drawn - exact).mean(axis=0) / (drawn.std(axis=0, ddof=1) / len(drawn) ** 0.5)).max())
        for drawn, exact in zip(shape["chp"], shape["exact"], strict=True)
    )


def _table(name: str, shape: Histograms) -> tuple[str, list[str], list[list[str]]]:
    rows = [
        [f"{fold} intervals, {place + 1}", *(f"{shape[way][number][0][place]:,.0f}" for way in shape)]
        for number, fold in enumerate(FOLDS)
        for place in range(fold)
    ]
    return f"Figures 1 to 3: {name}, the first collection", ["interval", *shape], rows

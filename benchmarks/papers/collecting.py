"""Repeated collections of public salaries under local privacy, measured as their consumers read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from public_data import DATA, PROJECT

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local.encoding import encode, places_of, sent_reports
from dphist_pipeline.local.law import estimates, law_of
from dphist_pipeline.local.partition import Spans, question_of, spans_of
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.spec.collection import CollectionSpec, Protocol
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores

SEED = 2021
STAND_IN = "San Francisco, invented"


@dataclass(frozen=True, eq=False)
class City:
    """Public salaries, one a contributor, shape (contributors,), and the range that consumers divide.

    Attributes:
        values: counted from the least end of the range.
        least: that end.
        top: how long the range is.
    """

    values: np.ndarray
    least: float
    top: float

    @property
    def range(self) -> str:
        """In words."""
        return f"{self.least:,} to {self.least + self.top:,}"

    @property
    def contributors(self) -> int:
        """How many there are."""
        return int(self.values.size)


@dataclass(frozen=True)
class Way:
    """Who asks for how many equal intervals each, and how contributors answer."""

    folds: tuple[int, ...]
    protocol: Protocol
    encoding: Encoding = "symmetric"
    participation: str = "1"

    def __str__(self) -> str:
        folds = " and ".join(map(str, self.folds))
        told = f"{self.protocol}, {self.encoding} encoding, consumers of {folds} intervals"
        return f"{told}, participation {self.participation}"

    def spec(self, city: City, epsilon: str) -> CollectionSpec:
        """As an office would declare it; `protocol` and `encoding` are given where a question is made of it."""
        consumers = [{"name": f"of_{fold}", "bins": fold, "epsilon": epsilon} for fold in self.folds]
        sampled = {"protocol": "sampled", "participation": self.participation}
        attributes = {"collection": "salaries", "value": "salary", "start": 0, "stop": city.top, "consumers": consumers}
        kept = sampled if self.protocol == "sampled" else {"protocol": "chp" if len(self.folds) > 1 else "shp"}
        return CollectionSpec.from_attributes({**attributes, **kept}, PROJECT)

    def asked(self, city: City, epsilon: str) -> tuple[Question, tuple[Spans, ...]]:
        """The question, and where each consumer's intervals lie in it."""
        spec = self.spec(city, epsilon)
        return question_of(spec, self.protocol, self.encoding), spans_of(spec, self.protocol)


def cities() -> dict[str, City]:
    """Gives the cities whose salaries are there, and an invented one as large as the paper's San Francisco.

    Consumers divide the range from the least to the largest salary of the paper's table 1.
    """
    found = {}
    if (path := DATA / "salaries_baltimore_fy2017.parquet").is_file():
        found["Baltimore"] = _city(pl.read_parquet(path)["annual_salary"].to_numpy(), 1_800, 250_000)
    if (path := DATA / "salaries_nyc_fy2016_subset.parquet").is_file():
        yearly = pl.read_parquet(path).filter(pl.col("pay_basis") == "per Annum")
        found["New York, part"] = _city(yearly["base_salary"].to_numpy(), 1, 297_625)
    invented = np.random.default_rng(SEED)
    found[STAND_IN] = _city(np.minimum(invented.lognormal(11, 0.6, 291_825), 515_102), 0, 515_102)
    return found


def _city(salaries: np.ndarray, least: float, most: float) -> City:
    """Salaries counted from the least one."""
    return City(salaries - least, least, most - least)


def collect(name: str, city: City, way: Way, epsilons: Sequence[str], repeat: int) -> list[MeasureResult]:
    """MSE of every consumer's histogram (at its number of intervals) and their mean, measured and by the law.

    A run encodes every salary anew; the law's MSE needs none.
    """
    found = []
    for epsilon in epsilons:
        question, places = way.asked(city, epsilon)
        truths = [_summed(np.bincount(_places(question.parts[at.part], city)), at) for at in places]
        by_law = _by_law(question, places, truths, city)
        runs = []
        for _ in range(repeat):
            tally = Tally(question)
            tally.add(encode(question, city.values[sent_reports(question, city.contributors), None]))
            errors = [
                float(np.mean((_summed(estimates(tally, at.part), at) - truth) ** 2))
                for at, truth in zip(places, truths, strict=True)
            ]
            runs.append({**measures("mse", way, errors), **measures("law_mse", way, by_law)})
        found += aggregate_scores(name, Fraction(epsilon), runs)
    return found


def bits(question: Question) -> int:
    """That a contributor sends."""
    return sum(part.intervals.bit_length() if part.encoding == "grr" else part.intervals for part in question.parts)


def on_edges(city: City, folds: tuple[int, ...]) -> float:
    """The share of salaries on an inner boundary, which two intervals closed at both ends would hold."""
    inner = [float(edge) for edge in Way(folds, "chp").asked(city, "1")[0].parts[0].edges[1:-1]]
    return float(np.isin(city.values, inner).mean())


def _places(part: Part, city: City) -> np.ndarray:
    """The interval of each salary; all lie in the range."""
    return places_of(part, city.values)


def _summed(counts: np.ndarray, at: Spans) -> np.ndarray:
    """Counts of a consumer's intervals from those of a part's; shape (intervals,)."""
    padded = np.zeros(at.last[-1] + 1)
    padded[: counts.size] = counts
    return np.add.reduceat(padded, at.first)


def _by_law(question: Question, places: Sequence[Spans], truths: Sequence[np.ndarray], city: City) -> list[float]:
    """The expected MSE of each consumer's histogram."""
    vectors = round(city.contributors * question.participation)
    return [
        float(law_of(question, question.parts[at.part], vectors).variance(np.array(at.atoms), truth).mean())
        for at, truth in zip(places, truths, strict=True)
    ]


def measures(name: str, way: Way, errors: Sequence[float]) -> dict[tuple[str, str], float]:
    """The errors of the consumers by their numbers of intervals, and their mean."""
    each = {(name, str(fold)): error for fold, error in zip(way.folds, errors, strict=True)}
    return {(name, ""): float(np.mean(errors)), **each}

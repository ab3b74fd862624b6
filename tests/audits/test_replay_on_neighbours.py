"""Replay: with frozen answers a mechanism does the same on a neighbour, and measurements lose what they took.

Over every mechanism of the registry, every listed value of its settings, and numbers from their ranges.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audited_ways import WAYS, Way, serves
from grey_box import Audited, Counts, Verdict
from hypothesis import HealthCheck, assume, given, settings, target
from hypothesis import strategies as st

from dphist_pipeline import mechanisms
from examples import mostly_audited

SHAPES = [(1,), (2,), (3,), (4,), (6,), (8,), (11,), (12,), (3, 4), (2, 3, 2)]
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(20)]
HUGE = [1 << 51, (1 << 52) - 1, 1 << 52, (1 << 52) + 3]
KINDS = ["one row more", "one row less", "one row elsewhere", "a unit more", "a unit less", "another unit"]


@st.composite
def audits(draw: st.DrawFn, way: Way) -> tuple[Audited, Counts, Counts]:
    """A mechanism, and two sets of counts that one privacy unit tells apart."""
    mechanism = draw(way.mechanisms)
    shape, epsilon = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(EPSILONS))
    kind, rows = draw(st.sampled_from(KINDS)), draw(st.integers(1, 4))
    substitute = kind in ("one row elsewhere", "another unit")
    sensitivity = rows * (2 if substitute else 1)
    assume(serves(mechanism, shape, sensitivity, epsilon))
    cells = math.prod(shape)
    here = draw(counts(cells))
    there = here + draw(moves(kind, rows, here))
    return Audited(mechanism, shape, sensitivity, epsilon), here, there


@st.composite
def counts(draw: st.DrawFn, cells: int) -> Counts:
    """Counts of any size, and often a few peaks among equal cells: there a score moves furthest."""
    count = st.integers(0, 12) | st.sampled_from([0, 1, 1000, *HUGE])
    if draw(st.booleans()):
        return np.array(draw(st.lists(count, min_size=cells, max_size=cells)), dtype=np.int64)
    flat = np.full(cells, draw(st.sampled_from([0, 0, 3])), dtype=np.int64)
    for peak in draw(st.lists(st.integers(0, cells - 1), max_size=3)):
        flat[peak] = draw(st.integers(0, 3) | st.integers(0, 12) | st.sampled_from([999_999, 1_000_000]))
    return flat


@st.composite
def moves(draw: st.DrawFn, kind: str, rows: int, here: Counts) -> Counts:
    """What one unit changes in the counts, in at most so many rows."""
    many = 1 if kind.startswith("one") else rows
    cells, peak = here.size, int(here.argmax())
    place = st.integers(0, cells - 1) | st.just(peak)
    places = st.lists(place, min_size=many, max_size=many) | place.map(lambda all_in: [all_in] * many)
    more = np.bincount(draw(places), minlength=cells)
    if kind.endswith("more"):
        return more
    less = np.bincount(draw(places), minlength=cells)
    return -less if kind.endswith("less") else more - less


def replayed(way: Way, examples: int) -> Verdict:
    """All that replays on so many neighbours find, and how tight they were; searches for tight ones."""
    found: set[str] = set()
    tightest: dict[str, float] = {}

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(audits(way))
    def replay(audit: tuple[Audited, Counts, Counts]) -> None:
        audited, here, there = audit
        verdict = audited.replay(here, there)
        found.update(verdict.findings)
        for measurement, part in verdict.tightness.items():
            target(part, label=measurement)
            tightest[measurement] = max(tightest.get(measurement, 0.0), part)

    replay()
    return Verdict(sorted(found), tightest)


def replayed_enough(way: Way, examples: int, choosing: int) -> Verdict:
    """As `replayed`, and more where measurements choose: few neighbours move a score as far as it may."""
    verdict = replayed(way, examples)
    more = replayed(way, choosing) if {"choose", "choose_buckets"} & verdict.tightness.keys() else Verdict([])
    tightness = {
        measurement: max(part, more.tightness.get(measurement, 0.0)) for measurement, part in verdict.tightness.items()
    }
    return Verdict(verdict.findings + more.findings, tightness)


# Of each mechanism one way, the first; `make audit` tries them all.
FIRST = [place for place, way in enumerate(WAYS) if way.name not in {before.name for before in WAYS[:place]}]


@pytest.mark.parametrize("way", mostly_audited(WAYS, FIRST), ids=str)
def test_a_mechanism_does_the_same_on_neighbours_and_no_measurement_loses_more_than_it_took(way: Way) -> None:
    assert replayed_enough(way, 10, 20).findings == []


@pytest.mark.parametrize(
    ("examples", "choosing"),
    [pytest.param(40, 120, marks=pytest.mark.audit), pytest.param(150, 500, marks=pytest.mark.soak)],
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_same_holds_on_many_neighbours(way: Way, examples: int, choosing: int) -> None:
    verdict = replayed_enough(way, examples, choosing)
    assert verdict.findings == []
    assert min(verdict.tightness.values()) > 0.05  # else these neighbours prove little


def test_every_mechanism_and_every_listed_value_of_its_settings_is_audited() -> None:
    assert {way.name for way in WAYS} == set(mechanisms.names())
    taken: dict[str, set[Any]] = {}
    for way in WAYS:
        for name, value in way.settings:
            taken.setdefault(f"{way.name}.{name}", set()).add(str(value))
    assert taken["noise_first.penalty"] == {"paper", "bic", "auto"}
    assert taken["dphr.order"] == {"noisy", "exponential"}
    assert taken["structure_first.count_ceiling"] == {"None", "number"}
    by_variance = {"PaperVariance(paper=3.0)", "NoiseMultiple(noise=3.0)"}
    assert taken["dpcube.threshold"] == {"auto", "greedy", "pruned", "number"} | by_variance

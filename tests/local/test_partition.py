"""Boundaries merged into one partition, and the encoding that `auto` takes: both against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from collection_scenario import CITY, SCHOOLS, STATE, collected
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.local.encoding import encode
from dphist_pipeline.local.law import estimates
from dphist_pipeline.local.partition import merge_boundaries, question_of, shares, spans, spans_of
from dphist_pipeline.local.tally import Tally
from dphist_pipeline.spec.collection import CollectionSpec

QUICK = settings(max_examples=150, deadline=None, derandomize=True)
CUTS = st.lists(
    st.lists(st.fractions(min_value=0, max_value=10, max_denominator=12), max_size=12).map(
        lambda inner: tuple(sorted({Fraction(0), Fraction(10), *inner}))
    ),
    min_size=1,
    max_size=5,
)


def test_a_tenth_and_two_tenths_meet_three_tenths() -> None:
    steps = {"name": "steps", "epsilon": 1, "width": "0.1"}
    cut = {"name": "cut", "epsilon": 1, "edges": [0, 0.3, 1]}
    (part,) = question_of(collected(start=0, stop=1, consumers=[steps, cut])).parts
    assert 0.1 + 0.2 != 0.3
    assert part.edges == tuple(Fraction(tenth, 10) for tenth in range(11))


def test_thirds_and_quarters_of_a_range_make_six_intervals() -> None:
    readers = [{"name": f"a{bins}", "epsilon": 1, "bins": bins} for bins in (3, 4)]
    spec = collected(start=0, stop=12, consumers=readers)
    assert question_of(spec).parts[0].edges == (0, 3, 4, 6, 8, 9, 12)
    thirds, quarters = spans_of(spec)
    assert (thirds.first, thirds.last, thirds.atoms) == ((0, 2, 4), (1, 3, 5), (2, 2, 2))
    assert (quarters.first, quarters.last, quarters.atoms) == ((0, 1, 3, 5), (0, 2, 4, 5), (1, 2, 2, 1))


@pytest.mark.slow
@QUICK
@given(cuts=CUTS)
def test_spans_are_the_merged_intervals_that_lie_within_each_interval(cuts: list[tuple[Fraction, ...]]) -> None:
    boundaries = merge_boundaries(cuts)
    assert list(boundaries) == sorted(set(sum(cuts, ())))
    atoms = list(pairwise(boundaries))
    for number, edges in enumerate(cuts):
        found = spans(number, boundaries, edges)
        inside = [
            [place for place, (low, high) in enumerate(atoms) if start <= low and high <= stop]
            for start, stop in pairwise(edges)
        ]
        assert found.part == number
        assert [list(range(first, last + 1)) for first, last in zip(found.first, found.last, strict=True)] == inside
        assert list(found.atoms) == [len(within) for within in inside]
        assert sum(found.atoms) == len(atoms)


def test_a_split_budget_asks_each_consumer_apart_at_its_share_of_the_least_epsilon() -> None:
    spec = collected(protocol="split_budget", consumers=[CITY, STATE, {**SCHOOLS, "epsilon": "1/2"}])
    asked = question_of(spec)
    assert [part.edges for part in asked.parts] == [reader.edges for reader in spec.consumers]
    assert {part.epsilon for part in asked.parts} == {Fraction(1, 6)}
    assert [where.part for where in spans_of(spec)] == [0, 1, 2]
    assert all(set(where.atoms) == {1} for where in spans_of(spec))


def test_chp_asks_once_at_the_least_epsilon() -> None:
    asked = question_of(collected(consumers=[{**CITY, "epsilon": 3}, STATE]))
    assert [part.epsilon for part in asked.parts] == [2] and asked.epsilon == 2


def test_the_question_says_what_the_spec_says() -> None:
    asked = question_of(collected(round="2026-03-02", values_per_contributor=3, values="summed", encoding="symmetric"))
    assert (asked.collection, asked.round, asked.values, asked.combine) == ("ages", "2026-03-02", 3, "summed")
    assert asked.participation == 1 and asked.parts[0].encoding == "symmetric"
    sampled = collected(protocol="sampled", participation="0.8")
    assert question_of(sampled).participation == Fraction(4, 5)
    assert question_of(sampled, "chp").participation == 1


@pytest.mark.parametrize("protocol", ["chp", "split_budget"])
def test_reports_added_up_over_spans_are_each_consumers_histogram(protocol: str) -> None:
    # At epsilon 25 and more, grr sends another number than the true one of 4 once in 10^10 reports.
    readers = [{**reader, "epsilon": 50} for reader in (STATE, SCHOOLS)]
    spec = collected(consumers=readers, protocol=protocol, encoding="grr")
    values = np.array([0.0, 6.0, 17.9, 25.0, 65.0, 100.0, 100.1, np.nan])
    tally = Tally(question_of(spec))
    tally.add(encode(tally.question, values[:, None]))
    for where, reader in zip(spans_of(spec), spec.consumers, strict=True):
        atoms = estimates(tally, where.part)
        found = [atoms[first : last + 1].sum() for first, last in zip(where.first, where.last, strict=True)]
        true, _ = np.histogram(values[:6], bins=np.array(reader.edges, dtype=np.float64))
        assert found == pytest.approx(true.tolist(), abs=1e-6)


def test_shares_are_of_the_width() -> None:
    assert shares(collected().consumers[2]).tolist() == pytest.approx([0.06, 0.12, 0.47, 0.35], abs=1e-15)


def total_variance(spec: CollectionSpec, encoding: str, contributors: float, sent: float) -> float:
    """The sum over all published intervals of one part, written out anew from the protocols' definitions."""
    boundaries = sorted({edge for reader in spec.consumers for edge in reader.edges})
    epsilon, size = float(min(reader.epsilon for reader in spec.consumers)), len(boundaries) - 1
    p, q = {
        "symmetric": (1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2))),
        "optimized": (0.5, 1 / (1 + math.exp(epsilon))),
        "grr": (math.exp(epsilon) / (math.exp(epsilon) + size), 1 / (math.exp(epsilon) + size)),
    }[encoding]
    total = 0.0
    for reader in spec.consumers:
        for low, high in pairwise(reader.edges):
            atoms = sum(low <= start < high for start in boundaries[:-1])
            true = contributors * float((high - low) / (spec.stop - spec.start))
            reported, rest = sent * true, sent * (contributors - true)
            if encoding == "grr":
                inside, outside = p + (atoms - 1) * q, atoms * q
                noise = reported * inside * (1 - inside) + rest * outside * (1 - outside)
            else:
                noise = reported * (p * (1 - p) - q * (1 - q)) + sent * contributors * atoms * q * (1 - q)
            total += noise / (p - q) ** 2 / sent**2 + true * (1 - sent) / sent
    return total


@pytest.mark.parametrize("sent", ["1", "1/3"])
@pytest.mark.parametrize("epsilon", ["0.01", "4", "30"])
@pytest.mark.parametrize("bins", [[1], [3, 4], [3, 5, 7], [60, 89]])
def test_auto_takes_the_encoding_of_least_total_variance(bins: list[int], epsilon: str, sent: str) -> None:
    sampled = {"protocol": "sampled", "participation": sent} if sent != "1" else {}
    readers = [{"name": f"a{size}", "epsilon": epsilon, "bins": size} for size in bins]
    spec = collected(consumers=readers, **sampled)
    by_encoding = {
        encoding: total_variance(spec, encoding, 1000.0, float(Fraction(sent)))
        for encoding in ("symmetric", "optimized", "grr")
    }
    chosen = question_of(spec).parts[0].encoding
    assert by_encoding[chosen] <= min(by_encoding.values()) * (1 + 1e-9), by_encoding


def test_the_choice_varies_and_does_not_depend_on_the_unit_of_the_range() -> None:
    found = {}
    for name, bins, epsilon in (("fine, private", 500, 0.1), ("fine", 500, 3), ("coarse", 2, 5)):
        for stop in (1, 10**6):
            spec = collected(stop=stop, consumers=[{"name": "a", "epsilon": epsilon, "bins": bins}])
            found[name, stop] = question_of(spec).parts[0].encoding
    assert set(found.values()) == {"optimized", "grr"}
    assert all(found[name, 1] == found[name, 10**6] for name, _ in found)


def test_summed_values_never_take_grr() -> None:
    reader = {"name": "a", "epsilon": 5, "bins": 2}
    assert question_of(collected(consumers=[reader], values_per_contributor=2)).parts[0].encoding == "grr"
    summed = collected(consumers=[reader], values_per_contributor=2, values="summed")
    assert question_of(summed).parts[0].encoding in ("symmetric", "optimized")


def test_a_tie_goes_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from dphist_pipeline.local import partition

    law = partition.law_of

    class AlmostFlat:
        """Variances that differ by what machines round differently."""

        def __init__(self, part: object) -> None:
            self.encoding = part.encoding  # type: ignore[attr-defined]

        def variance(self, atoms: object, count: object) -> object:
            return count * 0 + {"symmetric": 1, "optimized": 1 - 1e-14, "grr": 1 - 2e-14}[self.encoding]  # type: ignore

    monkeypatch.setattr(partition, "law_of", lambda question, part, vectors: AlmostFlat(part))
    assert question_of(collected()).parts[0].encoding == "symmetric"
    monkeypatch.setattr(partition, "law_of", law)
    assert question_of(collected()).parts[0].encoding != "symmetric"

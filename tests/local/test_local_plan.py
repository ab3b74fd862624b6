"""`dphist local check` and `plan`: costs and errors told before anybody is asked, and true."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collection_scenario import CITY, SCHOOLS, STATE, VALID, collected
from error_codes import coded
from office import Office, Ran

from dphist_pipeline.errors import Refused
from dphist_pipeline.local.costs import QuestionDesign, plan_of, remarks, write_question
from dphist_pipeline.local.partition import spans_of
from dphist_pipeline.local.question import Question
from dphist_pipeline.spec.collection import CollectionSpec

# A standard error within 15 % of the truth; a sample of RUNS variances misses that once in 10^10.
RUNS = 2000
BAND = (0.85, 1.15)
CONTRIBUTORS = 1000


class Collected(Office):
    """An office with the collection's spec."""

    def local(self, command: str, *more: str | Path, **changes: Any) -> Ran:
        """Runs `dphist local COMMAND spec.yaml`."""
        fields = {name: value for name, value in {**VALID, **changes}.items() if value is not ...}
        text = f"type: dphist_pipeline.LocalCollection\nattributes: {json.dumps(fields)}\n"
        (self.folder / "spec.yaml").write_text(text)
        return self.run("local", command, self.folder / "spec.yaml", *more)


@pytest.fixture
def collecting(office: Office) -> Collected:
    """An office that asks contributors."""
    return Collected(office.folder)


def chances(encoding: str, epsilon: float, size: int) -> tuple[float, float]:
    """p and q as the protocols define them."""
    if encoding == "grr":
        return math.exp(epsilon) / (math.exp(epsilon) + size), 1 / (math.exp(epsilon) + size)
    if encoding == "optimized":
        return 0.5, 1 / (math.exp(epsilon) + 1)
    return 1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2))


def simulated(spec: CollectionSpec, way: QuestionDesign, number: int, true: list[int]) -> np.ndarray:
    """Standard deviations of a consumer's estimates over RUNS collections, by plain NumPy.

    Args:
        true: values in each interval of the part; what is missing to all contributors lies in none.
    """
    rng = np.random.default_rng(20_260_302 + number)
    where = spans_of(spec, way.protocol)[number]
    part = way.question.parts[where.part]
    p, q = chances(part.encoding, float(part.epsilon), part.intervals)
    sent = float(way.question.participation)
    counts = rng.binomial([*true, CONTRIBUTORS - sum(true)], sent, (RUNS, part.intervals + 1))
    reports = counts.sum(axis=1, keepdims=True)
    if part.encoding == "grr":
        symbols = np.full((part.intervals + 1, part.intervals + 1), q) + np.eye(part.intervals + 1) * (p - q)
        ones = sum(rng.multinomial(counts[:, row], symbols[row]) for row in range(part.intervals + 1))
        ones = np.asarray(ones)[:, :-1]
    else:
        ones = rng.binomial(counts[:, :-1], p) + rng.binomial(reports - counts[:, :-1], q)
    estimates = (ones - reports * q) / (p - q) / sent
    sums = np.stack(
        [estimates[:, first : last + 1].sum(axis=1) for first, last in zip(where.first, where.last, strict=True)],
        axis=1,
    )
    return sums.std(axis=0, ddof=1)


PROTOCOLS: list[dict[str, object]] = [
    {},
    {"protocol": "split_budget"},
    {"protocol": "sampled", "participation": "0.6"},
    {"consumers": [{**SCHOOLS, "epsilon": 3}], "protocol": "shp"},
]


@pytest.mark.slow
@pytest.mark.parametrize("change", PROTOCOLS, ids=["chp", "split_budget", "sampled", "shp"])
def test_planned_errors_are_those_of_simulated_collections(change: dict[str, object]) -> None:
    spec = collected(**change)
    plan = plan_of(spec, CONTRIBUTORS)
    for way in plan.ways:
        for number, where in enumerate(spans_of(spec, way.protocol)):
            edges = way.question.parts[where.part].edges
            even = [int(CONTRIBUTORS * (high - low) / 100) for low, high in pairwise(edges)]
            ratio = way.errors[number].even / simulated(spec, way, number, even)
            assert ratio.min() > BAND[0] and ratio.max() < BAND[1], (way.protocol, way.encodings, ratio)


@pytest.mark.slow
@pytest.mark.parametrize("change", PROTOCOLS, ids=["chp", "split_budget", "sampled", "shp"])
def test_the_worst_error_is_reached_by_none_or_by_all_values_and_never_passed(change: dict[str, object]) -> None:
    spec = collected(**change)
    for way in plan_of(spec, CONTRIBUTORS).ways:
        where = spans_of(spec, way.protocol)[-1]
        intervals = way.question.parts[where.part].intervals
        largest = np.zeros(len(where.atoms))
        for held in (0, CONTRIBUTORS // 2, CONTRIBUTORS):
            for interval, first in enumerate(where.first):
                true = [held * (place == first) for place in range(intervals)]
                largest[interval] = max(
                    largest[interval], simulated(spec, way, len(spec.consumers) - 1, true)[interval]
                )
        ratio = way.errors[-1].worst / largest
        assert ratio.min() > BAND[0] and ratio.max() < BAND[1], (way.protocol, way.encodings, ratio)


def test_several_values_a_contributor_are_as_many_values() -> None:
    several = plan_of(collected(values_per_contributor=4), 250)
    one = plan_of(collected(), 1000)
    assert np.allclose(several.asked.errors[0].even, one.asked.errors[0].even)
    summed = plan_of(collected(values_per_contributor=4, values="summed"), 250)
    assert np.allclose(summed.asked.errors[0].even, one.asked.errors[0].even)
    assert {way.encodings for way in summed.encodings} == {"symmetric", "optimized"}


def test_bits_and_bytes_are_those_of_packed_reports() -> None:
    def sizes(**change: object) -> dict[tuple[str, str], tuple[int, int]]:
        return {
            (way.protocol, way.encodings): (way.question.contributor_bits, way.question.contributor_bytes)
            for way in plan_of(collected(**change), 100).ways
        }

    # 20 intervals of city and 4 of state share all boundaries but 6 and 18 of schools: 22 in all.
    assert sizes(encoding="symmetric") == {
        ("chp", "symmetric"): (22, 3),
        ("chp", "optimized"): (22, 3),
        ("chp", "grr"): (5, 1),
        ("split_budget", "symmetric"): (20 + 4 + 4, 3 + 1 + 1),
        ("split_budget", "optimized"): (20 + 4 + 4, 3 + 1 + 1),
        ("split_budget", "grr"): (5 + 3 + 3, 1 + 1 + 1),
    }
    assert sizes(encoding="symmetric", values_per_contributor=5)["chp", "grr"] == (25, 5)
    # Sums of up to 5 have three digits.
    assert sizes(encoding="symmetric", values_per_contributor=5, values="summed")["chp", "symmetric"] == (66, 9)


def test_a_plan_compares_what_else_could_serve_the_same_consumers() -> None:
    def others(**change: object) -> list[str]:
        return list(dict.fromkeys(way.protocol for way in plan_of(collected(**change), 100).instead))

    assert others() == ["split_budget"] and others(protocol="split_budget") == ["chp"]
    assert others(protocol="sampled", participation="1/2") == ["chp", "split_budget"]
    assert others(protocol="shp", consumers=[CITY]) == [] == others(consumers=[CITY])
    assert others(protocol="sampled", participation="1/2", consumers=[CITY]) == ["shp"]
    tiny = [{**reader, "epsilon": "0.000001"} for reader in (CITY, STATE)]
    assert others(consumers=tiny) == []


@pytest.mark.parametrize("change", PROTOCOLS, ids=["chp", "split_budget", "sampled", "shp"])
def test_a_plan_has_every_protocol_by_every_encoding_and_the_declared_one(change: dict[str, object]) -> None:
    plan = plan_of(collected(**change), 100)
    for protocol in {way.protocol for way in plan.ways}:
        encodings = [way.encodings for way in plan.ways if way.protocol == protocol]
        assert encodings[:3] == ["symmetric", "optimized", "grr"] and len(set(encodings)) == len(encodings)
    assert plan.asked.question in [way.question for way in plan.ways]


def test_a_declared_mixture_of_encodings_is_one_of_the_ways(collecting: Collected) -> None:
    mixed: dict[str, Any] = {"protocol": "split_budget", "consumers": [CITY, {**STATE, "epsilon": 1, "bins": 2}]}
    plan = plan_of(collected(**mixed), 100)
    assert plan.asked.encodings == "optimized, grr" and plan.encodings[-1].question == plan.asked.question
    out = collecting.local("plan", **mixed).out
    assert re.search("^split_budget +optimized, grr .*as declared *$", out, re.MULTILINE)
    assert re.search("^consumer +interval +symmetric +optimized +grr +auto *$", out, re.MULTILINE)


def test_an_office_is_told_what_it_must_not_conclude() -> None:
    said = " ".join(remarks(collected(protocol="sampled", participation="4/5", values_per_contributor=2)))
    assert "sent with probability 0.8 only does not lower epsilon" in said
    assert "costs every contributor epsilon 2 more" in said
    assert "the least of all consumers; so state (2) get no more" in said
    assert "reports exactly 2 values" in said
    assert "in no interval" in said
    split = " ".join(remarks(collected(protocol="split_budget", nonnegative=True)))
    assert "at epsilon 1/3; together they spend 1" in split and "published is biased" in split
    assert "least of all consumers" not in " ".join(remarks(collected(consumers=[CITY, SCHOOLS])))


def test_a_question_is_written_once_and_never_over_another(tmp_path: Path) -> None:
    file, asked = tmp_path / "question.json", plan_of(collected(), 10).asked.question
    assert write_question(asked, file) and not write_question(asked, file)
    assert Question.from_json(file.read_bytes()) == asked
    other = plan_of(collected(round="2026-03-02"), 10).asked.question
    before = file.read_bytes()
    with pytest.raises(Refused, check=coded("question_exists"), match="holds something else"):
        write_question(other, file)
    with pytest.raises(Refused, check=coded("question_exists"), match="cannot be written: No such file or directory"):
        write_question(asked, tmp_path / "none" / "question.json")
    with pytest.raises(Refused, check=coded("question_exists"), match="holds something else"):
        write_question(asked, tmp_path)
    assert file.read_bytes() == before


def test_check_says_what_a_collection_is(collecting: Collected) -> None:
    ran = collecting.local("check", values_per_contributor=2)
    assert (ran.code, ran.err) == (0, "")
    assert "spends epsilon 2: 2 values, each 1, separate" in ran.out
    assert "ages_schools" in ran.out and "22 by" in ran.out
    facts = collecting.local("check", "--json", values_per_contributor=2).json
    assert facts["epsilon"] == "2" and facts["intervals_asked"] == [22]
    assert facts["digest"] == collected(values_per_contributor=2).digest


def test_a_refusal_is_one_message(collecting: Collected) -> None:
    for command in ("check", "plan"):
        ran = collecting.local(command, protocol="shp")
        assert (ran.code, ran.out) == (1, "") and "attributes.protocol: shp serves one consumer" in ran.err


def test_a_plan_shows_costs_and_errors_of_each_way(collecting: Collected) -> None:
    ran = collecting.local("plan", "--contributors", "5000")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["chp", "grr", "22", "5", "1", "1"] in lines
    plan = plan_of(collected(), 5000)
    for protocol in ("chp", "split_budget"):
        ways = [way for way in plan.ways if way.protocol == protocol]
        assert ["schools", "[0,", "6)", *(f"{way.errors[2].even[0]:.0f}" for way in ways)] in lines
        assert f"with 5,000 contributors, by {protocol}\n" in ran.out
        assert [protocol, "optimized"] in [line[:2] for line in lines]
    assert "with 5,000 contributors" in ran.out and "[65, 100]" in ran.out


def test_json_holds_the_error_of_every_interval(collecting: Collected) -> None:
    facts = collecting.local("plan", "--json").json
    assert facts["contributors"] == 10_000 and facts["asked"]["bytes"] in (1, 3)
    city = facts["errors"][0]
    assert city["consumer"] == "city" and len(city["edges"]) == 21
    assert {way["encoding"] for way in city["ways"][:3]} == {"symmetric", "optimized", "grr"}
    for way in city["ways"]:
        assert all(0 < even <= worst for even, worst in zip(way["even"], way["worst"], strict=True))


def test_the_question_goes_to_a_file_for_contributors(collecting: Collected) -> None:
    file = collecting.folder / "question.json"
    assert "Wrote the question" in collecting.local("plan", "--question", file).out
    assert Question.from_json(file.read_bytes()).digest == collecting.local("check", "--json").json["question"]
    assert "Already there: the question" in collecting.local("plan", "--question", file).out
    again = collecting.local("plan", "--question", file, stop=200, consumers=[CITY])
    assert again.code == 1 and "declare a new `round`" in again.err


LONG = [
    {"name": f"the_name_of_a_consumer_{number}", "epsilon": number + 1, "bins": number * 7 + 1} for number in range(12)
]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"consumers": [CITY]},
        {"consumers": LONG, "protocol": "split_budget"},
        {"protocol": "sampled", "participation": "0.123456789", "values_per_contributor": 2, "round": "2026-03-02"},
        {"start": -(10**14), "stop": 10**14, "consumers": [{"name": "far", "epsilon": 1, "bins": 3}]},
    ],
)
def test_everything_fits_eighty_columns(collecting: Collected, changes: dict[str, Any]) -> None:
    for command, *more in (["check"], ["plan", "--contributors", "1000000000"]):
        ran = collecting.local(command, *more, **changes)
        assert (ran.code, ran.err) == (0, "")
        long = [line for line in ran.out.splitlines() if len(line.rstrip()) > 80 and "valid spec" not in line]
        assert long == [], long

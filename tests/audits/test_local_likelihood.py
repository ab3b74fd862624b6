"""No report of the local model tells more than epsilon: exactly, for every report, and as a black box sees it.

The same two find the faults that are planted in `local_ways`; `make audit` has the long runs.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from exact_likelihood import Likelihoods, Losses, Outcomes, likelihoods, losses, unit_of
from local_ways import LOCAL_FAULTS, LOCAL_WAYS, LocalWay, Values, asked, sent

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local import encoding
from dphist_pipeline.local._coins import Chance
from dphist_pipeline.local.question import Question
from examples import mostly_audited

ENCODINGS: list[Encoding] = ["symmetric", "optimized", "grr"]
FAULTS = {fault.name: fault for fault in LOCAL_FAULTS}
SLOW = "a local report repeated with fresh noise"


def one_report(question: Question, values: Values) -> tuple[int, ...]:
    return tuple(sent(question, values).ravel().tolist())


def told(question: Question, lists: list[list[float]]) -> Losses:
    return losses(
        question, lambda asked, own: one_report(asked, encoding.choose_values(own, asked.values)[None, :]), lists
    )


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("intervals", [1, 2, 3, 4])
def test_no_report_is_likelier_by_more_than_e_to_the_epsilon(kind: Encoding, intervals: int) -> None:
    found = LocalWay("", asked(kind, intervals)).likelihoods()
    assert found.findings == [] and found.most <= 1 + 1e-12


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("intervals", [2, 3, 4])
def test_between_any_two_intervals_some_report_tells_epsilon_exactly(kind: Encoding, intervals: int) -> None:
    for first in range(intervals):
        for second in range(first):
            found = told(asked(kind, intervals), [[first + 0.5], [second + 0.5]])
            assert found.reached and found.findings == []


@pytest.mark.parametrize(
    ("kind", "part"),
    [("symmetric", 0.5), ("optimized", math.log((1 + math.e) / 2)), ("grr", 1.0)],
)
def test_a_value_in_no_interval_differs_by_one_bit_or_one_number(kind: Encoding, part: float) -> None:
    assert told(asked(kind, 3), [[0.5], [math.nan]]).most == pytest.approx(part)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_values_in_the_same_interval_or_in_none_are_told_apart_by_nothing(kind: Encoding) -> None:
    for alike in ([1.0, 1.5, np.nextafter(2.0, 0.0)], [3.0, 3.7, 4.0], [math.nan, math.inf, -0.1, 4.1, -math.inf]):
        laws = [likelihoods(asked(kind), lambda own=own: one_report(asked(kind), np.array([[own]]))) for own in alike]  # type: ignore[misc]
        assert all(law == laws[0] for law in laws)


@pytest.mark.slow
@pytest.mark.parametrize("way", LOCAL_WAYS, ids=str)
def test_a_way_to_answer_tells_its_epsilon_and_no_more(way: LocalWay) -> None:
    found = way.likelihoods()
    assert found.findings == [] and found.reached


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["symmetric", pytest.param("optimized", marks=pytest.mark.soak)])
def test_three_summed_values_spend_three_times_epsilon(kind: Encoding) -> None:
    found = LocalWay("", asked(kind, 2, "1/5", values=3, combine="summed")).likelihoods()
    assert found.findings == [] and found.reached
    assert found.power * found.unit == Fraction(3, 5)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_sampling_lowers_no_epsilon(kind: Encoding) -> None:
    found = told(asked(kind, 3, participation=Fraction(1, 4)), [[0.5], [1.5]])
    assert found.reached and found.most == pytest.approx(1)


@pytest.mark.parametrize("name", mostly_audited(FAULTS, [0]))
def test_the_likelihoods_find_a_planted_fault(name: str) -> None:
    found = FAULTS[name].likelihoods()
    assert found.findings and found.most > 1.4


@pytest.mark.parametrize("name", mostly_audited([name for name in FAULTS if name != SLOW], [0]))
def test_the_black_box_finds_a_planted_fault_in_what_contributors_send(name: str) -> None:
    assert FAULTS[name].bound().sure > FAULTS[name].question.epsilon


@pytest.mark.audit
def test_the_black_box_finds_what_a_forgetful_record_sends() -> None:
    assert FAULTS[SLOW].bound().sure > FAULTS[SLOW].question.epsilon


@pytest.mark.parametrize("way", [way for way in LOCAL_WAYS if way.trials >= 10**6], ids=str)
def test_the_black_box_comes_near_epsilon_and_stays_below(way: LocalWay) -> None:
    bound = way.bound(60_000)
    assert bound.shown > 0.5 and bound.sure <= way.question.epsilon


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
def test_what_contributors_send_together_is_what_each_sends_alone(kind: Encoding) -> None:
    # So that what holds of one report of the black box holds of the likelihoods, and the other way round.
    question = asked(kind, 2)
    law = likelihoods(question, lambda: one_report(question, np.array([[0.5]])))
    counts = Counter(sent(question, np.full((40_000, 1), 0.5)).ravel().tolist())
    over = math.prod(
        (weight + math.e ** (power * float(unit_of(question)))) ** times for (weight, power), times in law.over.items()
    )
    assert {(report,) for report in counts} == set(law.of)
    for (report,), polynomial in ((report, law.of[report]) for report in law.of if isinstance(report, tuple)):
        chance = sum(float(factor) * math.exp(power / 2) for power, factor in polynomial.items()) / over
        assert abs(counts[report] - 40_000 * chance) < 8 * math.sqrt(40_000 * chance * (1 - chance))


def test_every_outcome_comes_once_and_probabilities_add_up() -> None:
    chance = Chance(2, Fraction(1))
    outcomes = Outcomes(Fraction(1), {chance: 3})
    assert len({bytes(run) for run in outcomes.of(lambda: outcomes.coins(chance, 1).tobytes())}) == 8  # type: ignore[arg-type]
    question = asked("grr", 3)
    law = likelihoods(question, lambda: one_report(question, np.array([[0.5]])))
    assert law.total()
    wrong = {report: polynomial for report, polynomial in law.of.items() if report != (1,)}
    assert not Likelihoods(wrong, law.over).total()


def test_a_likelihood_is_a_fraction_of_powers() -> None:
    # grr over three intervals and none, e^(1/2) = u: the number is kept with u² / (3 + u²), another has 1 / (3 + u²).
    question = asked("grr", 3)
    law = likelihoods(question, lambda: one_report(question, np.array([[0.5]])))
    assert law.of == {(0,): {2: Fraction(1)}, **{(other,): {0: Fraction(1)} for other in (1, 2, 3)}}
    assert law.over == Counter({(3, 2): 1})


def test_losses_are_compared_without_rounding() -> None:
    # u² against 1 reaches m = 2; one part in 10^30 more, in a coefficient or in the power, is found.
    over: Counter[tuple[int, int]] = Counter()
    one = Likelihoods({"a": {0: Fraction(1)}}, over)
    just = Losses(2, Fraction(1, 2))
    just.compare("", Likelihoods({"a": {2: Fraction(1)}}, over), one)
    assert just.reached and just.findings == []
    beyond = Losses(2, Fraction(1, 2))
    beyond.compare("", Likelihoods({"a": {2: 1 + Fraction(1, 10**30)}}, over), one)
    assert not beyond.reached and len(beyond.findings) == 1
    never = Losses(2, Fraction(1, 2))
    never.compare("", one, Likelihoods({}, over))
    assert never.most == math.inf and len(never.findings) == 1


def test_the_unit_divides_half_of_every_epsilon() -> None:
    two = LOCAL_WAYS[[way.name for way in LOCAL_WAYS].index("local optimized, two parts")].question
    assert [part.epsilon for part in two.parts] == [Fraction(1, 3), Fraction(2, 3)]
    assert unit_of(two) == Fraction(1, 6)


def test_a_record_is_kept_between_two_questions(tmp_path: Path) -> None:
    for name, sends_the_same in (("local symmetric, asked twice", True), (SLOW, False)):
        way = next(way for way in [*LOCAL_WAYS, *LOCAL_FAULTS] if way.name == name)
        first, second = np.split(way.send(way.question, np.full((40, 1), 0.5)), 2, axis=1)
        assert np.array_equal(first, second) == sends_the_same

"""The question: what it spends and how long its reports are; and that hostile JSON is refused, and nothing else."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import FrozenInstanceError, replace
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from error_codes import coded
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local.question import (
    LEAST_EPSILON,
    LONGEST_QUESTION,
    MOST_EPSILON,
    MOST_INTERVALS,
    MOST_PARTS,
    MOST_VALUES,
    Part,
    Question,
)
from examples import examples

HOURS = Part((Fraction(0), Fraction(7, 2), Fraction(24)), Fraction(1, 2), "symmetric")
ASKED = Question("hours", (HOURS,))
FACTS = json.loads(ASKED.to_json())


def text_with(**facts: Any) -> str:
    return json.dumps({**FACTS, **facts})


def text_of_part(**facts: Any) -> str:
    return text_with(parts=[{**FACTS["parts"][0], **facts}])


def refused(text: str | bytes) -> str:
    with pytest.raises(Refused, check=coded("question_invalid")) as seen:
        Question.from_json(text)
    assert isinstance(seen.value, DphistError)
    # The text may hold anything, and is not to be read back by whoever sees the message or the traceback.
    assert seen.value.__cause__ is None and seen.value.__context__ is None
    return str(vars(seen.value)["problem"])


edges = st.lists(st.fractions(-(10**15), 10**15, max_denominator=10**6), min_size=2, max_size=8, unique_by=float)
epsilons = st.fractions(LEAST_EPSILON, MOST_EPSILON, max_denominator=10**9)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    combine = draw(st.sampled_from(["separate", "summed"]))
    kinds = st.sampled_from(["symmetric", "optimized", "grr"][: 2 if combine == "summed" else 3])
    parts = st.builds(Part, edges.map(sorted).map(tuple), epsilons, kinds)
    shares = st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9)
    return Question(
        collection=draw(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,62}\Z")),
        parts=tuple(draw(st.lists(parts, min_size=1, max_size=4))),
        round=draw(st.just("all") | st.dates().map(date.isoformat)),
        values=draw(st.integers(1, MOST_VALUES)),
        combine=combine,
        participation=Fraction(1) if combine == "summed" else draw(shares),
    )


@pytest.mark.slow
@examples(50)
@given(questions())
def test_a_question_comes_back_from_its_text(question: Question) -> None:
    text = question.to_json()
    again = Question.from_json(text)
    assert again == question and hash(again) == hash(question)
    assert again.to_json() == text and again.digest == question.digest
    assert Question.from_json(text.encode()) == question
    shuffled = json.dumps(dict(reversed(json.loads(text).items())), indent=2)
    assert Question.from_json(shuffled).digest == question.digest


@pytest.mark.slow
@examples(50)
@given(questions())
def test_sizes_and_spending_follow_from_the_parts(question: Question) -> None:
    assert question.epsilon == sum(question.values * part.epsilon for part in question.parts)
    bits = [part.intervals if part.encoding != "grr" else len(f"{part.intervals:b}") for part in question.parts]
    planes = len(f"{question.values:b}") if question.combine == "summed" else 1
    assert question.report_bytes == sum(planes * ((each + 7) // 8) for each in bits)
    assert question.reports == (1 if question.combine == "summed" else question.values)


@pytest.mark.parametrize(("intervals", "unary", "grr"), [(1, 1, 1), (8, 1, 1), (9, 2, 1), (255, 32, 1), (256, 32, 2)])
def test_a_vector_has_a_bit_for_each_interval_or_the_largest_number(intervals: int, unary: int, grr: int) -> None:
    even = tuple(map(Fraction, range(intervals + 1)))
    kinds: list[Encoding] = ["symmetric", "optimized", "grr"]
    assert [Part(even, Fraction(1), kind).vector_bytes for kind in kinds] == [unary, unary, grr]


def test_whatever_changes_the_question_changes_its_digest() -> None:
    others = [
        replace(ASKED, collection="hour"),
        replace(ASKED, round="2026-03-02"),
        replace(ASKED, values=2),
        replace(ASKED, values=2, combine="summed"),
        replace(ASKED, participation=Fraction(1, 2)),
        replace(ASKED, parts=(HOURS, HOURS)),
        replace(ASKED, parts=(replace(HOURS, epsilon=Fraction(1, 3)),)),
        replace(ASKED, parts=(replace(HOURS, encoding="grr"),)),
        replace(ASKED, parts=(replace(HOURS, edges=(Fraction(0), Fraction(7, 3), Fraction(24))),)),
    ]
    assert len({ASKED.digest, *(other.digest for other in others)}) == len(others) + 1
    assert len(ASKED.digest) == 64 and int(ASKED.digest, 16)


def test_the_digest_of_a_question_never_changes_between_versions() -> None:
    # Contributors' records know what they answered by it: another digest for the same question spends epsilon again.
    assert ASKED.digest == "eb75b85aa25bc96f580efc4c33012555f8d21d2e68584d9871d9ece0878dddc8"


def test_a_question_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ASKED.values = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        HOURS.epsilon = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "1",
        '"hours"',
        "{}",
        "\ufeff" + ASKED.to_json(),
        ASKED.to_json() + "x",
        ASKED.to_json().encode() + b"\xff",
        ASKED.to_json().replace("hours", "h\u00e4urs").encode("latin-1"),
        b"\xff\xfe\x00",
        b"\x00\x00\x00",
        ASKED.to_json().replace('"values":1', '"values":1,"values":1'),
        ASKED.to_json().replace('"epsilon":"1/2"', '"epsilon":"1/2","epsilon":"1/2"'),
        ASKED.to_json().replace('"values":1', '"values":1.0'),
        ASKED.to_json().replace('"values":1', '"values":1e0'),
        ASKED.to_json().replace('"values":1', '"values":NaN'),
        ASKED.to_json().replace('"values":1', '"values":Infinity'),
        ASKED.to_json().replace('"values":1', f'"values":1{"0" * 5000}'),
        '{"a":' * 200_000,
        "[" * 200_000,
        "[" * 100_000 + "]" * 100_000,
        text_with(parts=None).replace("null", "[" * 100_000 + "]" * 100_000),
    ],
    ids=range(24),
)
def test_what_is_no_json_of_a_question_is_refused(text: str | bytes) -> None:
    assert refused(text)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"format": 2}, "format is not 1"),
        ({"format": True}, "`format`"),
        ({"collection": ""}, "name of a collection"),
        ({"collection": "../hours"}, "name of a collection"),
        ({"collection": "h\u00f6urs"}, "name of a collection"),
        ({"collection": "\ud800"}, "name of a collection"),
        ({"collection": "h" * 64}, "name of a collection"),
        ({"collection": None}, "`collection` must be text"),
        ({"round": "20260302"}, "a round"),
        ({"round": "2026-02-30"}, "a round"),
        ({"round": "\ud800"}, "a round"),
        ({"round": ["all"]}, "`round` must be text"),
        ({"values": 0}, "between 1 and 255"),
        ({"values": 256}, "between 1 and 255"),
        ({"values": 10**4000}, "between 1 and 255"),
        ({"values": True}, "`values` must be a whole number"),
        ({"combine": "added"}, "`separate` or `summed`"),
        ({"combine": None}, "`combine` must be text"),
        ({"combine": "summed", "participation": "1/2"}, "cannot be sampled"),
        ({"participation": "0"}, "participation"),
        ({"participation": "3/2"}, "participation"),
        ({"participation": "1/1000000001"}, "participation"),
        ({"participation": 1}, "`participation` must be text"),
        ({"participation": "1/0"}, "numbers are text"),
        ({"participation": "2/2"}, "lowest terms"),
        ({"participation": "1/2\n"}, "numbers are text"),
        ({"participation": "\u0661"}, "numbers are text"),
        ({"parts": []}, "between 1 and 1,000 parts"),
        ({"parts": {}}, "must be a list"),
        ({"parts": [None]}, "exactly the names"),
        ({"parts": FACTS["parts"] * (MOST_PARTS + 1)}, "between 1 and 1,000 parts"),
        ({"also": 1}, "exactly the names"),
    ],
)
def test_facts_that_no_question_has_are_refused(facts: dict[str, Any], problem: str) -> None:
    assert problem in refused(text_with(**facts))


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_question_without_one_of_its_facts_is_refused(name: str) -> None:
    assert "exactly the names" in refused(json.dumps({other: FACTS[other] for other in FACTS if other != name}))


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"edges": None}, "`edges` must be a list"),
        ({"edges": []}, "between 1 and 10,000 intervals"),
        ({"edges": [0, 1]}, "numbers are text"),
        ({"edges": [["0"], "1"]}, "numbers are text"),
        ({"edges": ["0", "1e3"]}, "numbers are text"),
        ({"edges": ["0", "+1"]}, "numbers are text"),
        ({"edges": ["0", "01"]}, "lowest terms"),
        ({"edges": ["-0", "1"]}, "lowest terms"),
        ({"edges": ["0", "9" * 61]}, "numbers are text"),
        ({"edges": ["0", "9" * 60]}, "beyond 10^15"),
        ({"edges": ["0", "1000000000000001"]}, "beyond 10^15"),
        ({"edges": ["1", "0"]}, "must rise"),
        ({"edges": ["0", "3", "2", "4"]}, "must rise"),
        ({"edges": ["999999999999999", f"{999999999999999 * 10**20 + 1}/1{'0' * 20}"]}, "doubles can tell apart"),
        ({"edges": ["0"] * 1_000_000}, "at most 10,001"),
        ({"edges": [str(edge) for edge in range(MOST_INTERVALS + 2)]}, "at most 10,001"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "1/1000001"}, "epsilon"),
        ({"epsilon": "51"}, "epsilon"),
        ({"epsilon": 1}, "`epsilon` must be text"),
        ({"encoding": "none"}, "an encoding is one of"),
        ({"encoding": None}, "`encoding` must be text"),
        ({"also": 1}, "exactly the names"),
    ],
)
def test_parts_that_no_question_has_are_refused(facts: dict[str, Any], problem: str) -> None:
    assert problem in refused(text_of_part(**facts))


def test_grr_cannot_be_added_up() -> None:
    summed = json.loads(text_of_part(encoding="grr")) | {"combine": "summed"}
    assert "a bit for each interval" in refused(json.dumps(summed))


def test_a_text_that_is_too_long_is_refused_before_it_is_read() -> None:
    assert "longer than 10 MB" in refused(" " * (LONGEST_QUESTION + 1))
    assert Question.from_json(ASKED.to_json().ljust(LONGEST_QUESTION)) == ASKED


@pytest.mark.slow
def test_the_largest_question_is_answered_in_seconds() -> None:
    widest = Part(tuple(map(Fraction, range(MOST_INTERVALS + 1))), Fraction(1), "optimized")
    asked = replace(ASKED, parts=(widest,) * 20, values=MOST_VALUES)
    start = time.process_time()
    assert Question.from_json(asked.to_json()) == asked
    assert time.process_time() - start < 20


def test_the_least_and_the_most_of_everything_are_questions() -> None:
    for epsilon in (LEAST_EPSILON, MOST_EPSILON):
        replace(HOURS, epsilon=epsilon)
    for edge in (10**15, -(10**15)):
        Part(tuple(sorted((Fraction(0), Fraction(edge)))), Fraction(1), "grr")
    replace(ASKED, parts=(HOURS,) * MOST_PARTS, values=MOST_VALUES, participation=Fraction(1, 10**9))


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["1", "1/2", "all"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*FACTS, "x"]), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@examples(400)
@given(st.sampled_from([*FACTS, "edges", "epsilon", "encoding"]), junk)
def test_any_fact_replaced_by_anything_is_refused_or_is_a_question(name: str, value: Any) -> None:
    text = text_with(**{name: value}) if name in FACTS else text_of_part(**{name: value})
    try:
        found = Question.from_json(text)
    except Refused:
        return
    assert json.loads(found.to_json()) == json.loads(text)


@examples(400)
@given(st.integers(0, len(ASKED.to_json()) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_any_bytes_replaced_are_refused_or_are_a_question(place: int, by: bytes, dropped: int) -> None:
    text = ASKED.to_json().encode()
    text = text[:place] + by + text[place + dropped :]
    try:
        found = Question.from_json(text)
    except Refused:
        return
    assert json.loads(found.to_json()) == json.loads(text)


def test_deep_nesting_is_refused_at_any_limit_of_recursion() -> None:
    deep = text_with(parts=None).replace("null", "[" * 5000 + "]" * 5000)
    before = sys.getrecursionlimit()
    try:
        for limit in (300, before, 20_000):
            sys.setrecursionlimit(limit)
            refused(deep)
    finally:
        sys.setrecursionlimit(before)

"""The curator's count: the ones of every interval, as unpacked bits give them, of reports that an encoder can make."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local import tally as module
from dphist_pipeline.local.encoding import encode
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally

Bytes = NDArray[np.uint8]


def part(intervals: int, kind: Encoding = "symmetric") -> Part:
    return Part(tuple(Fraction(edge, intervals) for edge in range(intervals + 1)), Fraction(1), kind)


def ask(*parts: Part, **facts: Any) -> Question:
    return Question("hours", parts, **facts)


def entries(question: Question, number: int, bodies: Bytes) -> NDArray[np.int64]:
    """What each report says of each interval of a part, bit by bit; or -1 for a number that is too large."""
    asked = question.parts[number]
    start = sum(question.part_bytes[:number])
    own = bodies[:, start : start + question.part_bytes[number]]
    rows = []
    for body in own:
        if asked.encoding == "grr":
            said = int.from_bytes(body.tobytes(), "big")
            known = np.arange(asked.intervals) == said
            rows.append(known.astype(int) if said <= asked.intervals else np.full(asked.intervals, -1))
            continue
        planes = np.unpackbits(body.reshape(question.planes, -1), axis=1).astype(int)
        sums = (planes * (1 << np.arange(question.planes))[:, None]).sum(axis=0)
        most = question.values if question.combine == "summed" else 1
        wrong = sums[asked.intervals :].any() or (sums > most).any()
        rows.append(np.full(asked.intervals, -1) if wrong else sums[: asked.intervals])
    return np.array(rows, dtype=np.int64).reshape(len(bodies), asked.intervals)


def slowly(question: Question, bodies: Bytes) -> tuple[list[list[int]], int]:
    """Ones of each part and how many reports are well-formed in all of them."""
    said = [entries(question, number, bodies) for number in range(len(question.parts))]
    sound = np.array([all((each[row] >= 0).all() for each in said) for row in range(len(bodies))], dtype=bool)
    return [each[sound].sum(axis=0).tolist() for each in said], int(sound.sum())


def counted(tally: Tally) -> list[list[int]]:
    return [ones.tolist() for ones in tally.ones]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    summed = draw(st.booleans())
    kinds = st.sampled_from(["symmetric", "optimized"] if summed else ["symmetric", "optimized", "grr"])
    sizes = st.sampled_from([1, 2, 7, 8, 9, 16, 255, 256])
    parts = [part(draw(sizes), draw(kinds)) for _ in range(draw(st.integers(1, 3)))]
    values = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 255]))
    return ask(*parts, values=values, combine="summed" if summed else "separate")


@settings(deadline=None)
@given(questions(), st.integers(0, 40), st.integers(0, 2**32))
def test_reports_of_any_bytes_are_counted_as_their_bits_say(question: Question, reports: int, seed: int) -> None:
    # Sparse bytes too: of random ones few sums are small enough.
    generator = np.random.default_rng(seed)
    bodies = generator.integers(0, 256, (reports, question.report_bytes), dtype=np.uint8)
    bodies[reports // 2 :] &= bodies[reports // 2 :] >> 3 & bodies[reports // 2 :] << 2
    ones, sound = slowly(question, bodies)
    tally = Tally(question)
    tally.add(bodies)
    assert counted(tally) == ones
    assert (tally.reports, tally.malformed) == (sound, reports - sound)


@pytest.mark.slow
@settings(deadline=None)
@given(questions(), st.integers(0, 30), st.integers(0, 2**32))
def test_what_an_encoder_makes_is_well_formed_and_counted(question: Question, people: int, seed: int) -> None:
    values = np.random.default_rng(seed).uniform(-0.2, 1.2, (people, question.values))
    bodies = encode(question, values)
    tally = Tally(question)
    tally.add(bodies)
    assert tally.malformed == 0 and tally.reports == people * question.reports
    assert tally.vectors == people * question.values
    assert counted(tally) == slowly(question, bodies)[0]


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
@pytest.mark.parametrize("intervals", [1, 5, 7, 9, 15])
def test_a_bit_beyond_the_last_interval_makes_a_report_malformed(kind: Encoding, intervals: int) -> None:
    tally = Tally(ask(part(intervals, kind)))
    length = tally.question.report_bytes
    bits = np.eye(8 * length, dtype=np.uint8)
    tally.add(np.packbits(bits, axis=1))
    assert (tally.reports, tally.malformed) == (intervals, 8 * length - intervals)
    assert counted(tally) == [[1] * intervals]


@pytest.mark.parametrize("intervals", [1, 2, 200, 255])
def test_a_number_above_that_of_none_is_malformed_and_none_is_no_interval(intervals: int) -> None:
    tally = Tally(ask(part(intervals, "grr")))
    tally.add(np.arange(256, dtype=np.uint8)[:, None])
    assert (tally.reports, tally.malformed) == (intervals + 1, 255 - intervals)
    assert counted(tally) == [[1] * intervals]


def test_numbers_of_two_bytes_begin_with_the_larger() -> None:
    tally = Tally(ask(part(300, "grr")))
    tally.add(np.array([[0, 0], [1, 0], [1, 43], [1, 44], [1, 45], [255, 255]], dtype=np.uint8))
    assert (tally.reports, tally.malformed) == (4, 2)
    assert np.flatnonzero(tally.ones[0]).tolist() == [0, 256, 299]


@pytest.mark.parametrize("values", range(1, 16))
def test_a_sum_above_what_a_contributor_has_is_malformed(values: int) -> None:
    question = ask(part(9), values=values, combine="summed")
    for said in range(1 << question.planes):
        bodies = np.zeros((1, question.planes, 2), dtype=np.uint8)
        bodies[0, :, 1] = [128 * (said >> place & 1) for place in range(question.planes)]
        tally = Tally(question)
        tally.add(bodies.reshape(1, -1))
        assert (tally.reports, tally.malformed) == ((1, 0) if said <= values else (0, 1))
        assert counted(tally) == [[0] * 8 + [said if said <= values else 0]]


def test_a_report_that_is_malformed_in_one_part_counts_in_none() -> None:
    tally = Tally(ask(part(3), part(4, "grr")))
    tally.add(np.array([[0b11100000, 1], [0b11110000, 1], [0b11100000, 5], [0b00000000, 4]], dtype=np.uint8))
    assert (tally.reports, tally.malformed) == (2, 2)
    assert counted(tally) == [[1, 1, 1], [0, 1, 0, 0]]


def test_reports_are_counted_in_batches_and_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 7)
    question = ask(part(9, "optimized"), part(300, "grr"))
    bodies = np.random.default_rng(3).integers(0, 256, (100, question.report_bytes), dtype=np.uint8)
    bodies[:, 1] &= 128
    bodies[:, 2] &= 1
    ones, sound = slowly(question, bodies)
    for cuts in ([0, 100], [0, 1, 8, 8, 50, 100]):
        tally = Tally(question)
        for start, end in pairwise(cuts):
            tally.add(bodies[start:end])
        assert counted(tally) == ones and (tally.reports, tally.malformed) == (sound, 100 - sound)
    assert 0 < sound < 100


@pytest.mark.parametrize("kind", ["symmetric", "optimized", "grr"])
def test_no_reports_are_counted_as_none(kind: Encoding) -> None:
    tally = Tally(ask(part(9, kind)))
    tally.add(np.empty((0, tally.question.report_bytes), dtype=np.uint8))
    assert (tally.reports, tally.malformed, tally.vectors) == (0, 0, 0)
    assert counted(tally) == [[0] * 9]


def test_two_tallies_share_nothing() -> None:
    first, second = Tally(ask(part(3))), Tally(ask(part(3)))
    first.add(np.array([[0b11100000]], dtype=np.uint8))
    assert counted(second) == [[0, 0, 0]] and counted(first) == [[1, 1, 1]]


def test_a_read_only_or_strided_array_is_counted() -> None:
    bodies = np.array([[0b10000000, 9], [0b01000000, 9]], dtype=np.uint8)[:, :1]
    bodies.flags.writeable = False
    tally = Tally(ask(part(3)))
    tally.add(bodies)
    assert counted(tally) == [[1, 1, 0]]


def test_vectors_of_a_sum_are_all_its_values() -> None:
    tally = Tally(ask(part(3), values=5, combine="summed"))
    tally.add(np.zeros((4, tally.question.report_bytes), dtype=np.uint8))
    assert (tally.reports, tally.vectors) == (4, 20)
    tally = Tally(replace(tally.question, combine="separate"))
    tally.add(np.zeros((4, 1), dtype=np.uint8))
    assert (tally.reports, tally.vectors) == (4, 4)

"""Every way in which a contributor answers, and faults of a few lines planted in some of them.

Each is judged by the exact likelihoods of all reports to a small question, and by a black box that sees what very many
contributors send.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from black_box import Bound, lower_bound
from exact_likelihood import Losses, losses
from numpy.typing import NDArray

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local import encoding
from dphist_pipeline.local._coins import Chance
from dphist_pipeline.local.contributor import Contributor
from dphist_pipeline.local.question import Part, Question

Values = NDArray[np.float64]  # shape (contributors, values of the question)
Sent = NDArray[np.int64]  # bytes, one row for each contributor, -1 where nothing is sent
NOTHING = -1
BULK = 1 << 18


def asked(kind: Encoding, intervals: int = 4, epsilon: str = "1", **facts: Any) -> Question:
    """A question of one part, whose intervals are [0, 1), [1, 2) and so on."""
    return Question("hours", (Part(tuple(map(Fraction, range(intervals + 1))), Fraction(epsilon), kind),), **facts)


def sent(question: Question, values: Values) -> Sent:
    """What contributors send who are asked once."""
    bodies = encoding.encode(question, values).astype(np.int64)
    bodies[~encoding.sent_reports(question, len(bodies))] = NOTHING
    return bodies.reshape(len(values), -1)


def sent_twice(question: Question, values: Values, kind: type[Contributor] = Contributor) -> Sent:
    """What contributors send who are asked the same question twice, and keep a record."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, patch.object(os, "fsync", lambda handle: None):
        for number, own in enumerate(values):
            record = kind.create(Path(folder) / str(number), 2 * question.epsilon)
            bodies = [report.body for _ in range(2) for report in record.answer(question, own.tolist())]
            rows.append(np.frombuffer(b"".join(bodies), dtype=np.uint8))
    return np.array(rows, dtype=np.int64)


@dataclass(frozen=True)
class LocalWay:
    """One way to answer.

    Attributes:
        question: small: of its likelihoods all are computed.
        send: what contributors send who have these values.
        pair: values of two contributors, as many as the question asks for, on whom the black box looks.
        trials: of the black box.
        within: what is patched meanwhile.
    """

    name: str
    question: Question
    pair: tuple[Sequence[float], Sequence[float]] = ((0.5,), (2.5,))
    send: Callable[[Question, Values], Sent] = sent
    trials: int = 1_000_000
    within: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __str__(self) -> str:
        return self.name

    def likelihoods(self) -> Losses:
        """What reports tell of any two contributors, exactly."""
        with self.within():
            return losses(self.question, self._answer, self.contributors())

    def contributors(self) -> list[list[float]]:
        """Values in and on the edges of every interval, outside and none at all; with several, lists that differ in
        length, in one value and in all."""
        edges = self.question.parts[0].doubles
        single = [*(edge + 0.5 for edge in edges[:-1]), *edges, -1.0, math.nan]
        asked_for = self.question.values
        if asked_for == 1:
            return [[], *([value] for value in single)]
        few = [[], [0.5], [1.5], [1.0]]
        many = [[first] * (asked_for - 1) + [last] for first, last in ((0.5, 0.5), (1.5, 1.5), (0.5, 1.5), (9.0, 0.5))]
        return [*few, *many, [0.5] * asked_for + [1.5]]

    def bound(self, trials: int | None = None) -> Bound:
        """The lower bound on epsilon that the black box finds."""
        half = (trials or self.trials) // 2
        with self.within():
            return lower_bound(*(self._many(values, half) for values in self.pair))

    def _answer(self, question: Question, values: Sequence[float]) -> tuple[int, ...]:
        sent_by_one = self.send(question, encoding.choose_values(values, question.values)[None, :])
        return tuple(sent_by_one.ravel().tolist())

    def _many(self, values: Sequence[float], trials: int) -> NDArray[np.float64]:
        parts = [min(BULK, trials - start) for start in range(0, trials, BULK)]
        rows = [self.send(self.question, np.tile(np.array(values), (part, 1))) for part in parts]
        return np.concatenate(rows).astype(np.float64)


def _of_two_parts() -> Question:
    parts = [asked("optimized", 3, epsilon).parts[0] for epsilon in ("1/3", "2/3")]
    return replace(asked("optimized"), parts=tuple(parts))


TWO = ((0.5, 0.5), (1.5, 1.5))
LOCAL_WAYS = [
    LocalWay("local symmetric", asked("symmetric")),
    LocalWay("local optimized", asked("optimized")),
    LocalWay("local grr", asked("grr")),
    LocalWay("local symmetric, two values summed", asked("symmetric", 2, "1/2", values=2, combine="summed"), TWO),
    LocalWay("local optimized, two values summed", asked("optimized", 2, "1/2", values=2, combine="summed"), TWO),
    LocalWay("local symmetric, two values separate", asked("symmetric", 2, "1/2", values=2), TWO),
    LocalWay("local grr, two values separate", asked("grr", 2, "1/2", values=2), TWO),
    LocalWay("local optimized, two parts", _of_two_parts()),
    LocalWay("local symmetric, sampled 1/3", asked("symmetric", participation=Fraction(1, 3))),
    LocalWay("local grr, sampled 1/3", asked("grr", participation=Fraction(1, 3))),
    LocalWay("local symmetric, asked twice", asked("symmetric", 2, "2"), ((0.5,), (1.5,)), sent_twice, 4_000),
]


class Forgetful(Contributor):
    """Answers, and keeps nothing."""

    def _write(self, record: dict[str, Any]) -> None:
        if not record["answered"]:
            super()._write(record)


def forgotten(question: Question, values: Values) -> Sent:
    """Two reports to the same question with fresh noise in each."""
    return sent_twice(question, values, Forgetful)


def closed_at_both_ends(question: Question, values: Values) -> Sent:
    """A value on an edge lies in two intervals, as printed: both bits are turned from 0 to 1 before the coins."""
    bodies = encoding.encode(question, values)
    (own,), (part,) = values.T, question.parts
    on_edge = np.flatnonzero(np.isin(own, part.doubles[1:-1]))
    before = encoding.places_of(part, own[on_edge]) - 1
    bodies[on_edge, before >> 3] ^= (128 >> (before & 7)).astype(np.uint8)
    return bodies.astype(np.int64)


def silent_without_a_value(question: Question, values: Values) -> Sent:
    """Who has no value in any interval sends nothing."""
    bodies = sent(question, values)
    bodies[encoding.places_of(question.parts[0], values[:, 0]) == encoding.NONE] = NOTHING
    return bodies


@contextmanager
def whole_epsilon_for_each_bit() -> Iterator[None]:
    """Each of the two bits in which values differ spends all of epsilon."""
    with patch.object(encoding, "chance_of", lambda part: Chance(1, part.epsilon)):
        yield


@contextmanager
def k_instead_of_one_more() -> Iterator[None]:
    """grr over the intervals alone, with a probability for K symbols, while none is one more."""
    chance = encoding.chance_of

    with patch.object(encoding, "chance_of", lambda part: replace(chance(part), weight=part.intervals - 1)):
        yield


LOCAL_FAULTS = [
    LocalWay(
        "an interval closed at both ends in the local encoding",
        asked("symmetric"),
        ((1.0,), (2.5,)),
        closed_at_both_ends,
        200_000,
    ),
    LocalWay(
        "a local report repeated with fresh noise",
        asked("symmetric", 2, "2"),
        ((0.5,), (1.5,)),
        forgotten,
        8_000,
    ),
    LocalWay(
        "a flip probability for twice the epsilon of a bit",
        asked("symmetric"),
        within=whole_epsilon_for_each_bit,
        trials=40_000,
    ),
    LocalWay(
        "a local value in no interval is not reported", asked("grr"), ((0.5,), (9.0,)), silent_without_a_value, 4_000
    ),
    LocalWay(
        "grr's probability for one symbol less",
        asked("grr", 2),
        ((0.5,), (1.5,)),
        within=k_instead_of_one_more,
        trials=60_000,
    ),
]

"""From what consumers want to what contributors are asked: boundaries merged, epsilon shared, an encoding chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local.law import law_of
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.spec.collection import CollectionSpec, Consumer, Protocol

ENCODINGS: tuple[Encoding, ...] = ("symmetric", "optimized", "grr")  # in order of preference, where they tie
TIE = 1e-9  # relative; larger than what machines round differently, so every machine asks the same question


@dataclass(frozen=True)
class Spans:
    """Where a consumer's intervals lie in a part of the question.

    Attributes:
        first: number of the first merged interval of each of them, from 0.
        last: number of the last merged interval of each, included.
    """

    part: int
    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def atoms(self) -> tuple[int, ...]:
        """Number of merged intervals in each of them."""
        return tuple(last - first + 1 for first, last in zip(self.first, self.last, strict=True))


def merge_boundaries(cuts: Iterable[Iterable[Fraction]]) -> tuple[Fraction, ...]:
    """All boundaries, each once, rising: compared as exact numbers, so 1/10 + 2/10 and 3/10 are one."""
    return tuple(sorted({edge for edges in cuts for edge in edges}))


def spans(part: int, boundaries: Sequence[Fraction], edges: Sequence[Fraction]) -> Spans:
    """Where intervals lie among the boundaries of a part.

    Args:
        boundaries: rising, shape (intervals of the part + 1,).
        edges: ends of the intervals, rising; each is one of `boundaries`.
    """
    places = {boundary: number for number, boundary in enumerate(boundaries)}
    at = [places[edge] for edge in edges]
    return Spans(part, tuple(at[:-1]), tuple(place - 1 for place in at[1:]))


def spans_of(spec: CollectionSpec, protocol: Protocol | None = None) -> tuple[Spans, ...]:
    """Where each consumer's intervals lie, in order of the consumers; by the declared protocol, or a given one."""
    if (protocol or spec.protocol) == "split_budget":
        return tuple(spans(part, reader.edges, reader.edges) for part, reader in enumerate(spec.consumers))
    boundaries = merge_boundaries(reader.edges for reader in spec.consumers)
    return tuple(spans(0, boundaries, reader.edges) for reader in spec.consumers)


def question_of(
    spec: CollectionSpec, protocol: Protocol | None = None, encoding: Encoding | Literal["auto"] | None = None
) -> Question:
    """What every contributor is asked.

    With encoding `auto` each part takes the encoding of least total variance. The total is over all published
    intervals that are read from the part, with values spread evenly over the range, so that each interval holds its
    share of the width. Every term is proportional to the number of contributors, which therefore does not matter. Ties
    go to the first of `ENCODINGS`. Summed values are bits that are added up, which excludes grr.
    A protocol or an encoding that is given stands in the place of the declared one, to compare.
    """
    encoding_named, rule = encoding or spec.encoding, protocol or spec.protocol
    cuts, each = [merge_boundaries(reader.edges for reader in spec.consumers)], spec.report_epsilon
    if rule == "split_budget":
        cuts, each = [reader.edges for reader in spec.consumers], each / len(spec.consumers)
    question = Question(
        collection=str(spec.collection),
        parts=tuple(Part(edges, each, ENCODINGS[0]) for edges in cuts),
        round=spec.round,
        values=spec.values_per_contributor,
        combine=spec.values,
        participation=spec.participation if rule == "sampled" else Fraction(1),
    )
    readers = list(zip(spans_of(spec, rule), spec.consumers, strict=True))
    parts = []
    for number, part in enumerate(question.parts):
        served = [(place, reader) for place, reader in readers if place.part == number]
        parts.append(
            replace(part, encoding=_best(question, part, served) if encoding_named == "auto" else encoding_named)
        )
    return replace(question, parts=tuple(parts))


def shares(consumer: Consumer) -> NDArray[np.float64]:
    """The share of the range that each of the consumer's intervals takes, shape (intervals,)."""
    width = consumer.edges[-1] - consumer.edges[0]
    return np.array([float((high - low) / width) for low, high in pairwise(consumer.edges)])


def choices(question: Question) -> tuple[Encoding, ...]:
    """The encodings that can answer a question."""
    return tuple(encoding for encoding in ENCODINGS if encoding != "grr" or question.combine == "separate")


def _best(question: Question, part: Part, served: list[tuple[Spans, Consumer]]) -> Encoding:
    atoms = np.concatenate([np.array(place.atoms) for place, _ in served])
    share = np.concatenate([shares(reader) for _, reader in served])
    # A contributor sends `sent` of their `values` values on average; both are whole numbers.
    sent, values = question.participation.numerator, question.participation.denominator
    best, least = ENCODINGS[0], float("inf")
    for encoding in choices(question):
        law = law_of(question, replace(part, encoding=encoding), sent)
        total = float(law.variance(atoms, share * values).sum())
        if total < least * (1 - TIE):
            best, least = encoding, total
    return best

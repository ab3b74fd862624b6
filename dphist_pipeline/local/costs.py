"""What a collection costs its contributors and how far its answers will lie off, before anybody is asked.

Nothing is read but the spec. Errors are standard deviations of the published, unbiased estimates, by the law of the
reports (`law.law_of`): of an interval that holds its share of the width, as if values were spread evenly over the
range, and of one that holds as many values as make the error largest, none or all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.local.collection import CollectionSpec, Protocol
from dphist_pipeline.local.collection_remarks import NOT_COVERED, remarks
from dphist_pipeline.local.consumers import Consumer
from dphist_pipeline.local.law import law_of
from dphist_pipeline.local.partition import Spans, choices, question_of, shares, spans_of
from dphist_pipeline.local.question import LEAST_EPSILON, Encoding, Question


class QuestionExists(DphistError):
    """A file that would be overwritten, and holds something else."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path} {problem}")


@dataclass(frozen=True)
class Errors:
    """Standard errors of a consumer's intervals, in values, each of shape (intervals,).

    Attributes:
        even: with values spread evenly over the range.
        worst: with as many values in the interval as make it largest.
    """

    even: NDArray[np.float64]
    worst: NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """One way to ask: a protocol and an encoding of each of its parts.

    Attributes:
        errors: one for each consumer, in order.
    """

    protocol: Protocol
    question: Question
    errors: tuple[Errors, ...]

    @property
    def encodings(self) -> str:
        """The encodings of its parts, each named once."""
        return ", ".join(dict.fromkeys(part.encoding for part in self.question.parts))

    @property
    def bits(self) -> int:
        """Bits of all that a contributor sends, if every report is sent."""
        of_parts = (
            part.intervals.bit_length() if part.encoding == "grr" else part.intervals for part in self.question.parts
        )
        return self.question.reports * self.question.planes * sum(of_parts)

    @property
    def bytes(self) -> int:
        """Bytes of the same, as they are packed."""
        return self.question.reports * self.question.report_bytes

    def facts(self) -> dict[str, Any]:
        """JSON values, errors apart."""
        return {
            "protocol": self.protocol,
            "encodings": [part.encoding for part in self.question.parts],
            "epsilon": str(self.question.epsilon),
            "bits": self.bits,
            "bytes": self.bytes,
        }


@dataclass(frozen=True)
class Plan:
    """A collection before it begins.

    Attributes:
        contributors: how many are expected to answer.
        asked: the way that the spec declares.
        encodings: the same protocol by each encoding that can answer it.
        instead: other protocols, by the declared encoding.
    """

    spec: CollectionSpec
    contributors: int
    asked: Way
    encodings: tuple[Way, ...]
    instead: tuple[Way, ...]

    @property
    def ways(self) -> tuple[Way, ...]:
        """All that are compared."""
        return (*self.encodings, *self.instead)

    def facts(self) -> dict[str, Any]:
        """Everything as JSON values: errors of every interval, in each way."""
        return {
            **described(self.spec, self.asked.question),
            "contributors": self.contributors,
            "asked": self.asked.facts(),
            "ways": [way.facts() for way in self.ways],
            "errors": [
                {
                    "consumer": consumer.name,
                    "edges": [float(edge) for edge in consumer.edges],
                    "ways": [
                        {
                            "protocol": way.protocol,
                            "encoding": way.encodings,
                            "even": way.errors[number].even.tolist(),
                            "worst": way.errors[number].worst.tolist(),
                        }
                        for way in self.ways
                    ],
                }
                for number, consumer in enumerate(self.spec.consumers)
            ],
            "remarks": [*remarks(self.spec), *NOT_COVERED],
        }


def planned(spec: CollectionSpec, contributors: int) -> Plan:
    """What to expect of a collection with so many contributors."""
    asked = _way(spec, contributors)
    by_encoding = tuple(_way(spec, contributors, spec.protocol, encoding) for encoding in choices(asked.question))
    instead = tuple(_way(spec, contributors, other) for other in _others(spec))
    return Plan(spec, contributors, asked, by_encoding, instead)


def described(spec: CollectionSpec, question: Question) -> dict[str, Any]:
    """What a spec asks, of whom and at what price, as JSON values."""
    return {
        "collection": spec.collection,
        "value": spec.value,
        "start": str(spec.start),
        "stop": str(spec.stop),
        "round": spec.round,
        "consumers": [
            {
                "name": consumer.name,
                "release": spec.release_of(consumer),
                "epsilon": str(consumer.epsilon),
                "intervals": consumer.intervals,
            }
            for consumer in spec.consumers
        ],
        "protocol": spec.protocol,
        "encodings": [part.encoding for part in question.parts],
        "intervals_asked": [part.intervals for part in question.parts],
        "participation": str(spec.participation),
        "values_per_contributor": spec.values_per_contributor,
        "values": spec.values,
        "epsilon": str(question.epsilon),
        "digest": spec.digest,
        "question": question.digest,
    }


def write_question(question: Question, path: Path) -> bool:
    """Writes the question for the contributors' program; False where the same one is there already.

    Raises:
        QuestionExists: if the file holds anything else, or cannot be written.
    """
    content = question.to_json().encode("ascii") + b"\n"
    try:
        with path.open("xb") as file:
            file.write(content)
        return True
    except FileExistsError:
        if path.is_file() and path.read_bytes() == content:
            return False
        problem = (
            "holds something else, perhaps a question that contributors have answered; nothing was written. Name "
            "another file, or declare a new `round`."
        )
    except OSError as error:
        problem = f"cannot be written: {error.strerror or type(error).__name__}. Name a file in a folder that is there."
    raise QuestionExists(path, problem)


def _others(spec: CollectionSpec) -> tuple[Protocol, ...]:
    """Protocols that could serve the same consumers."""
    if len(spec.consumers) == 1:
        return ("shp",) if spec.protocol == "sampled" else ()
    divisible = spec.report_epsilon / len(spec.consumers) >= LEAST_EPSILON
    known: tuple[Protocol, ...] = ("chp", "split_budget") if divisible else ("chp",)
    return tuple(other for other in known if other != spec.protocol)


def _way(
    spec: CollectionSpec,
    contributors: int,
    protocol: Protocol | None = None,
    encoding: Encoding | Literal["auto"] | None = None,
) -> Way:
    question = question_of(spec, protocol, encoding)
    errors = (
        _errors(question, where, consumer, contributors)
        for where, consumer in zip(spans_of(spec, protocol), spec.consumers, strict=True)
    )
    return Way(protocol or spec.protocol, question, tuple(errors))


def _errors(question: Question, where: Spans, consumer: Consumer, contributors: int) -> Errors:
    values = contributors * question.values
    law = law_of(question, question.parts[where.part], _sent(question.participation, values))
    atoms = np.array(where.atoms)
    even = law.variance(atoms, values * shares(consumer))
    # The variance is linear in how many values the interval holds: largest at none or at all.
    worst = np.maximum(
        law.variance(atoms, np.zeros(atoms.size)), law.variance(atoms, np.full(atoms.size, float(values)))
    )
    return Errors(np.sqrt(even), np.sqrt(worst))


def _sent(participation: Fraction, values: int) -> int:
    """How many of the values are expected to be sent."""
    return round(participation * values)

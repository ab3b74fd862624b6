"""What a collection costs its contributors and how large its errors will be, before anybody is asked.

Only the spec is read. Errors are standard deviations of the published, unbiased estimates, by the law of the reports
(`law.law_of`), for two kinds of intervals: one that holds its share of the width, as if values were spread evenly over
the range; and one that holds as many values as make its error largest, which is none or all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.local.law import law_of
from dphist_pipeline.local.partition import Spans, choices, question_of, shares, spans_of
from dphist_pipeline.local.question import EVERY_ROUND, LEAST_EPSILON, Question
from dphist_pipeline.spec.collection import CollectionSpec, Consumer, Protocol
from dphist_pipeline.spec.fields import digits

DECLARED = (
    *("collection", "value", "start", "stop", "round", "protocol", "participation"),
    *("values_per_contributor", "values"),
)
NOT_COVERED = (
    "Errors are of the perturbation alone, one standard deviation. Contributors who do not answer, or not truly, are "
    "not covered.",
    "A count of less than about two standard errors cannot be told from 0.",
)


def question_exists(path: Path, problem: str) -> Refused:
    """A question cannot be written to a file, which holds something else."""
    return Refused(f"{path} {problem}", code="question_exists")


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
class QuestionDesign:
    """One way to ask: a protocol, and a question with an encoding for each of its parts."""

    protocol: Protocol
    question: Question
    errors: tuple[Errors, ...]

    @property
    def encodings(self) -> str:
        """The encodings of its parts, each named once."""
        return ", ".join(dict.fromkeys(part.encoding for part in self.question.parts))

    def facts(self) -> dict[str, Any]:
        """Its costs as JSON values."""
        encodings = [part.encoding for part in self.question.parts]
        spent = str(self.question.epsilon)
        return {"protocol": self.protocol, "encodings": encodings, "epsilon": spent} | {
            "bits": self.question.contributor_bits,
            "bytes": self.question.contributor_bytes,
        }

    def errors_of(self, number: int) -> dict[str, Any]:
        """The errors of a consumer's intervals as JSON values."""
        errors = {kind: numbers.tolist() for kind, numbers in vars(self.errors[number]).items()}
        return {"protocol": self.protocol, "encoding": self.encodings, **errors}


@dataclass(frozen=True)
class Plan:
    """A collection before it begins.

    Attributes:
        encodings: the same protocol by each encoding that can answer it, and as declared.
        instead: other protocols that could serve the same consumers, by the same encodings.
    """

    spec: CollectionSpec
    contributors: int
    asked: QuestionDesign
    encodings: tuple[QuestionDesign, ...]
    instead: tuple[QuestionDesign, ...]

    @property
    def ways(self) -> tuple[QuestionDesign, ...]:
        """All ways that are compared."""
        return (*self.encodings, *self.instead)

    def facts(self) -> dict[str, Any]:
        """Everything as JSON values: errors of every interval, in each way."""
        return {
            **collection_facts(self.spec, self.asked.question),
            "contributors": self.contributors,
            "asked": self.asked.facts(),
            "ways": [way.facts() for way in self.ways],
            "errors": [
                {
                    "consumer": consumer.name,
                    "edges": list(map(float, consumer.edges)),
                    "ways": [way.errors_of(number) for way in self.ways],
                }
                for number, consumer in enumerate(self.spec.consumers)
            ],
            "remarks": [*remarks(self.spec), *NOT_COVERED],
        }


def plan_of(spec: CollectionSpec, contributors: int) -> Plan:
    """Costs and errors of a collection with this number of contributors, at least 1."""
    declared_way = _way(spec, contributors)
    instead = (way for other in _others(spec) for way in _by_encoding(spec, contributors, other))
    return Plan(spec, contributors, declared_way, _by_encoding(spec, contributors, spec.protocol), tuple(instead))


def collection_facts(spec: CollectionSpec, question: Question) -> dict[str, Any]:
    """What a spec asks, of whom and at what price, as JSON values."""
    spec_fields = spec.as_json()
    return {name: spec_fields[name] for name in DECLARED} | {
        "consumers": [
            {
                "name": consumer.name,
                "release": spec.release_of(consumer),
                "epsilon": str(consumer.epsilon),
                "intervals": consumer.intervals,
            }
            for consumer in spec.consumers
        ],
        "encodings": [part.encoding for part in question.parts],
        "intervals_asked": [part.intervals for part in question.parts],
        "epsilon": str(question.epsilon),
        "digest": spec.digest,
        "question": question.digest,
    }


def spending(spec: CollectionSpec) -> str:
    """What a contributor spends, in words."""
    each, total = as_text(spec.report_epsilon), as_text(spec.epsilon)
    if spec.values_per_contributor == 1:
        return f"epsilon {total}"
    return f"epsilon {total}: {spec.values_per_contributor} values, each {each}"


def remarks(spec: CollectionSpec) -> list[str]:
    """What the people of an office should know before they ask, a sentence or two each."""
    each = as_text(spec.report_epsilon)
    sentences = [
        f"{reader.name}: the last interval, from {digits(reader.edges[-2])} to {digits(reader.edges[-1])}, is shorter "
        "than the others."
        for reader in spec.consumers
        if reader.is_cut_short
    ]
    readers_below = [reader for reader in spec.consumers if reader.epsilon != spec.report_epsilon]
    if readers_below:
        readers = ", ".join(f"{reader.name} ({as_text(reader.epsilon)})" for reader in readers_below[:5])
        more = f" and {len(readers_below) - 5} more" if len(readers_below) > 5 else ""
        sentences.append(
            f"A report spends epsilon {each}, the least of all consumers; so {readers}{more} get no more of it."
        )
    if spec.protocol == "sampled":
        sentences.append(
            f"That a report is sent with probability {as_text(spec.participation)} only does not lower epsilon: "
            f"whoever sees a report knows that it was sent. It saves sending, and makes errors larger."
        )
    if spec.protocol == "split_budget" and len(spec.consumers) > 1:
        sentences.append(
            f"Each of {len(spec.consumers)} consumers gets a vector of its own at epsilon "
            f"{as_text(spec.report_epsilon / len(spec.consumers))}; together they spend {each}."
        )
    if spec.values_per_contributor > 1:
        sentences.append(
            f"Every contributor reports exactly {spec.values_per_contributor} values: missing ones as `none`, and of "
            "more, so many chosen at random. The tables count values, not people."
        )
    sentences.append(
        "Values below `start`, above `stop` or missing are reported as `none`: they cost the same, and are in no "
        "interval."
    )
    again = "Another round asks" if spec.round != EVERY_ROUND else "To ask again, declare a `round`: it asks"
    sentences.append(f"{again} anew and costs every contributor epsilon {as_text(spec.epsilon)} more.")
    if spec.nonnegative:
        sentences.append(
            "`nonnegative` raises estimates below 0 and lowers the others as much: what is published is biased, and "
            "errors are those of the estimates before."
        )
    return sentences


def write_question(question: Question, path: Path) -> bool:
    """Writes the question for the contributors' program, as JSON; False where the same one is there already.

    No file is overwritten.
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
    raise question_exists(path, problem)


def _others(spec: CollectionSpec) -> tuple[Protocol, ...]:
    """Protocols that could serve the same consumers."""
    if len(spec.consumers) == 1:
        return ("shp",) if spec.protocol == "sampled" else ()
    divisible = spec.report_epsilon / len(spec.consumers) >= LEAST_EPSILON
    protocols: tuple[Protocol, ...] = ("chp", "split_budget") if divisible else ("chp",)
    return tuple(other for other in protocols if other != spec.protocol)


def _by_encoding(spec: CollectionSpec, contributors: int, protocol: Protocol) -> tuple[QuestionDesign, ...]:
    """A protocol by each encoding; then by the declared one, if `auto` gives parts different ones."""
    declared = _way(spec, contributors, protocol)
    ways = tuple(_way(spec, contributors, protocol, encoding) for encoding in choices(declared.question))
    return ways if declared.question in [way.question for way in ways] else (*ways, declared)


def _way(
    spec: CollectionSpec,
    contributors: int,
    protocol: Protocol | None = None,
    encoding: Encoding | Literal["auto"] | None = None,
) -> QuestionDesign:
    question = question_of(spec, protocol, encoding)
    errors = (
        _errors(question, spans, consumer, contributors)
        for spans, consumer in zip(spans_of(spec, protocol), spec.consumers, strict=True)
    )
    return QuestionDesign(protocol or spec.protocol, question, tuple(errors))


def _errors(question: Question, spans: Spans, consumer: Consumer, contributors: int) -> Errors:
    values = contributors * question.values
    sent = round(question.participation * values)  # as many are expected to be sent
    law = law_of(question, question.parts[spans.part], sent)
    atoms = np.array(spans.atoms)
    # The variance is linear in the number of values that an interval holds: it is largest at none or at all.
    worst = np.maximum(*(law.variance(atoms, np.full(atoms.size, count)) for count in (0.0, float(values))))
    return Errors(np.sqrt(law.variance(atoms, values * shares(consumer))), np.sqrt(worst))

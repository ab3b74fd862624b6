"""What a collection asks of every contributor: intervals, epsilon, encoding. Public, and a text of JSON.

A contributor's program needs nothing else of the collection, and does not trust it: the contributor's own record adds
up the epsilon of every question.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

from dphist_pipeline.base.canonical_json import canonical_json, sha256
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.estimates.randomized_response import MOST_ASKED, Encoding

Combine = Literal["separate", "summed"]

FORMAT = 1
LEAST_EPSILON, MOST_EPSILON = SMALLEST_EPSILON, LARGEST_EPSILON
MOST_INTERVALS, MOST_VALUES = MOST_ASKED
MOST_PARTS = 1000
LONGEST_QUESTION = 10_000_000
EVERY_ROUND = "all"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,60}(/[1-9]\d{0,59})?", re.ASCII)


def question_invalid(problem: str) -> Refused:
    """A text that is not a valid question of a collection."""
    return Refused(
        f"this is not a question of a collection: {problem}. Ask its curator for the file again.",
        code="question_invalid",
        problem=problem,
    )


@dataclass(frozen=True)
class Part:
    """One vector of a report: which interval a value lies in.

    Attributes:
        edges: of its intervals, exact and rising; intervals are half-open, [a, b), and the last is closed.
        epsilon: that one report of this part spends.
        encoding: of the interval; see `encoding`.
    """

    edges: tuple[Fraction, ...]
    epsilon: Fraction
    encoding: Encoding

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MOST_INTERVALS + 1:
            raise question_invalid(f"a part needs between 1 and {MOST_INTERVALS:,} intervals")
        if any(abs(edge) > 10**15 for edge in self.edges):
            raise question_invalid("an edge lies beyond 10^15")
        if any(low >= high for low, high in pairwise(self.doubles)):
            raise question_invalid("the edges of a part must rise, by more than doubles can tell apart")
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            raise question_invalid("the epsilon of a part must lie between 10^-6 and 50")
        if self.encoding not in get_args(Encoding):
            raise question_invalid(f"an encoding is one of {', '.join(get_args(Encoding))}")

    @property
    def intervals(self) -> int:
        """Number of intervals."""
        return len(self.edges) - 1

    @cached_property
    def doubles(self) -> tuple[float, ...]:
        """The doubles nearest to the edges; values are compared with them."""
        return tuple(map(float, self.edges))

    @property
    def bits(self) -> int:
        """Bits of one vector: one for each interval, or the digits of a number from 0 to their number."""
        return self.intervals.bit_length() if self.encoding == "grr" else self.intervals

    @property
    def vector_bytes(self) -> int:
        """Bytes of one vector."""
        return -(-self.bits // 8)


@dataclass(frozen=True)
class Question:
    """All that a contributor is asked at once.

    Attributes:
        round: its first day, if the collection is asked repeatedly; else `all`.
        parts: a report has a vector for each.
        values: number of values that a contributor reports; missing ones are reported as none.
        combine: `separate` reports, or their vectors `summed` in one report.
        participation: probability that each report is sent; it lowers no epsilon.
    """

    collection: str
    parts: tuple[Part, ...]
    round: str = EVERY_ROUND
    values: int = 1
    combine: Combine = "separate"
    participation: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.collection):
            raise question_invalid("the name of a collection is letters, digits and underscores")
        if self.round != EVERY_ROUND and not _is_day(self.round):
            raise question_invalid("a round is a day as 2026-03-02, or `all`")
        if not 1 <= len(self.parts) <= MOST_PARTS:
            raise question_invalid(f"it needs between 1 and {MOST_PARTS:,} parts")
        if not 1 <= self.values <= MOST_VALUES:
            raise question_invalid(f"a contributor reports between 1 and {MOST_VALUES} values")
        if self.combine not in get_args(Combine):
            raise question_invalid("values are `separate` or `summed`")
        if not 0 < self.participation <= 1 or self.participation.denominator > 10**9:
            raise question_invalid("participation lies above 0 and is at most 1, with a denominator of up to 10^9")
        if self.combine == "summed" and self.participation < 1:
            raise question_invalid("summed values cannot be sampled: how many were sent would be unknown")
        if self.combine == "summed" and any(part.encoding == "grr" for part in self.parts):
            raise question_invalid("summed values need an encoding with a bit for each interval")

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that a contributor spends by answering: all parts of all reports, sent or not."""
        return self.values * self.report_epsilon

    @property
    def report_epsilon(self) -> Fraction:
        """The epsilon that all parts of one report spend."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def planes(self) -> int:
        """Bits of an entry of a report: more than one if values are summed."""
        return self.values.bit_length() if self.combine == "summed" else 1

    @property
    def reports(self) -> int:
        """Number of reports of a contributor: one for each value, or one for their sum."""
        return 1 if self.combine == "summed" else self.values

    @property
    def contributor_bits(self) -> int:
        """Bits of all that a contributor sends, if every report is sent."""
        return self.reports * self.planes * sum(part.bits for part in self.parts)

    @property
    def contributor_bytes(self) -> int:
        """Bytes of all that a contributor sends, as they are packed."""
        return self.reports * self.report_bytes

    @property
    def part_bytes(self) -> tuple[int, ...]:
        """Bytes of each part of a report."""
        return tuple(self.planes * part.vector_bytes for part in self.parts)

    @property
    def report_bytes(self) -> int:
        """Bytes of one report."""
        return sum(self.part_bytes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex; another digest is another question, whose epsilon is spent anew."""
        return sha256(self._facts())

    def to_json(self) -> str:
        """Canonical JSON: the same question is the same text."""
        return canonical_json(self._facts())

    def _facts(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "collection": self.collection,
            "round": self.round,
            "values": self.values,
            "combine": self.combine,
            "participation": str(self.participation),
            "parts": [
                {"edges": [str(edge) for edge in part.edges], "epsilon": str(part.epsilon), "encoding": part.encoding}
                for part in self.parts
            ],
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Question:
        """The question in a text.

        Raises:
            Refused: `to_json` would not write it, apart from spaces and the order of names.
        """
        facts = _object(_parse_json(text), _FIELDS)
        if facts["format"] != FORMAT:
            raise question_invalid(f"its format is not {FORMAT}; use the version of dphist that wrote it")
        parts = [_object(part, _PART_FIELDS) for part in facts["parts"][: MOST_PARTS + 1]]
        if any(len(part["edges"]) > MOST_INTERVALS + 1 for part in parts):
            raise question_invalid(f"`edges` must be a list of at most {MOST_INTERVALS + 1:,} numbers")
        return cls(
            collection=facts["collection"],
            round=facts["round"],
            values=facts["values"],
            combine=facts["combine"],
            participation=_number(facts["participation"]),
            parts=tuple(
                Part(tuple(map(_number, part["edges"])), _number(part["epsilon"]), part["encoding"]) for part in parts
            ),
        )


_FIELDS: dict[str, type] = {
    **{"format": int, "collection": str, "round": str, "values": int},
    **{"combine": str, "participation": str, "parts": list},
}
_PART_FIELDS: dict[str, type] = {"edges": list, "epsilon": str, "encoding": str}
_KINDS = {int: "a whole number", str: "text", list: "a list"}


def _parse_json(text: str | bytes) -> object:
    if len(text) > LONGEST_QUESTION:
        raise question_invalid(f"it is longer than {LONGEST_QUESTION // 1_000_000} MB")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):  # broken, bad UTF-8, a name twice, endless nesting or digits
        problem = "it is not valid JSON with each name once"
    raise question_invalid(problem)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError
    return facts


def _object(value: object, kinds: dict[str, type]) -> dict[str, Any]:
    """A mapping with exactly these names and kinds of values."""
    if not isinstance(value, dict) or set(value) != set(kinds):
        raise question_invalid(f"it must have exactly the names {', '.join(sorted(kinds))}")
    for name, kind in kinds.items():
        if type(value[name]) is not kind:  # True is no whole number
            raise question_invalid(f"`{name}` must be {_KINDS[kind]}")
    return value


def _number(value: object) -> Fraction:
    if isinstance(value, str) and _NUMBER.fullmatch(value) and str(number := Fraction(value)) == value:
        return number
    raise question_invalid('numbers are text of digits in lowest terms, as "3" or "1/3"')


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

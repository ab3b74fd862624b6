"""A contributor's own record: the questions they answered, the epsilon spent, and the most that they allow.

Asking a contributor again returns the same reports, so nobody can average fresh draws. Every other question adds its
epsilon, and a question that would exceed the contributor's limit is not answered. The record is on the disk before a
report is given away, and holds no value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphist_pipeline.base.files import locked_folder, replace_durably
from dphist_pipeline.errors import Halted, Refused
from dphist_pipeline.local.encoding import choose_values, encode, report_ids, sent_reports
from dphist_pipeline.local.question import Question

FORMAT = 1


def limit_reached(question: Question, spent: Fraction, limit: Fraction) -> Refused:
    """A question would spend more than a contributor allows."""
    return Refused(
        f"answering '{question.collection}' (round {question.round}) spends epsilon {question.epsilon}; {spent} of "
        f"{limit} is spent already. Nothing was answered. Only the contributor can decide on a higher limit.",
        code="limit_reached",
        **{"question": question, "spent": spent, "limit": limit},
    )


def record_unusable(path: Path, problem: str) -> Halted:
    """A contributor's record that is missing, there already, or cannot be read."""
    return Halted(f"the contributor's record at {path} {problem}", code="record_unusable")


@dataclass(frozen=True)
class Report:
    """One report as it is sent.

    Attributes:
        id: 16 random bytes.
        body: packed; the question says how many bytes.
    """

    id: bytes
    body: bytes

    def line(self, question: Question) -> str:
        """The report as a line of text: question, id and body in hex."""
        return f"{question.digest[:16]} {self.id.hex()} {self.body.hex()}"


@dataclass(frozen=True)
class Contributor:
    """One person's record of all collections."""

    path: Path

    @classmethod
    def create(cls, path: Path | str, limit: Fraction) -> Contributor:
        """Makes a new record.

        Args:
            limit: the most epsilon that all answers together may spend.

        Raises:
            Halted: there is one already, or it cannot be written.
        """
        if limit <= 0:
            raise record_unusable(Path(path), "needs a limit above 0")
        contributor = cls(Path(path))
        with contributor._held():
            if contributor._file.exists():
                raise record_unusable(contributor.path, "is there already; open it, or name another")
            contributor._write({"format": FORMAT, "limit": str(limit), "answered": {}})
        return contributor

    @property
    def limit(self) -> Fraction:
        """The most that all answers together may spend."""
        return Fraction(self._read()["limit"])

    @property
    def spent(self) -> Fraction:
        """The epsilon that all answers together have spent."""
        return _spent_epsilon(self._read())

    def answer(self, question: Question, values: Sequence[float]) -> tuple[Report, ...]:
        """The reports that answer a question: drawn the first time, and the same ones every later time.

        Args:
            values: all that the contributor has; there may be none, and nan. Ignored if the question was answered
                before.

        Raises:
            Refused: nothing was drawn.
            Halted: no report was given away.
        """
        with self._held():
            record = self._read()
            earlier_answer = record["answered"].get(question.digest)
            if earlier_answer is None:
                spent, limit = _spent_epsilon(record), Fraction(record["limit"])
                if spent + question.epsilon > limit:
                    raise limit_reached(question, spent, limit)
                earlier_answer = {
                    "collection": question.collection,
                    "round": question.round,
                    "epsilon": str(question.epsilon),
                }
                earlier_answer["reports"] = _draw_reports(question, values)
                record["answered"][question.digest] = earlier_answer
                self._write(record)
        return _reports(earlier_answer)

    @property
    def _file(self) -> Path:
        """The file with links resolved, so that a record with two names has one lock."""
        return self.path.resolve()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """One answer at a time, in all processes."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self._file.parent))
            except OSError as error:
                problem = "lies in no folder that can be read; make it, or name another"
                raise record_unusable(self.path, problem) from error
            yield

    def _read(self) -> dict[str, Any]:
        try:
            return _check_record(json.loads(self.path.read_bytes()))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            problem = "is missing or damaged; restore it. Without it nothing is answered"
            raise record_unusable(self.path, problem) from error

    def _write(self, record: dict[str, Any]) -> None:
        """Replaces the record, whole or not at all; the caller holds the lock."""
        try:
            replace_durably(
                self._file,
                self._file.with_name(f".{self._file.name}.draft"),
                json.dumps(record, indent=1).encode() + b"\n",
            )
        except OSError as error:
            raise record_unusable(
                self.path, f"cannot be written ({error.strerror}); no report was given away"
            ) from error


def _draw_reports(question: Question, values: Sequence[float]) -> list[tuple[str, str]]:
    """Draws the reports: ids and bodies in hex of those that are sent."""
    bodies = encode(question, choose_values(values, question.values)[None, :])
    is_sent = sent_reports(question, question.reports)
    ids = report_ids(question.reports)
    return [
        (name.tobytes().hex(), body.tobytes().hex()) for name, body in zip(ids[is_sent], bodies[is_sent], strict=True)
    ]


def _reports(entry: dict[str, Any]) -> tuple[Report, ...]:
    return tuple(Report(bytes.fromhex(name), bytes.fromhex(body)) for name, body in entry["reports"])


def _check_record(record: Any) -> dict[str, Any]:
    """The record after checking all of it; a damaged one raises one of the errors that `_read` expects."""
    sound = record["format"] == FORMAT and Fraction(record["limit"]) > 0
    for entry in record["answered"].values():
        sound &= Fraction(entry["epsilon"]) > 0 and all(len(report.id) == 16 for report in _reports(entry))
    if not sound:
        raise ValueError
    return dict(record)


def _spent_epsilon(record: dict[str, Any]) -> Fraction:
    return sum((Fraction(entry["epsilon"]) for entry in record["answered"].values()), Fraction(0))

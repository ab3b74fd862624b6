"""The answers to one question in a file of the contributors' side: who gave which report, and what each of them spent.

A row a report, those that were not sent included; it holds no value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.local.contributor import RecordUnusable
from dphist_pipeline.local.question import Question

Bytes = NDArray[np.uint8]

DAMAGED = "is damaged; restore it. Without it nothing is answered"
_EPSILON = b"epsilon"
_UNSOUND = (pa.ArrowException, OSError, KeyError, ValueError, TypeError, ArithmeticError)


@dataclass(frozen=True, eq=False)
class KeptAnswers:
    """Who answered a question, and how.

    Attributes:
        contributors: whose each report is.
        ids: uint8, shape (reports, 16).
        bodies: uint8, shape (reports, bytes of a report).
        are_sent: shape (reports,).
    """

    contributors: list[str]
    ids: Bytes
    bodies: Bytes
    are_sent: NDArray[np.bool_]

    @classmethod
    def nothing(cls, question: Question) -> KeptAnswers:
        """Those of nobody."""
        empty = np.empty(0, dtype=np.uint8)
        return cls(
            [],
            empty.reshape(0, 16),
            empty.reshape(0, question.report_bytes),
            np.empty(0, dtype=np.bool_),
        )

    @classmethod
    def read(cls, question: Question, file: Path) -> KeptAnswers:
        """Those in a file.

        Raises:
            RecordUnusable: it is damaged, or of another question.
        """
        try:
            return cls._read(question, file)
        except _UNSOUND:
            raise RecordUnusable(file, DAMAGED) from None

    @classmethod
    def _read(cls, question: Question, file: Path) -> KeptAnswers:
        table = pq.ParquetFile(file).read()
        names = table.column("contributor").to_pylist()
        ids, bodies = (table.column(name).to_pylist() for name in ("report_id", "report"))
        sound = _epsilon(table.schema) == question.epsilon and table.column("sent").null_count == 0
        sound &= set(Counter(names).values()) <= {question.reports} and None not in names
        sound &= {*map(len, ids)} <= {16} and {*map(len, bodies)} <= {question.report_bytes}
        if not sound:
            raise ValueError
        return cls(
            names,
            np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(-1, 16),
            np.frombuffer(b"".join(bodies), dtype=np.uint8).reshape(-1, question.report_bytes),
            np.array(table.column("sent").to_pylist(), dtype=np.bool_),
        )

    def write(self, question: Question, file: BinaryIO) -> None:
        """Writes them, and what each contributor spent on them."""
        rows = pa.table(
            {
                "contributor": pa.array(self.contributors, pa.string()),
                "report_id": pa.array([row.tobytes() for row in self.ids], pa.binary()),
                "report": pa.array([row.tobytes() for row in self.bodies], pa.binary()),
                "sent": pa.array(self.are_sent),
            }
        )
        pq.write_table(rows.replace_schema_metadata({_EPSILON: str(question.epsilon)}), file, write_statistics=False)

    def joined(self, more: KeptAnswers) -> KeptAnswers:
        """These, then those of others."""
        return KeptAnswers(
            self.contributors + more.contributors,
            np.concatenate([self.ids, more.ids]),
            np.concatenate([self.bodies, more.bodies]),
            np.concatenate([self.are_sent, more.are_sent]),
        )

    def of(self, names: set[str]) -> KeptAnswers:
        """Those of some contributors."""
        kept = np.array([name in names for name in self.contributors], dtype=np.bool_)
        return KeptAnswers(
            [name for name in self.contributors if name in names],
            self.ids[kept],
            self.bodies[kept],
            self.are_sent[kept],
        )


def who_spent(file: Path) -> tuple[list[str], Fraction]:
    """Who answered the question of a file, each once, and what they spent.

    Raises:
        RecordUnusable: it is damaged.
    """
    try:
        table = pq.ParquetFile(file).read(["contributor"])
        return table.column("contributor").unique().to_pylist(), _epsilon(table.schema)
    except _UNSOUND:
        raise RecordUnusable(file, DAMAGED) from None


def _epsilon(schema: Any) -> Fraction:
    epsilon = Fraction(schema.metadata[_EPSILON].decode())
    if epsilon <= 0:
        raise ValueError
    return epsilon

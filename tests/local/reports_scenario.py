"""A small question, reports to it that are made by hand, and Parquet files of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.local.question import Part, Question

# Ten intervals: two bytes a report, of which six bits must be 0.
PART = Part(tuple(map(Fraction, range(11))), Fraction(1), "symmetric")
QUESTION = Question("ages", (PART,))
OTHER = Question("wages", (PART,))
SUMMED = Question("ages", (PART,), values=3, combine="summed")
NAME, OTHER_NAME = QUESTION.digest[:16], OTHER.digest[:16]
FIRST_BIT, NO_BIT, MALFORMED = b"\x80\x00", b"\x00\x00", b"\x00\x01"
ALL_FINE = {"unreadable": 0, "other question": 0, "wrong length": 0, "malformed": 0, "duplicate": 0}


def name_of(number: int) -> bytes:
    """An id of its own for each number."""
    return number.to_bytes(16, "big")


def columns(
    bodies: Sequence[bytes | None], ids: Sequence[bytes | None] | None = None, names: Sequence[str | None] | None = None
) -> dict[str, Any]:
    """The columns of so many reports, of different contributors unless ids are given."""
    return {
        "question": pa.array([NAME] * len(bodies) if names is None else names, pa.string()),
        "report_id": pa.array([name_of(number) for number in range(len(bodies))] if ids is None else ids, pa.binary()),
        "report": pa.array(bodies, pa.binary()),
    }


def written(path: Path, held: Any, **options: Any) -> Path:
    """A Parquet file of columns, or of a table."""
    pq.write_table(held if isinstance(held, pa.Table) else pa.table(held), path, **options)
    return path


def random_ids(reports: int, seed: int = 7) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Ids as contributors draw them."""
    return np.random.default_rng(seed).integers(0, 256, (reports, 16), dtype=np.uint8)

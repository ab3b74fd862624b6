"""Arrow columns from numbers and texts, built from their bytes.

Arrow's own `pa.array` imports pandas where it is installed, which takes longer than to write a small release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FEW = 10_000  # Arrow takes more of them faster, but loads its functions for that, which takes 50 ms
TYPES = {"float64": pa.float64(), "int64": pa.int64()}


def numbers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Any:
    """A column of float64 or int64; it uses the memory of the array.

    Args:
        values: shape (rows,).
        missing: which rows are null, shape (rows,).
    """
    dense = np.ascontiguousarray(values)
    buffers = [None if missing is None else _validity(missing), pa.py_buffer(dense)]
    return pa.Array.from_buffers(TYPES[dense.dtype.name], dense.size, buffers)


def texts(values: Sequence[str | None]) -> Any:
    """A column of texts, where None is null."""
    encoded = [(value or "").encode() for value in values]
    ends = np.array([0, *accumulate(map(len, encoded))], dtype=np.int32)
    validity = _validity(np.array([value is None for value in values], dtype=np.bool_))
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [validity, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def taken(values: Sequence[str | None], places: NDArray[np.intp]) -> Any:
    """A column of the texts at some places.

    Args:
        values: which None makes null.
        places: into the texts, shape (rows,).
    """
    if places.size > FEW:
        return texts(values).take(numbers(places))
    return texts([values[place] for place in places.tolist()])


def batch_of(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """A record batch of rows of text, int64 and float64, where None is null."""
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if field.type == pa.string():
            columns.append(texts(values))
            continue
        missing = np.array([value is None for value in values], dtype=np.bool_)
        filled = [0 if value is None else value for value in values]
        columns.append(numbers(np.array(filled, dtype=field.type.to_pandas_dtype()), missing))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _validity(missing: NDArray[np.bool_]) -> Any:
    """The bitmap of the rows that are there; None if all are."""
    return pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None

"""The digest of released values, which the ledger keeps: from an estimate, and from published files.

It depends on the values alone, not on the versions of the libraries that wrote the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.published_columns import VALUE_COLUMNS
from dphist_pipeline.estimates.estimate import AnyEstimate, FamilyEstimate
from dphist_pipeline.estimates.row_quality import RowTable

_BYTES = {"double": "<f8", "int64": "<i8"}
_CELLS = {column.name: _BYTES[column.kind] for column in VALUE_COLUMNS if column.is_digested}
_QUALITY = ("statistic", "axis", "estimate")
_digests = WeakKeyDictionary[AnyEstimate, str]()


def values_digest(estimate: AnyEstimate) -> str:
    """SHA-256 of the released values of an estimate.

    Computed once for each estimate, because several steps of a release compare it.
    """
    if estimate not in _digests:
        _digests[estimate] = _of_estimate(estimate)
    return _digests[estimate]


def digest_of_family(tables: Mapping[str, str]) -> str:
    """SHA-256 of the released values of a family of tables, by the digest of each table."""
    # What was bought about rows is in the digests of the tables.
    return hashlib.sha256(json.dumps(dict(tables), sort_keys=True).encode()).hexdigest()


def digest_of_files(histogram: Path, quality: Path | None) -> str:
    """SHA-256 of the released values that two Parquet files hold; a publication may have no quality table.

    Raises:
        ValueError: a file is no Parquet file with the columns of ours.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    problem = None
    try:
        cells = pq.ParquetFile(histogram).read(columns=list(_CELLS))
        columns = [_column(cells, name) for name in _CELLS]
        if quality is None:
            return _of_arrays(columns)
        rows = pq.ParquetFile(quality).read(columns=[*_QUALITY]).to_pydict()
        row_values = zip(*(rows[name] for name in _QUALITY), strict=True)
        tables = groupby(row_values, lambda row: RowTable.key_of(row[0], row[1]))
        return _of_arrays(
            [*columns, *(np.array([value for *_, value in table], dtype=np.float64) for _, table in tables)]
        )
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        problem = type(error).__name__
    raise ValueError(problem)


def _column(table: Any, name: str) -> NDArray[Any] | None:
    """A column of numbers; None where every row is null."""
    column = table.column(name)
    if column.null_count == len(column) and len(column):
        return None
    if column.null_count:
        raise ValueError(name)
    # Not `to_numpy`, which loads pandas.
    kind = _BYTES[str(column.type)]
    parts = [np.frombuffer(part.buffers()[1], kind, part.offset + len(part))[part.offset :] for part in column.chunks]
    return np.concatenate([np.empty(0, kind), *parts])


def _of_estimate(estimate: AnyEstimate) -> str:
    if isinstance(estimate, FamilyEstimate):
        return digest_of_family({name: values_digest(table) for name, table in estimate.tables.items()})
    # Files hold no negative zero of an unbiased estimate.
    unbiased = None if estimate.unbiased is None else np.asarray(estimate.unbiased.values) + 0.0
    cells = {"estimate": estimate.values, "unbiased_estimate": unbiased, "group_id": estimate.groups}
    return _of_arrays([*(cells[name] for name in _CELLS), *(table.values for table in estimate.quality)])


def _of_arrays(columns: Sequence[NDArray[Any] | None]) -> str:
    """The digest of the columns of cells, in their order, and of tables of numbers that follow them."""
    digest = hashlib.sha256()
    for values, kind in zip_longest(columns, _CELLS.values(), fillvalue="<f8"):
        content: Any = np.empty(0) if values is None else np.ascontiguousarray(values, dtype=kind).ravel()
        digest.update(content.nbytes.to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()

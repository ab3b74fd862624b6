"""The published tables as Parquet: every declared cell in declared order; groups, sums, quality and charges beside it.

One code path with fixed settings writes all of them: no statistics, no index, dictionaries for declared axes only,
row groups of a fixed number of rows. So files of the same domain differ only in the released values.

Columns are built from their bytes: Arrow's own `pa.array` imports pandas where it is installed, which takes longer than
to write a small release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, Domain
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES
from dphist_pipeline.estimates.estimate import AnyEstimate, Estimate
from dphist_pipeline.estimates.noisy import NestedSums, NoisySums, ReportedCells
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.estimates.whole_families import Population

GROUP_ROWS = 1 << 18
FEW = 10_000  # Arrow takes more of them faster, but loads its functions for that, which takes 50 ms
TYPES = {"float64": pa.float64(), "int64": pa.int64()}


@dataclass(frozen=True)
class ChargeRow:
    """One row of the audit table: what a step cost and the noise that it bought."""

    step: str
    epsilon: Fraction
    scale: Fraction | None

    @property
    def scale_text(self) -> str | None:
        """The scale of the noise, exact; None for a step that was forfeited."""
        return None if self.scale is None else str(self.scale)


def write_histogram(estimate: Estimate, path: Path) -> None:
    """Writes `histogram.parquet`: the columns of the axes, then those of `published_columns.KINDS_OF_VALUES`.

    `ci_lower` and `ci_upper` enclose the true bounded count with probability at least 95 %, not cut off: quantiles of
    the noise in `unbiased_estimate`, exact for noisy cells, calibrated for linear estimates of them and for estimates
    from reports. All three are null if the mechanism has no unbiased estimates.
    """
    domain = estimate.domain
    widths = np.zeros(1) if estimate.unbiased is None else estimate.unbiased.half_widths().ravel()
    widths = np.broadcast_to(widths, domain.cells)
    values = [pa.field(name, pa.type_for_alias(kind)) for name, kind in KINDS_OF_VALUES.items()]
    schema = pa.schema([*_axis_fields(domain), *values])
    parts = (_histogram_rows(estimate, widths, start, schema) for start in range(0, domain.cells, GROUP_ROWS))
    axes = [field.name for field in _axis_fields(domain)]
    _write(path, schema, parts, dictionary=axes)


def write_groups(estimate: Estimate, path: Path) -> None:
    """Writes `groups.parquet`: group_id, cells, noise_scale (of a draw), noise_variance (of the noise in each cell).

    Both are null if no noise was drawn. For estimates from reports the variance differs by cell and is not written.
    """
    sizes = np.array([estimate.domain.cells])
    if estimate.groups is not None:
        sizes = np.bincount(estimate.groups.ravel())
    spread = isinstance(estimate.sums, NoisySums)
    source = estimate.sums if spread else estimate.unbiased
    if source is None or isinstance(source, ReportedCells):
        scales, variances = pa.nulls(sizes.size, pa.float64()), pa.nulls(sizes.size, pa.float64())
    else:
        scales = numbers(np.full(sizes.size, float(source.scale)))
        # One noisy sum is spread over its cells; a mean of noisy cells averages a draw for each; without groups every
        # cell has its own draw.
        divisors = np.ones(sizes.size) if estimate.groups is None else sizes**2.0 if spread else sizes
        variances = numbers(source.variance / divisors)
    rows = pa.table(
        {
            "group_id": numbers(np.arange(sizes.size)),
            "cells": numbers(sizes.astype(np.int64)),
            "noise_scale": scales,
            "noise_variance": variances,
        }
    )
    _write(path, rows.schema, rows.to_batches(max_chunksize=GROUP_ROWS))


def write_sums(sums: NoisySums | NestedSums, path: Path) -> None:
    """Writes `sums.parquet`: the noisy sums that were drawn after the groups were found, a row for each.

    `parent` is the number of the sum of a larger box that holds this one; `noise_scale` is exact.
    """
    nested = NestedSums.of_groups(sums) if isinstance(sums, NoisySums) else sums
    number = np.arange(nested.values.size)
    rows = pa.table(
        {
            "sum_number": number,
            "parent": numbers(nested.parents.astype(np.int64), nested.parents < 0),
            "first_group": nested.firsts,
            "last_group": nested.lasts,
            "cells": nested.sizes,
            "noisy_sum": nested.values,
            "noise_scale": pa.repeat(pa.scalar(str(nested.scale)), number.size),
        }
    )
    _write(path, rows.schema, rows.to_batches(max_chunksize=GROUP_ROWS))


def write_quality(estimate: AnyEstimate, path: Path) -> None:
    """Writes `quality.parquet`: a row a number that was bought about rows, with its 95 % interval, not cut off."""
    text, whole, real = pa.string(), pa.int64(), pa.float64()
    names = [("statistic", text), ("axis", text), ("position", whole), ("category", text)]
    schema = pa.schema(names + [(name, real) for name in ("estimate", "ci_lower", "ci_upper", "noise_scale")])
    _write(path, schema, [batch_of(QualityTable.of(estimate.quality).rows, schema)])


def write_whole(counts: NDArray[np.int64], path: Path) -> None:
    """Writes `whole.parquet`: the whole count of every cell of a table of a family, in declared order.

    Args:
        counts: at least 0, shape of the table's domain.
    """
    rows = pa.table({"whole_count": numbers(counts.ravel().astype(np.int64))})
    _write(path, rows.schema, rows.to_batches(max_chunksize=GROUP_ROWS))


def write_population(population: Population, path: Path) -> None:
    """Writes `population.parquet`: a row for each distinct record behind whole tables, and how many `rows` it has."""
    axes = population.domain.axes
    schema = pa.schema([*_axis_fields(population.domain), pa.field("rows", pa.int64())])
    many = range(0, len(population.rows), GROUP_ROWS)
    parts = [
        (population.places[start : start + GROUP_ROWS], population.rows[start : start + GROUP_ROWS]) for start in many
    ]
    batches = [
        [
            column
            for number, axis in enumerate(axes)
            for column in _axis_columns(axis, places[:, number].astype(np.intp))
        ]
        + [numbers(rows)]
        for places, rows in parts
    ]
    _write(path, schema, [pa.RecordBatch.from_arrays(columns, schema=schema) for columns in batches])


def write_charges(facts: dict[str, Any], charges: list[ChargeRow], path: Path) -> None:
    """Writes `audit.parquet`: a row a charge, in the order of the steps, with the facts of the release beside it."""
    rows = [
        {
            **{name: facts[name] for name in ("release", "period", "revision", "account", "mechanism")},
            "step": charge.step,
            "epsilon": str(charge.epsilon),
            "epsilon_double": rounded_up(charge.epsilon),
            "noise_scale": charge.scale_text,
            "ledger_hash": facts["ledger"]["hash"] if facts["ledger"] else None,
        }
        for charge in charges
    ]
    text = pa.string()
    types = {"revision": pa.int64(), "epsilon_double": pa.float64()}
    schema = pa.schema([pa.field(name, types.get(name, text)) for name in rows[0]])
    _write(path, schema, [batch_of(rows, schema)])


def rounded_up(value: Fraction) -> float:
    """The least double that is not below a fraction: a cost is never shown too small."""
    near = float(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))


def _axis_fields(domain: Domain) -> list[Any]:
    return [pa.field(name, kind) for axis in domain.axes for name, kind in axis_columns(axis).items()]


def axis_columns(axis: Axis) -> dict[str, Any]:
    """The published columns of an axis with their types: days are ISO text, `other` is null in all of them."""
    return {name: pa.type_for_alias(kind) for name, kind in axis.columns.items()}


def _histogram_rows(estimate: Estimate, widths: NDArray[np.float64], start: int, schema: Any) -> Any:
    """The record batch of cells `start` … `start + GROUP_ROWS`."""
    domain = estimate.domain
    stop = min(start + GROUP_ROWS, domain.cells)
    places = np.unravel_index(np.arange(start, stop), domain.shape)
    columns = [column for axis, place in zip(domain.axes, places, strict=True) for column in _axis_columns(axis, place)]
    values = _value_columns(estimate, widths, slice(start, stop))
    for name, kind in KINDS_OF_VALUES.items():
        array = values[name]
        columns.append(pa.nulls(stop - start, pa.type_for_alias(kind)) if array is None else numbers(array))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value_columns(estimate: Estimate, widths: NDArray[np.float64], cells: slice) -> dict[str, NDArray[Any] | None]:
    """The values of some cells by the names of `VALUE_COLUMNS`; None where all are null."""
    unbiased, lower, upper = [None] * 3
    if estimate.unbiased is not None:
        middle = estimate.unbiased.values.ravel()[cells]
        unbiased, lower, upper = (middle + sign * widths[cells] for sign in (0.0, -1.0, 1.0))
    return {
        "estimate": estimate.values.ravel()[cells],
        "unbiased_estimate": unbiased,
        "ci_lower": lower,
        "ci_upper": upper,
        "group_id": None if estimate.groups is None else estimate.groups.ravel()[cells].astype(np.int64),
    }


def _axis_columns(axis: Axis, place: NDArray[np.intp]) -> list[Any]:
    columns = []
    for along in axis.published.values():
        if isinstance(along, list):
            columns.append(texts_at(along, place))
        else:
            values = along[place]
            columns.append(numbers(values, ~np.isfinite(values)))
    return columns


def _write(path: Path, schema: Any, batches: Iterator[Any] | list[Any], dictionary: list[str] | None = None) -> None:
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=dictionary or False,
        write_statistics=False,
        write_page_index=False,
        store_schema=False,
        version="2.6",
    ) as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=GROUP_ROWS)


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


def texts_at(values: Sequence[str | None], places: NDArray[np.intp]) -> Any:
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
        without_nulls = [0 if value is None else value for value in values]
        columns.append(numbers(np.array(without_nulls, dtype=field.type.to_pandas_dtype()), missing))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _validity(missing: NDArray[np.bool_]) -> Any:
    """The bitmap of the rows that are there; None if all are."""
    return pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None

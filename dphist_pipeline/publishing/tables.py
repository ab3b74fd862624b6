"""The published tables: every declared cell in declared order, the groups, and the charges, as Parquet.

One code path and fixed settings write all of them: no statistics, no index, no dictionary but for the declared axes,
row groups of a fixed number of rows. So files of the same domain differ in nothing but the released values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.privacy import noise

GROUP_ROWS = 1 << 18
LEVEL = Fraction(95, 100)
OUR_COLUMNS = ("estimate", "unbiased_estimate", "ci_lower", "ci_upper", "group_id")


@dataclass(frozen=True)
class Charged:
    """One row of the audit table: what a step cost and the noise that it bought."""

    step: str
    epsilon: Fraction
    scale: Fraction | None

    @property
    def scale_text(self) -> str | None:
        """The scale of the noise, exact; None for a step that was forfeited."""
        return None if self.scale is None else str(self.scale)


def write_histogram(estimate: Estimate, path: Path) -> None:
    """Writes `histogram.parquet`: axis columns, then estimate, unbiased_estimate, ci_lower, ci_upper, group_id.

    `ci_lower` and `ci_upper` enclose the true bounded count with probability at least 95 %: exact quantiles of the
    noise in `unbiased_estimate`, not cut off. They are null, as it is, where no noisy cells were paid for.
    """
    domain = estimate.domain
    width = noise.half_width(estimate.unbiased.scale, LEVEL) if estimate.unbiased else 0
    schema = pa.schema([*_axis_fields(domain), *_value_fields()])
    parts = (_histogram_rows(estimate, width, start, schema) for start in range(0, domain.cells, GROUP_ROWS))
    axes = [field.name for field in _axis_fields(domain)]
    _write(path, schema, parts, dictionary=axes)


def write_groups(estimate: Estimate, path: Path) -> None:
    """Writes `groups.parquet`: group_id, cells, noise_scale, noise_variance (of the noise in each of its cells)."""
    sizes = np.array([estimate.domain.cells])
    if estimate.groups is not None:
        sizes = np.bincount(estimate.groups.ravel())
    source = estimate.sums or estimate.unbiased
    if source is None:
        scales, variances = pa.nulls(sizes.size, pa.float64()), pa.nulls(sizes.size, pa.float64())
    else:
        scales = pa.array(np.full(sizes.size, float(source.scale)))
        variances = pa.array(source.variance / _averaged(estimate, sizes.astype(np.float64)))
    rows = pa.table(
        {
            "group_id": pa.array(np.arange(sizes.size), pa.int64()),
            "cells": pa.array(sizes, pa.int64()),
            "noise_scale": scales,
            "noise_variance": variances,
        }
    )
    _write(path, rows.schema, rows.to_batches(max_chunksize=GROUP_ROWS))


def _averaged(estimate: Estimate, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each group's cells divide the variance of one draw.

    One noisy sum is spread over the group; the mean of noisy cells averages as many draws; without groups a cell
    has its own.
    """
    if estimate.groups is None:
        return np.ones_like(sizes)
    return sizes**2 if estimate.sums is not None else sizes


def write_charges(facts: dict[str, Any], charges: list[Charged], path: Path) -> None:
    """Writes `audit.parquet`: a row a charge, with the facts of the release beside it."""
    rows = [
        {
            **{name: facts[name] for name in ("release", "period", "revision", "account", "mechanism")},
            "step": charged.step,
            "epsilon": str(charged.epsilon),
            "epsilon_double": rounded_up(charged.epsilon),
            "noise_scale": charged.scale_text,
            "ledger_hash": facts["ledger"]["hash"],
        }
        for charged in charges
    ]
    text = pa.string()
    types = {"revision": pa.int64(), "epsilon_double": pa.float64()}
    schema = pa.schema([pa.field(name, types.get(name, text)) for name in rows[0]])
    _write(path, schema, [pa.RecordBatch.from_pylist(rows, schema=schema)])


def rounded_up(value: Fraction) -> float:
    """The least double that is not below a fraction: a cost is never shown too small."""
    near = float(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))


def _axis_fields(domain: Domain) -> list[Any]:
    fields = []
    for axis in domain.axes:
        if isinstance(axis, BinnedAxis):
            fields += [
                pa.field(f"{axis.name}_lower", pa.float64()),
                pa.field(f"{axis.name}_upper", pa.float64()),
            ]
        else:
            fields.append(pa.field(axis.name, pa.string()))
    return fields


def _value_fields() -> list[Any]:
    return [pa.field(name, pa.int64() if name == "group_id" else pa.float64()) for name in OUR_COLUMNS]


def _histogram_rows(estimate: Estimate, width: int, start: int, schema: Any) -> Any:
    """The record batch of cells `start` … `start + GROUP_ROWS`."""
    domain = estimate.domain
    stop = min(start + GROUP_ROWS, domain.cells)
    places = np.unravel_index(np.arange(start, stop), domain.shape)
    columns = [column for axis, place in zip(domain.axes, places, strict=True) for column in _axis_columns(axis, place)]
    missing = pa.nulls(stop - start, pa.float64())
    unbiased = None if estimate.unbiased is None else estimate.unbiased.values.ravel()[start:stop]
    columns += [pa.array(estimate.values.ravel()[start:stop])]
    columns += [missing] * 3 if unbiased is None else [pa.array(unbiased + shift) for shift in (0.0, -width, width)]
    if estimate.groups is None:
        columns += [pa.nulls(stop - start, pa.int64())]
    else:
        columns += [pa.array(estimate.groups.ravel()[start:stop].astype(np.int64))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _axis_columns(axis: Axis, place: NDArray[np.intp]) -> list[Any]:
    if not isinstance(axis, BinnedAxis):
        names = pa.array([*axis.values, None] if axis.other else axis.values, pa.string())
        return [names.take(pa.array(place))]
    columns = []
    for ends in axis.bounds:
        taken = ends[place]
        columns.append(pa.array(taken, mask=~np.isfinite(taken)))
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

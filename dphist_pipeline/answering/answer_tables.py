"""Answers with many rows, as Arrow tables with the column names of the SQL macros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.bands import band_half_widths
from dphist_pipeline.answering.boxes import basis_of
from dphist_pipeline.answering.chosen_cells import Condition, QuestionRefused, chosen_cells
from dphist_pipeline.answering.marginals import Sums, axis_columns, marginal_sums
from dphist_pipeline.answering.notes import NOTES_OF_COUNTS, numbers_of_notes
from dphist_pipeline.answering.published import read_cells
from dphist_pipeline.answering.whole_counts import whole_counts
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.publishing.parquet_tables import OUR_COLUMNS

Reals = NDArray[np.float64]


def marginal_table(folder: Path, by: Sequence[str], box: Mapping[str, Condition]) -> pa.Table:
    """The estimated counts of a published folder by some axes.

    Args:
        folder: of one publication.
        by: axes or levels; the others are summed over.
        box: see `boxes.answer_box`.

    Returns:
        One row per combination: the columns of the axes, then the columns of an answer.

    Raises:
        QuestionRefused: see `marginals.marginal_sums`.
        PublishedFilesDamaged: a published file is missing or altered.
    """
    cells = read_cells(folder)
    sums = marginal_sums(cells, by, box)
    return _with_answers(_axis_columns(folder, axis_columns(cells.domain, by), sums.first_cells), sums)


def band_table(folder: Path, level: float, box: Mapping[str, Condition]) -> pa.Table:
    """The cells of a box with a confidence band: all intervals hold together with the probability `level`.

    Args:
        folder: of one publication.
        level: between 0 and 1.
        box: see `boxes.answer_box`.

    Returns:
        One row per cell: the columns of the axes, then the columns of an answer.

    Raises:
        QuestionRefused: see `chosen_cells`; also if the level is not between 0 and 1.
        PublishedFilesDamaged: a published file is missing or altered.
    """
    if not 0 < level < 1:
        raise QuestionRefused("level", f"lies between 0 and 1, as 0.95, not {level!r:.60}")
    cells = read_cells(folder)
    inside = np.ix_(*chosen_cells(cells.domain, box))
    numbers = np.arange(cells.domain.cells).reshape(cells.domain.shape)[inside].ravel()
    estimate = cells.values[inside].ravel()
    nothing = np.full(estimate.shape, np.nan)
    unbiased, reach, error = nothing, nothing, nothing
    if cells.unbiased is not None:
        law, shape = cells.unbiased, cells.domain.shape
        variances = law.variances if isinstance(law, ReportedCells) else np.float64(law.variance)
        unbiased = law.values[inside].ravel()
        reach = np.broadcast_to(band_half_widths(law, estimate.size, level), shape)[inside].ravel()
        error = np.sqrt(np.broadcast_to(variances, shape)[inside].ravel())
    together = np.full(estimate.shape, estimate.size)
    sums = Sums(numbers, together, estimate, unbiased, reach, error, basis_of(cells.unbiased))
    return _with_answers(_axis_columns(folder, None, numbers), sums)


def counts_table(folder: Path) -> pa.Table:
    """All cells as whole numbers; see `whole_counts.whole_counts`.

    Args:
        folder: of one publication.

    Returns:
        One row per cell: the columns of the axes, `count` and `estimate`.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
    """
    cells = read_cells(folder)
    rows = _axis_columns(folder, None, None)
    rows = rows.append_column("count", pa.array(whole_counts(cells.values).ravel()))
    return rows.append_column("estimate", pa.array(cells.values.ravel()))


def _axis_columns(folder: Path, columns: list[str] | None, numbers: NDArray[np.int64] | None) -> pa.Table:
    """Axis columns of the published table (all if None), for the cells with these numbers (all if None)."""
    file = pq.ParquetFile(folder / "histogram.parquet")
    if columns is None:
        columns = [name for name in file.schema_arrow.names if name not in OUR_COLUMNS]
    rows = file.read(columns) if columns else pa.table({"": pa.nulls(file.metadata.num_rows)})
    rows = rows if numbers is None else rows.take(pa.array(numbers))
    return rows.select(columns)


def _with_answers(rows: pa.Table, sums: Sums) -> pa.Table:
    note = numbers_of_notes(sums.estimate, sums.unbiased, sums.reach)
    columns = {
        "estimate": pa.array(sums.estimate),
        "unbiased": pa.array(sums.unbiased, from_pandas=True),
        "noise_error": pa.array(sums.noise_error, from_pandas=True),
        "ci_lower": pa.array(sums.unbiased - sums.reach, from_pandas=True),
        "ci_upper": pa.array(sums.unbiased + sums.reach, from_pandas=True),
        "basis": pa.repeat(sums.basis, sums.estimate.size),
        "cells": pa.array(sums.cells),
        "note": pa.array([None, *NOTES_OF_COUNTS[1:]]).take(pa.array(note)),
    }
    arrays = [*rows.columns, *columns.values()]
    return pa.Table.from_arrays(arrays, names=[*rows.column_names, *columns])

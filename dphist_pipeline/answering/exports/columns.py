"""The columns of exported files beside those of the axes, each once.

Every format reads this table, as do `latest/` and what describes it: a new column is one entry here. A column that
`published_columns.py` adds to Parquet files is exported by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.catalogue_rows import day_of_period
from dphist_pipeline.base.languages.texts import mark_text
from dphist_pipeline.base.published_columns import VALUE_COLUMNS


@dataclass(frozen=True)
class ExportedCells:
    """The arrays from which the columns of a publication are made.

    `answered`: what `dph_marginal` and `dph_whole` answer of each cell in declared order, by their columns.
    """

    publication: Publication
    answered: Mapping[str, Any]


@dataclass(frozen=True)
class ExportColumn:
    """A column of exported files.

    Attributes:
        name: in files; SDMX has it in capitals. An axis of that name keeps it, and the column is left out.
        kind: the type, in Arrow's words.
        meaning: for notes, data packages and structures, in English.
        values: one for each cell, or one for all cells; None where all are null.
        label: what a heading of PX calls it; made of the name where it is empty.
        is_fact: whether it tells of the publication, not of a cell.
        is_hidden: whether a least figure that is shown hides it.
        has_noise: whether its numbers have the decimals that the noise justifies.
    """

    name: str
    kind: str
    meaning: str
    values: Callable[[ExportedCells], Any]
    label: str = ""
    is_fact: bool = False
    is_hidden: bool = False
    has_noise: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it has a number for each cell."""
        return not self.is_fact and self.kind in ("double", "int64")


def _fact(name: str, kind: str, meaning: str, values: Callable[[ExportedCells], Any]) -> ExportColumn:
    return ExportColumn(name, kind, meaning, values, is_fact=True)


def _answer_column(name: str, meaning: str, label: str = "", of: str = "", is_hidden: bool = True) -> ExportColumn:
    """A number that a question of the cell answers; `of`: its name there."""
    return ExportColumn(
        name, "double", meaning, lambda cells: cells.answered[of or name], label, is_hidden=is_hidden, has_noise=True
    )


def _word(name: str, meaning: str) -> ExportColumn:
    return ExportColumn(name, "string", meaning, lambda cells: cells.answered[name])


def _as_published(name: str) -> Callable[[ExportedCells], Any]:
    """Reads a column of the published file; None where an earlier version wrote it without."""

    def values(cells: ExportedCells) -> Any:
        file = pq.ParquetFile(cells.publication.folder / "histogram.parquet")
        return file.read([name])[name] if name in file.schema_arrow.names else None

    return values


_MEANINGS = {column.name: column.in_views for column in VALUE_COLUMNS}
KEY = (
    _fact("period", "string", mark_text("first day of the period"), lambda cells: cells.publication.audit["period"]),
    _fact(
        "revision",
        "int64",
        mark_text("from 1; only the latest revision of a period is exported, unless another one is asked for"),
        lambda cells: cells.publication.audit["revision"],
    ),
)
_OF_CELLS = (
    _answer_column("estimate", _MEANINGS["estimate"], "Estimate"),
    _answer_column("unbiased", _MEANINGS["unbiased_estimate"], mark_text("Unbiased estimate")),
    _answer_column(
        "standard_error",
        mark_text("standard deviation of the noise in the column unbiased"),
        mark_text("Standard error of the noise"),
        of="noise_error",
        is_hidden=False,
    ),
    _answer_column("ci_lower", _MEANINGS["ci_lower"], mark_text("Lower end of the 95 % interval")),
    _answer_column("ci_upper", _MEANINGS["ci_upper"], mark_text("Upper end of the 95 % interval")),
    ExportColumn(
        "whole_count",
        "int64",
        mark_text("the cell as a non-negative whole number, fitted so that sums stay near the unbiased ones"),
        lambda cells: cells.answered["whole_count"],
        mark_text("Whole number"),
        is_hidden=True,
    ),
    _word("reliability", mark_text("a word for the error")),
    _word("note", mark_text("what to know about the estimate, in English")),
)
_AFTER = (
    _fact(
        "period_start",
        "date32",
        mark_text("first day of the period, as a date; empty without periods"),
        lambda cells: day_of_period(cells.publication.audit, "period_start"),
    ),
    _fact(
        "period_end",
        "date32",
        mark_text("day after the last day of the period, as a date; empty without periods"),
        lambda cells: day_of_period(cells.publication.audit, "period_end"),
    ),
    _fact("release", "string", mark_text("name of the release"), lambda cells: cells.publication.audit["release"]),
)
# Published columns that an answer tells, or that tell of the groups of a mechanism, are not exported a second time.
_TOLD = {"estimate", "unbiased_estimate", "ci_lower", "ci_upper", "group_id"}
_PUBLISHED = tuple(
    ExportColumn(column.name, column.kind, column.in_views, _as_published(column.name), is_hidden=True)
    for column in VALUE_COLUMNS
    if column.name not in _TOLD
)
COLUMNS: tuple[ExportColumn, ...] = (*KEY, *_OF_CELLS, *_PUBLISHED, *_AFTER)


def in_arrow(column: ExportColumn, cells: ExportedCells) -> Any:
    """The values of a column as an array of its kind, one for each cell."""
    number, kind = cells.publication.domain.of_rows.cells, pa.type_for_alias(column.kind)
    values = column.values(cells)
    if values is None:
        return pa.nulls(number, kind)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type == kind else values.cast(kind)
    return pa.repeat(pa.scalar(values, kind), number)

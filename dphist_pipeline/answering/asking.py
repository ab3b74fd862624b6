"""Asks the SQL macros about publications. SQL is the only implementation of published answers.

The macros run in the store's catalogue if it holds the publications as they are, else in a catalogue made in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from dphist_pipeline.answering.answers import Answer, Quantile, RangeAnswer
from dphist_pipeline.answering.catalogue import NAME, attach_catalogue
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.answering.chosen_cells import (
    Condition,
    End,
    QuestionRefused,
    box_as_json,
    check_axes,
    chosen_cells,
    end_as_json,
    overlapped_cells,
)
from dphist_pipeline.answering.published import audit_in_force
from dphist_pipeline.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.publishing.parquet_tables import axis_columns
from dphist_pipeline.publishing.release_files import read_audit
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.sql_files import identifier, literal

Box = Mapping[str, Condition]
Found = TypeVar("Found", Answer, Quantile)
ANSWER_COLUMNS = ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper", "basis", "cells", "note")
OPEN_AT_ONCE = 4


@dataclass(frozen=True)
class Publication:
    """A published folder that answers questions.

    Attributes:
        folder: of the publication.
        audit: the facts in `audit.json`.
    """

    folder: Path
    audit: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Publication:
        """A publication whose files are those that were published.

        Args:
            folder: of one publication.

        Raises:
            PublishedFilesDamaged: a published file is missing or altered.
            PublicationWithdrawn: the publication was withdrawn.
        """
        return cls(folder, audit_in_force(folder))

    @cached_property
    def domain(self) -> Domain:
        """The declared grid."""
        return domain_of(self.audit["axes"])

    def answer(self, box: Box) -> Answer:
        """The estimated count in a box, whose ends may cut bins: `dph_box`.

        Args:
            box: see `boxes.answer_box`.

        Raises:
            QuestionRefused: an axis or category is unknown, an end lies beyond the edges, or the box holds no cells.
        """
        overlapped_cells(self.domain, box)
        (row,) = self._rows("dph_box", box_as_json(self.domain, box))
        return _from_row(Answer, row)

    def range(self, axis: str, ends: tuple[End, End], box: Box) -> RangeAnswer:
        """The estimated count in a half-open range of an axis, whether or not its ends are edges: `dph_range`.

        Args:
            axis: name of a binned axis.
            ends: (low, high) in axis units, or as days; None for an open end.
            box: conditions on the other axes; see `boxes.answer_box`.

        Raises:
            QuestionRefused: the axis is not a binned axis, the ends are in the wrong order or beyond all bins, or see
                `chosen_cells`.
        """
        found = next((one for one in self.domain.axes if one.name == axis and isinstance(one, BinnedAxis)), None)
        written = [end_as_json(found, end) for end in ends] if isinstance(found, BinnedAxis) else ends
        rows = self._rows("dph_range", axis, *written, self._whole_bins(box))
        answers = [_from_row(Answer, row) for row in rows]  # one row, or the inner and the outer one
        return RangeAnswer(answers[0], answers[-1])

    def marginal(self, by: Sequence[str], box: Box) -> pa.Table:
        """The estimated counts by some axes or levels, summed over the others: `dph_marginal`.

        Args:
            by: axes or levels.
            box: see `boxes.answer_box`.

        Returns:
            One row per combination: the columns of the axes, then the columns of an answer.

        Raises:
            QuestionRefused: an axis or level is unknown, or see `chosen_cells`.
        """
        if isinstance(by, str):
            raise QuestionRefused(by, f"give a list of axes, as in [{by!r}]")
        check_axes(self.domain, by)
        return self._table("dph_marginal", by, ANSWER_COLUMNS, list(by), self._whole_bins(box))

    def share(self, part: Box, whole: Box) -> Answer:
        """The share of a box that lies in a part of it, from 0 to 1: `dph_share`.

        Args:
            part: a box; the part is the cells that lie in both boxes.
            whole: a box; see `boxes.answer_box`.

        Raises:
            QuestionRefused: part and whole have no cells in common, or see `chosen_cells`.
        """
        (row,) = self._rows("dph_share", self._whole_bins(part), self._whole_bins(whole))
        return _from_row(Answer, row)

    def quantiles(self, axis: str, shares: Sequence[float], box: Box) -> list[Quantile]:
        """The bins of an axis that contain some quantiles: `dph_quantile`. Their intervals hold together.

        Args:
            axis: name of a binned axis.
            shares: each between 0 and 1.
            box: see `boxes.answer_box`.

        Raises:
            QuestionRefused: the axis is not a binned axis, a share is not between 0 and 1, or see `chosen_cells`.
        """
        wanted = [float(share) for share in shares]
        rows = self._rows("dph_quantile", axis, wanted, self._whole_bins(box))
        found = {row["q"]: _from_row(Quantile, row) for row in rows}
        return [found[share] for share in wanted]

    def mean(self, axis: str, low: End, high: End, box: Box) -> Answer:
        """The mean of a binned axis over the rows of a box, in axis units: `dph_mean`.

        Args:
            axis: name of a binned axis.
            low: no value lies below it; only used for an open bin.
            high: no value lies above it; only used for an open bin.
            box: see `boxes.answer_box`.

        Raises:
            QuestionRefused: the axis is not a binned axis, the end of an open bin is not given, or see `chosen_cells`.
        """
        return self._moment("dph_mean", axis, (low, high), box)

    def sum(self, axis: str, low: End, high: End, box: Box) -> Answer:
        """The sum of a binned axis over the rows of a box, in axis units: `dph_sum`; see `mean`."""
        return self._moment("dph_sum", axis, (low, high), box)

    def _moment(self, macro: str, axis: str, ends: tuple[End, End], box: Box) -> Answer:
        written = [None if end is None else str(end) for end in ends]
        (row,) = self._rows(macro, axis, *written, self._whole_bins(box))
        return _from_row(Answer, row)

    def band(self, level: float, box: Box) -> pa.Table:
        """The cells of a box with a band that holds with the probability `level`: `dph_band`.

        Args:
            level: between 0 and 1.
            box: see `boxes.answer_box`.

        Returns:
            One row per cell: the columns of the axes, then the columns of an answer.

        Raises:
            QuestionRefused: the level is not between 0 and 1, or see `chosen_cells`.
        """
        return self._table("dph_band", None, ANSWER_COLUMNS, float(level), self._whole_bins(box))

    def whole(self) -> pa.Table:
        """All cells as non-negative whole numbers whose sums stay near the unbiased ones: `dph_whole`.

        Returns:
            One row per cell: the columns of the axes, `whole_count` and `estimate`.
        """
        return self._table("dph_whole", None, ("whole_count", "estimate"))

    def change_since(self, earlier: Publication, box: Box) -> Answer:
        """The change of the count in a box since another publication: `dph_compare`.

        Args:
            earlier: the other publication, which may be of another release.
            box: see `boxes.answer_box`.

        Raises:
            QuestionRefused: see `chosen_cells`.
        """
        chosen_cells(earlier.domain, box)
        one, two = earlier._source, self._source
        if one.release != two.release or (one.period, one.revision) == (two.period, two.revision):
            one, two = (replace(both, release="both", period=str(n), renamed=True) for n, both in enumerate((one, two)))
        arguments = (one.period, two.period, self._whole_bins(box))
        revisions = [one.revision, two.revision]
        (row,) = _ask((one, two), "dph_compare", "*", arguments, {"revision": revisions}).to_pylist()
        return _from_row(Answer, row)

    @property
    def _source(self) -> _Source:
        facts = (self.audit[name] for name in ("audit_digest", "release", "period", "revision"))
        return _Source(self.folder.resolve(), *facts)

    def _whole_bins(self, box: Box) -> str:
        """A box as JSON; refuses one that cuts bins."""
        chosen_cells(self.domain, box)
        return box_as_json(self.domain, box)

    def _rows(self, macro: str, *arguments: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._one(macro, "*", arguments).to_pylist()
        return found

    def _table(self, macro: str, by: Sequence[str] | None, columns: Sequence[str], *arguments: object) -> pa.Table:
        """The rows of a macro: the columns of some axes or levels (of all if None), and other columns."""
        kinds = self._axis_columns(by)
        rows = self._one(macro, ", ".join(map(identifier, [*kinds, *columns])), arguments)
        # In the catalogue a column has one type for all periods and revisions.
        return rows.cast(pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in rows.schema]))

    def _one(self, macro: str, columns: str, arguments: tuple[object, ...]) -> pa.Table:
        mine = self._source
        return _ask((mine,), macro, columns, arguments, {"period": mine.period, "revision": mine.revision})

    def _axis_columns(self, by: Sequence[str] | None) -> dict[str, pa.DataType]:
        """The published columns of some axes or levels, with their types."""
        columns: dict[str, pa.DataType] = {}
        for axis in self.domain.axes:
            levels = axis.levels if isinstance(axis, CategoricalAxis) else ()
            for name, kind in axis_columns(axis).items():
                if by is None or (name if name in levels else axis.name) in by:
                    columns[name] = kind
        return columns


@dataclass(frozen=True)
class _Source:
    """A publication and its key in a catalogue; one that is renamed has another key than in the store's catalogue."""

    folder: Path
    digest: str
    release: str
    period: str
    revision: int
    renamed: bool = False


def _ask(
    sources: tuple[_Source, ...], macro: str, columns: str, arguments: tuple[object, ...], named: Mapping[str, object]
) -> pa.Table:
    """The rows of a macro about publications that have one name."""
    connection, within = _opened(sources)
    release = literal(f"{within}{identifier(sources[0].release)}")
    given = ", ".join([release, *("?" for _ in arguments), *(f"{name} := ?" for name in named)])
    query = f"SELECT {columns} FROM {within}{macro}({given})"
    try:
        return connection.cursor().sql(query, params=[*arguments, *named.values()]).to_arrow_table()
    except duckdb.InvalidInputException as error:
        problem = str(error).partition(f"{macro}: ")[2]
        if not problem:
            raise
    raise QuestionRefused("", problem)


def _opened(sources: tuple[_Source, ...]) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection whose tables hold the publications, and the prefix of their names."""
    public = sources[0].folder.parents[2]
    # A process that was forked must not use its parent's connections, so the number of the process is part of the key.
    with suppress(OSError):
        facts = (public / NAME).stat()
        connection, digests = _catalogue(os.getpid(), public, (facts.st_ino, facts.st_mtime_ns))
        if all(source.digest in digests and not source.renamed for source in sources):
            return connection, "catalogue."
    return _in_memory(os.getpid(), sources), ""


@lru_cache(maxsize=OPEN_AT_ONCE)
def _catalogue(process: int, public: Path, file: tuple[int, int]) -> tuple[duckdb.DuckDBPyConnection, frozenset[str]]:
    connection = duckdb.connect()
    return connection, attach_catalogue(connection, public)


@lru_cache(maxsize=OPEN_AT_ONCE)
def _in_memory(process: int, sources: tuple[_Source, ...]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    names = ({"release": one.release, "period": one.period} for one in sources)
    audits = ({**read_audit(one.folder), **name} for one, name in zip(sources, names, strict=True))
    create_tables(connection, [(one.folder, audit) for one, audit in zip(sources, audits, strict=True)])
    return connection


def _from_row(kind: type[Found], row: Mapping[str, Any]) -> Found:
    """An answer from a row of a macro: null is nan, or an empty note."""
    empty = {"note": "", "capped": ""}
    known = {field.name: row[field.name] for field in fields(kind) if field.name in row}
    filled: dict[str, Any] = {n: empty.get(n, math.nan) if fact is None else fact for n, fact in known.items()}
    return kind(**filled)

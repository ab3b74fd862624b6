"""Asks the SQL macros about publications. SQL is the only implementation of published answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa

from dphist_pipeline.answering._macro_calls import CatalogueSource, call_macro
from dphist_pipeline.answering._macros import macro as definition
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.answering.published import audit_in_force, first_day_of_week
from dphist_pipeline.base.domain import BinnedAxis, Domain
from dphist_pipeline.base.sql_files import identifier
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer, Quantile, RangeAnswer, found_in_row
from dphist_pipeline.estimates.chosen_cells import (
    Condition,
    End,
    QuestionRefused,
    box_as_json,
    check_axes,
    chosen_cells,
    end_as_json,
    overlapped_cells,
)
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.spec.axes import domain_of

Box = Mapping[str, Condition]
ANSWER_COLUMNS = ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper", "basis", "cells", "note")
MARGINAL_COLUMNS = (*ANSWER_COLUMNS, "reliability")
WHOLE_COLUMNS = ("whole_count", "estimate")
POPULATION = "dph_population"
NO_TABLES: Mapping[str, pa.Table] = MappingProxyType({})
NO_NAMES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class Publication:
    """A published folder that answers questions.

    `with_chance`: intervals cover the chance of counts, too, of all but counts and quantiles. Each question may raise
    QuestionRefused as `chosen_cells` does: an axis or category is unknown, or the box holds no cells.
    """

    folder: Path
    audit: Mapping[str, Any]
    with_chance: bool = False

    @classmethod
    def read(cls, folder: Path) -> Publication:
        """Reads a publication after checking that its files are those that were published.

        Raises:
            PublishedFilesDamaged: a published file is missing or altered.
            Refused: the publication was withdrawn.
        """
        return cls(folder, audit_in_force(folder))

    @cached_property
    def domain(self) -> Domain:
        """The declared grid."""
        return domain_of(self.audit["axes"])

    def answer(self, box: Box) -> Answer:
        """The estimated count in a box, whose ends may cut bins: `dph_box`.

        Raises:
            QuestionRefused: an axis or category is unknown, an end lies beyond the edges, or the box holds no cells.
        """
        overlapped_cells(self.domain, box)
        (row,) = self._rows("dph_box", box_as_json(self.domain, box))
        return found_in_row(Answer, row)

    def range(self, axis: str, ends: tuple[End, End], box: Box) -> RangeAnswer:
        """The estimated count in a half-open range of an axis, whether or not its ends are edges: `dph_range`.

        The ends are in axis units, or days; None for an open end. `box` is about the other axes.

        Raises:
            QuestionRefused: the axis is not a binned axis, the ends are in the wrong order or beyond all bins.
        """
        binned = next((one for one in self.domain.axes if one.name == axis and isinstance(one, BinnedAxis)), None)
        json_ends = [end_as_json(binned, end) for end in ends] if isinstance(binned, BinnedAxis) else ends
        rows = self._rows("dph_range", axis, *json_ends, self._whole_bins(box))
        answers = [found_in_row(Answer, row) for row in rows]  # one row, or the inner and the outer one
        return RangeAnswer(answers[0], answers[-1])

    def marginal(self, by: Sequence[str], box: Box) -> pa.Table:
        """The estimated counts by some axes or levels, summed over the others: `dph_marginal`.

        One row per combination: the columns of the axes, then the columns of an answer.
        """
        if isinstance(by, str):
            raise QuestionRefused(by, f"give a list of axes, as in [{by!r}]")
        check_axes(self.domain, by)
        return self._table("dph_marginal", by, MARGINAL_COLUMNS, list(by), self._whole_bins(box))

    def share(self, part: Box, whole: Box) -> Answer:
        """The share of a box that lies in a part of it, from 0 to 1: `dph_share`; the part is the cells in both boxes.

        Raises:
            QuestionRefused: part and whole have no cells in common.
        """
        (row,) = self._rows("dph_share", self._whole_bins(part), self._whole_bins(whole))
        return found_in_row(Answer, row)

    def share_by(self, by: Sequence[str], part: Box, whole: Box) -> pa.Table:
        """The share of a box that lies in a part of it for each value of some axes or levels: `dph_share`.

        One row per combination in which part and whole have cells in common: the columns of the axes, both counts, then
        the columns of an answer.
        """
        columns = ("part_estimate", "whole_estimate", *ANSWER_COLUMNS, "capped", "chance")
        boxes = (self._whole_bins(part), self._whole_bins(whole))
        return self._table("dph_share", by, columns, *boxes, rows_by=by)

    def quantiles(self, axis: str, shares: Sequence[float], box: Box) -> list[Quantile]:
        """The bins of an axis that contain quantiles, each in (0, 1): `dph_quantile`. Intervals hold together.

        Raises:
            QuestionRefused: the axis is not a binned axis, or a share is not between 0 and 1.
        """
        wanted = [float(share) for share in shares]
        rows = self._rows("dph_quantile", axis, wanted, self._whole_bins(box))
        quantiles = {row["q"]: found_in_row(Quantile, row) for row in rows}
        return [quantiles[share] for share in wanted]

    def mean(self, axis: str, low: End, high: End, box: Box) -> Answer:
        """The mean of a binned axis over the rows of a box, in axis units: `dph_mean`.

        No value of an open bin lies below `low` or above `high`.

        Raises:
            QuestionRefused: the axis is not a binned axis, or the end of an open bin is not given.
        """
        return self._moment("dph_mean", axis, (low, high), box)

    def sum(self, axis: str, low: End, high: End, box: Box) -> Answer:
        """The sum of a binned axis over the rows of a box, in axis units: `dph_sum`; otherwise as `mean`."""
        return self._moment("dph_sum", axis, (low, high), box)

    def _moment(self, macro: str, axis: str, ends: tuple[End, End], box: Box) -> Answer:
        texts = [None if end is None else str(end) for end in ends]
        (row,) = self._rows(macro, axis, *texts, self._whole_bins(box))
        return found_in_row(Answer, row)

    def band(self, level: float, box: Box) -> pa.Table:
        """The cells of a box with a band that holds with the probability `level`, in (0, 1): `dph_band`.

        One row per cell: the columns of the axes, then the columns of an answer.
        """
        return self._table("dph_band", None, ANSWER_COLUMNS, float(level), self._whole_bins(box))

    def whole(self) -> pa.Table:
        """All cells as non-negative whole numbers whose sums stay near the unbiased ones: `dph_whole`.

        One row per cell: the columns of the axes, `whole_count` and `estimate`.
        """
        return self._table("dph_whole", None, WHOLE_COLUMNS)

    def rate(self, by: Sequence[str], population: pa.Table, per: float, box: Box) -> pa.Table:
        """The estimated counts by axes or levels for each `per` (above 0) people of a public population: `dph_rate`.

        The population has the columns of the axes, as in `marginal`, and `population`. One row per combination: the
        columns of the axes, `population`, then the columns of an answer.

        Raises:
            QuestionRefused: a row of the population is missing, not above 0 or there twice.
        """
        arguments = (list(by), POPULATION, float(per), self._whole_bins(box))
        return self._table(
            "dph_rate",
            by,
            ("population", *MARGINAL_COLUMNS, "capped", "chance"),
            *arguments,
            tables={POPULATION: population},
        )

    def standardised(self, by: Sequence[str], over: str, population: pa.Table, per: float, box: Box) -> pa.Table:
        """Rates of groups as if each had a standard population along `over`: `dph_standardised`.

        The population is as in `rate`, with the columns of `over`, too, and `standard`. Without `by` there is one row.

        Raises:
            QuestionRefused: see `rate`; or the standard is not one population.
        """
        check_axes(self.domain, [*by, over])
        arguments = (list(by), over, POPULATION, float(per), self._whole_bins(box))
        columns = ("population", *MARGINAL_COLUMNS, "capped", "chance")
        return self._table("dph_standardised", by, columns, *arguments, tables={POPULATION: population})

    def ranks(self, axis: str, box: Box) -> pa.Table:
        """The ranks of the categories or bins of an axis by their counts, which hold together: `dph_ranks`.

        One row per category, the largest first: the columns of the axis, ranks, then the columns of an answer.
        """
        check_axes(self.domain, [axis])
        columns = ("rank", "rank_lower", "rank_upper", *ANSWER_COLUMNS, "chance")
        return self._table("dph_ranks", [axis], columns, axis, self._whole_bins(box))

    def difference(self, first: Box, second: Box) -> Answer:
        """The count in one box less that in another: `dph_difference`."""
        (row,) = self._rows("dph_difference", self._whole_bins(first), self._whole_bins(second))
        return found_in_row(Answer, row)

    def ratio(self, first: Box, second: Box) -> Answer:
        """The count in one box divided by that in another: `dph_ratio`; its upper end may be infinite."""
        (row,) = self._rows("dph_ratio", self._whole_bins(first), self._whole_bins(second))
        return found_in_row(Answer, row)

    def ratio_by(self, by: Sequence[str], first: Box, second: Box) -> pa.Table:
        """The ratio of two boxes for each value of some axes or levels: `dph_ratio`.

        One row per combination in which both boxes have cells: the columns of the axes, both counts, then the columns
        of an answer.

        Raises:
            QuestionRefused: no combination has cells in both boxes.
        """
        columns = ("first_estimate", "second_estimate", *ANSWER_COLUMNS, "capped", "chance")
        boxes = (self._whole_bins(first), self._whole_bins(second))
        return self._table("dph_ratio", by, columns, *boxes, rows_by=by)

    def changes(self, box: Box, by: Sequence[str] = ()) -> pa.Table:
        """The change of a count from each period of the release to the next one: `dph_changes`.

        One row per period but the first, and with `by` for each value that both periods have: both periods, the columns
        of the axes, both estimates, then the columns of an answer.
        """
        arguments = {**self._by(by), **self._chance("dph_changes")}
        return call_macro(self._periods, "dph_changes", "*", (self._whole_bins(box),), arguments)

    def by_period(self, box: Box) -> pa.Table:
        """The count in a box for each period of the release that stands, in order of time: `dph_box`."""
        return call_macro(self._periods, "dph_box", "*", (self._whole_bins(box),)).sort_by("period")

    def over(self, first: str | None, last: str | None, box: Box) -> Answer:
        """The count in a box over the periods of the release from the first to the last, together: `dph_over`.

        The limits are first days of periods; None for no limit.

        Raises:
            QuestionRefused: no period lies within.
        """
        return found_in_row(Answer, self.span(first, last, box))

    def span(self, first: str | None, last: str | None, box: Box) -> dict[str, Any]:
        """The row of `over` with the periods that it found: `first_period`, `last_period`, and how many `periods`."""
        release = PublishedFolder(self.folder.resolve()).release
        days = [day and first_day_of_week(release, day) for day in (first, last)]
        (row,) = call_macro(self._periods, "dph_over", "*", (*days, self._whole_bins(box))).to_pylist()
        return dict(row)

    def change_since(self, earlier: Publication, box: Box) -> Answer:
        """The change of the count in a box since another publication of the same account: `dph_compare`.

        Raises:
            QuestionRefused: the publications are of other accounts or units.
        """
        (row,) = self.changes_since(earlier, box)
        return found_in_row(Answer, row)

    def changes_since(self, earlier: Publication, box: Box, by: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of `dph_compare` about the change since another publication: one, or one for each value of `by`."""
        _check_related(earlier.audit, self.audit)
        if earlier.folder.resolve() == self.folder.resolve():
            # The noise of both is the same: no interval of two draws would be true.
            raise QuestionRefused("", f"release '{self.audit['release']}' would be compared with itself; name another")
        chosen_cells(earlier.domain, box)
        check_axes(earlier.domain, by)
        one, two = earlier.source, self.source
        sides = [f"release {side.release}" for side in (one, two)]
        is_of_one_period = one.period == two.period
        is_renamed = one.release != two.release or (one.period, one.revision) == (two.period, two.revision)
        if is_renamed:
            one, two = (replace(both, release="both", period=str(n), renamed=True) for n, both in enumerate((one, two)))
        arguments = (one.period, two.period, self._whole_bins(box))
        asked_for = {"revision": [one.revision, two.revision], **self._by(by), **self._chance("dph_compare")}
        rows: list[dict[str, Any]] = call_macro((one, two), "dph_compare", "*", arguments, asked_for).to_pylist()
        if is_renamed:
            of_periods = {**_of_period("first", earlier.source), **_of_period("second", self.source)}
            rows = [{**row, **of_periods} for row in rows]
        if not (is_renamed and is_of_one_period):
            return rows
        # The macro takes them for two periods of one release.
        of_first, of_second = f"in {sides[0]} ", f". In {sides[1]} "
        capped = [
            (row["capped"] or "").replace(notes.FIRST_PERIOD, of_first).replace(notes.SECOND_PERIOD, of_second)
            for row in rows
        ]
        remark = {"chance": notes.CHANCE_OF_RELEASES}
        return [{**row, **remark, "capped": one or None} for row, one in zip(rows, capped, strict=True)]

    def _by(self, by: Sequence[str]) -> dict[str, object]:
        """The argument of a macro that answers by axes."""
        check_axes(self.domain, by)
        return {"by": list(by)} if by else {}

    def _chance(self, macro: str) -> dict[str, object]:
        """The argument of a macro that takes chance in, where that is wanted."""
        return {"with_chance": True} if self.with_chance and "with_chance := false" in definition(macro) else {}

    @property
    def _periods(self) -> tuple[CatalogueSource, ...]:
        """All publications of the release that stand."""
        public = PublishedFolder(self.folder.resolve()).release.parent
        return tuple(Publication(*one).source for one in Catalogue(public).publications(self.audit["release"]))

    @property
    def source(self) -> CatalogueSource:
        """The name by which macros know it."""
        facts: Any = map(self.audit.get, ("audit_digest", "release", "period", "revision"))
        return CatalogueSource(self.folder.resolve(), *facts)

    def _whole_bins(self, box: Box) -> str:
        """A box as JSON; refuses one that cuts bins."""
        chosen_cells(self.domain, box)
        return box_as_json(self.domain, box)

    def _rows(self, macro: str, *arguments: object) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._one(macro, "*", arguments).to_pylist()
        return rows

    def _table(
        self,
        macro: str,
        by: Sequence[str] | None,
        columns: Sequence[str],
        *arguments: object,
        tables: Mapping[str, pa.Table] = NO_TABLES,
        rows_by: Sequence[str] = (),
    ) -> pa.Table:
        """The rows of a macro: the columns of some axes or levels (of all if None), and other columns."""
        kinds = self._axis_columns(by)
        rows = self._one(macro, ", ".join(map(identifier, [*kinds, *columns])), arguments, tables, self._by(rows_by))
        # In the catalogue a column has one type for all periods and revisions.
        return rows.cast(pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in rows.schema]))

    def _one(
        self,
        macro: str,
        columns: str,
        arguments: tuple[object, ...],
        tables: Mapping[str, pa.Table] = NO_TABLES,
        more: Mapping[str, object] = NO_NAMES,
    ) -> pa.Table:
        mine = self.source
        asked_for = {"period": mine.period, "revision": mine.revision, **self._chance(macro), **more}
        return call_macro((mine,), macro, columns, arguments, asked_for, tables)

    def _axis_columns(self, by: Sequence[str] | None) -> dict[str, pa.DataType]:
        """The published columns of some axes or levels, with their types."""
        columns: dict[str, pa.DataType] = {}
        for axis in self.domain.axes:
            for name, kind in ReaderAxis(axis).published.items():
                if by is None or (name if name in axis.levels else axis.name) in by:
                    columns[name] = kind
        return columns


def _of_period(side: str, source: CatalogueSource) -> dict[str, Any]:
    """The columns of a change that tell a period by its key; as in SQL, one that is no day has no first day."""
    try:
        day = date.fromisoformat(source.period)
    except ValueError:
        day = None
    return {f"{side}_period": source.period, f"{side}_period_start": day}


def _check_related(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Refuses two publications that do not count the same people, by their audits.

    Raises:
        QuestionRefused: they are of other accounts or units.
    """
    mine, theirs = ([audit[name] for name in ("account", "privacy_unit")] for audit in (other, one))
    if mine != theirs:
        owners = [f"account '{account}' and unit '{unit}'" for account, unit in (mine, theirs)]
        raise QuestionRefused(
            "",
            f"release '{other['release']}' is of {owners[0]}, '{one['release']}' of {owners[1]}: they do "
            "not count the same people; compare releases of one account",
        )


def marginals(publications: Sequence[Publication]) -> dict[tuple[str, int], pa.Table]:
    """The answers of `marginal` by all axes for the current publications of a release, which have the same cells.

    By period and revision: the columns of an answer, a row for each cell.
    """
    return _of_periods(
        publications, "dph_marginal", MARGINAL_COLUMNS, [axis.name for axis in publications[0].domain.of_rows.axes]
    )


def wholes(publications: Sequence[Publication]) -> dict[tuple[str, int], pa.Table]:
    """What `whole` answers, without the columns of axes; otherwise as `marginals`."""
    return _of_periods(publications, "dph_whole", WHOLE_COLUMNS)


def _of_periods(
    publications: Sequence[Publication], macro: str, columns: Sequence[str], *arguments: object
) -> dict[tuple[str, int], pa.Table]:
    """The answers of a macro that has a row for each cell: asked once, since to plan it takes longer than to answer."""
    rows = call_macro(tuple(one.source for one in publications), macro, "*", arguments)
    # By their places: an axis may be called as a column of an answer.
    after = len(rows.column_names) - rows.column_names[::-1].index(columns[-1])
    answers, cells = rows.select(range(after - len(columns), after)), publications[0].domain.of_rows.cells
    starts = range(0, rows.num_rows, cells)
    return {(rows[0][start].as_py(), rows[1][start].as_py()): answers.slice(start, cells) for start in starts}


def totals_of_periods(public: Path, release: str) -> dict[str, Answer]:
    """For each publication in force the answer for all cells, by the digest of its audit."""
    publications = [Publication(*one) for one in Catalogue(public.resolve()).publications(release)]
    sources = {(one.period, one.revision): one for one in (each.source for each in publications)}
    rows = call_macro(tuple(sources.values()), "dph_box", "*", ("{}",)).to_pylist()
    return {sources[row["period"], row["revision"]].digest: found_in_row(Answer, row) for row in rows}


def read_population(file: Path) -> pa.Table:
    """The rows of a public file, for `Publication.rate`.

    The file is CSV with a header, whose columns stay texts (so `01` stays `01`), or Parquet.

    Raises:
        QuestionRefused: the file is of another kind or cannot be read.
    """
    endings = {".csv": "read_csv($file, all_varchar := true, header := true)", ".parquet": "read_parquet($file)"}
    if file.suffix.lower() not in endings:
        raise QuestionRefused("", f"the population {file.name} must be a file that ends in .csv or .parquet")
    try:
        with duckdb.connect() as connection:
            query = f"FROM {endings[file.suffix.lower()]}"
            return connection.sql(query, params={"file": str(file)}).to_arrow_table()
    except duckdb.Error as error:
        problem = str(error).splitlines()[0]
    raise QuestionRefused("", f"the population {file.name} cannot be read: {problem}")

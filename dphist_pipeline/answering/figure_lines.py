"""The lines of figures: what the macros answer of each published period, in the catalogue and in `latest/figures.*`.

An amount has figures without declaring them: rows, sum and mean for every cell of the other axes, as the macros answer
(`estimates.amounts`). Lines of periods that were told already stand in the catalogue, so that a new period costs what
one costs. Nothing here fails a release: a figure that cannot be told is a line without a number, with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dphist_pipeline.answering._catalogue_places import FIGURES, Places
from dphist_pipeline.answering.catalogue_tables import create_tables, releases_in, version
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.base.domain import OTHER, Axis, Domain
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.errors import first_of
from dphist_pipeline.estimates.amounts import figures_by
from dphist_pipeline.estimates.chosen_cells import QuestionRefused, box_as_json
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.publishing.figure_files import DECLARED, DeclaredFigures, write_lines
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.parquet_tables import write_histogram
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.unbiased_facts import unbiased_facts
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.fields import FIGURES as OF_FIGURES
from dphist_pipeline.spec.published_figures import Figure

FORM, MOST_NAMED = 2, 20
MOST_CELLS = 20_000  # of rows, with lines for their amount
PEOPLE, ANSWER = "dph_population", "dph_answer"
NOT_ABOVE_NOISE = "the rows are not above their noise"
HIDDEN = "fewer rows than the least figure that is shown"
PLACES = Places()
FIRST = {"release": pa.string(), "period": pa.string(), "revision": pa.int32(), "figure": pa.string()}
LAST = {
    **dict.fromkeys(("value", "ci_lower", "ci_upper"), pa.float64()),
    **dict.fromkeys(("unit", "note", "source_digest"), pa.string()),
}
ABOUT = {
    "release": "name of the release",
    "period": "first day of the period, such as 2026-01-05; `all` for a release without periods",
    "revision": "the latest one of the period",
    "figure": "name of the figure in the spec; of an amount, `rows`, `sum_` and `mean_` with its name",
    "value": "the figure; null where it cannot be told, and `note` says why",
    "ci_lower": "lower end of its 95 % interval, which covers the noise alone",
    "ci_upper": "upper end of its 95 % interval",
    "unit": "what `value` is a number of; a share lies between 0 and 1",
    "note": "why there is no number, or what to know of it",
    "source_digest": "SHA-256 of the population file that it was computed with",
}
Line = dict[str, Any]


@dataclass(frozen=True)
class PublicationWithFigures:
    """A publication whose figures are told: a release, or a family with its tables.

    `audit`: of the release or family; `folder`: where its tables lie.
    """

    release: str
    audit: Mapping[str, Any]
    folder: Path

    @property
    def key(self) -> tuple[str, int]:
        """Its period and revision."""
        return str(self.audit["period"]), int(self.audit["revision"])

    @cached_property
    def grids(self) -> dict[str, Domain]:
        """The grids that it has, by the names of releases in the catalogue."""
        if "tables" not in self.audit:
            return {self.release: domain_of(self.audit["axes"])}
        return {f"{self.release}_{name}": domain_of(table["axes"]) for name, table in self.audit["tables"].items()}

    def line(self, figure: Figure, digest: str = "", note: str = "", **more: Any) -> Line:
        """A line of a declared figure, without a number by default."""
        if figure.rate is not None:
            unit = f"{self.counted} per {figure.rate.per:,.15g}"
        else:
            unit = f"share of {self.counted}" if figure.mean is None else self.unit_of(figure.mean.axis)
        return self._line(figure.name, unit, note=_sentences([note]), source_digest=digest, **more)

    def _line(self, figure: str, unit: str, **more: Any) -> Line:
        period, revision = self.key
        first = {"release": self.release, "period": period, "revision": revision, "figure": figure}
        last = dict.fromkeys(("value", "ci_lower", "ci_upper")) | {"unit": unit, "note": "", "source_digest": ""}
        return first | last | more

    @property
    def counted(self) -> str:
        """What its rows are called."""
        return str(self.audit.get("counted") or "rows")

    def unit_of(self, axis: str) -> str:
        """What the numbers of an axis are measured in, or what the axis is called."""
        amount = self.audit.get("amount") or {}
        measured_in = amount.get("measured_in") if amount.get("axis") == axis else None
        return str(measured_in or (self.audit.get("axis_labels") or {}).get(axis, axis))

    def amount_lines(self) -> Iterator[Line]:
        """Rows, sum and mean of its amount for every cell of the other axes; none without one, or of too many cells.

        A line about fewer rows than the least figure that is shown has no number.
        """
        if "amount" not in self.audit or (grid := domain_of(self.audit["axes"]).of_rows).cells > MOST_CELLS:
            return
        limit, capped = limit_of(self.audit), PublishedQuality(self.folder, self.audit).cap_in_words()
        columns = [(axis.name, *column) for axis in grid.axes for column in _published_columns(axis)]
        places = {axis.name: number for number, axis in enumerate(grid.axes)}
        for place, figures in figures_by(published_estimate(self.folder, self.audit), range(len(grid.axes))):
            axes = {column: values[place[places[axis]]] for axis, column, values in columns}
            hides = limit is not None and figures.rows.value < limit
            for one in figures.figures:
                is_of_rows = one.what == "rows"
                figure = one.what if is_of_rows else f"{one.what}_{figures.axis.name}"
                unit = self.counted if is_of_rows else self.unit_of(figures.axis.name)
                told: Line = {"note": _sentences([HIDDEN])}
                if not hides:
                    told = {"note": _sentences([one.note, "" if is_of_rows else capped])}
                    if not math.isnan(one.value):
                        told |= {"value": one.value, "ci_lower": one.lower, "ci_upper": one.upper}
                yield self._line(figure, unit, **axes, **told)


def _published_columns(axis: Axis) -> Iterator[tuple[str, list[Any]]]:
    """The columns of an axis, with the value of each at every position, as lines have them."""
    for name, along in axis.published.items():
        if isinstance(along, list):
            yield name, [OTHER if text is None and name == axis.name else text for text in along]
        else:
            yield name, [end if math.isfinite(end) else None for end in along.tolist()]


@dataclass(frozen=True)
class Asking:
    """Macros of a catalogue in use, which are asked for figures."""

    connection: duckdb.DuckDBPyConnection

    def lines(
        self, told: Sequence[PublicationWithFigures], declared: DeclaredFigures, figures: Sequence[Figure]
    ) -> Iterator[Line]:
        """The lines of some publications of a release, figure by figure; nothing fails."""
        for figure in figures:
            digest, why = declared.digest_of(figure), _why_no_population(declared, figure)
            by_grid: dict[str, list[PublicationWithFigures]] = defaultdict(list)
            for one in told:
                grid = figure.grid(one.grids)
                if why or grid is None:
                    yield one.line(figure, digest, why or f"the period has no {', '.join(figure.names)} in one table")
                else:
                    by_grid[grid].append(one)
            for grid, alike in by_grid.items():
                yield from self._of_grid(grid, alike, declared, figure, digest)

    def _of_grid(
        self, grid: str, told: Sequence[PublicationWithFigures], declared: DeclaredFigures, figure: Figure, digest: str
    ) -> Iterator[Line]:
        """All periods are asked at once, since to plan takes longest; by themselves where that is refused."""
        by_key = {one.key: one for one in told}
        try:
            rows = self.rows(grid, told[0], declared, figure, told[0].key[0] if len(told) == 1 else None)
        except QuestionRefused as refused:
            if len(told) == 1:
                yield told[0].line(figure, digest, refused.problem)
                return
            for one in told:
                yield from self._of_grid(grid, [one], declared, figure, digest)
            return
        for row in rows:
            if (key := (row["period"], row["revision"])) in by_key:
                one = by_key[key]
                shown = _figure_line(figure, row, _anew(one, declared, figure), limit_of(one.audit))
                yield one.line(figure, digest, **shown)

    def rows(
        self, grid: str, one: PublicationWithFigures, declared: DeclaredFigures, figure: Figure, period: str | None
    ) -> list[dict[str, Any]]:
        """What the macros answer of a figure, with the name of the grid that has its axes; all periods without one.

        Raises:
            QuestionRefused: a macro refuses it.
        """
        domain, by = one.grids[grid], [*figure.by]
        if figure.rate is not None:
            people = declared.populations[figure.rate.population].table
            arguments = {"per": figure.rate.per, "period": period}
            return self._call("dph_rate", grid, (by, PEOPLE), arguments, people)
        if figure.share is not None:
            part = box_as_json(domain, figure.part(domain))
            return self._call("dph_share", grid, (part, "{}"), {"period": period, **({"by": by} if by else {})})
        assert figure.mean is not None
        ends = [None if end is None else str(end) for end in (figure.mean.low, figure.mean.high)]
        counts = self._call("dph_marginal", grid, (by,), {"period": period})
        means = self._call("dph_mean", grid, (figure.mean.axis, *ends), {"period": period, "by": by})

        def key(row: Mapping[str, Any]) -> tuple[object, ...]:
            return row["period"], row["revision"], *_values(figure, row).values()

        by_key, rows = {key(count): count for count in counts}, list[dict[str, Any]]()
        for mean in means:
            if (count := by_key.get(key(mean))) is not None:
                is_known = count["ci_lower"] is None or count["ci_lower"] > 0
                reason = {} if is_known else {"ci_lower": None, "reason": NOT_ABOVE_NOISE}
                rows.append({**mean, "rows": count} | reason)
        return rows

    def _call(
        self,
        macro: str,
        grid: str,
        arguments: Sequence[object],
        named: Mapping[str, object],
        people: pa.Table | None = None,
    ) -> list[dict[str, Any]]:
        given = ", ".join([literal(identifier(grid)), *("?" for _ in arguments), *(f'"{name}" := ?' for name in named)])
        if people is not None:
            self.connection.register(PEOPLE, people)
        try:
            # A relation would be planned twice, once for its columns: planning is most of the time of an answer.
            query = f"CREATE OR REPLACE TEMP TABLE {ANSWER} AS FROM {macro}({given})"
            self.connection.execute(query, [*arguments, *named.values()])
            return _rows(self.connection, f"temp.{ANSWER}")
        except duckdb.InvalidInputException as error:
            problem = str(error).partition(f"{macro}: ")[2]
            problem = problem or "it could not be computed"
        except duckdb.Error as error:
            problem = f"it could not be computed ({type(error).__name__})"
        finally:
            if people is not None:
                self.connection.unregister(PEOPLE)
        raise QuestionRefused("", problem)


def _rows(connection: duckdb.DuckDBPyConnection, table: str, where: str = "true", *given: object) -> list[Line]:
    """The rows of a table without its days, which the process of a catalogue does not send."""
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    names = [name for name, kind, *_ in described if kind != "DATE"]
    query = f"SELECT {', '.join(map(identifier, names))} FROM {table} WHERE {where}"
    return [dict(zip(names, row, strict=True)) for row in connection.execute(query, [*given]).fetchall()]


def _why_no_population(declared: DeclaredFigures, figure: Figure) -> str:
    """Why a rate has no population; empty for other figures, and where the file was read once."""
    if figure.rate is None:
        return ""
    population = declared.populations.get(figure.rate.population)
    if population is None or not population.sha256:
        return f"the file {figure.rate.population} {population.problem if population else 'was not read'}"
    return ""


def _anew(one: PublicationWithFigures, declared: DeclaredFigures, figure: Figure) -> str:
    """That the file of a population changed since the period was published, or cannot be read; else empty."""
    if figure.rate is None:
        return ""
    path, population = figure.rate.population, declared.populations[figure.rate.population]
    sources = {source["population"]: source["sha256"] for source in one.audit.get("figures", ())}
    notes = (
        [f"the file {path} {population.problem}; its rows are those of {population.since}"]
        if population.problem
        else []
    )
    if sources.get(path, population.sha256) != population.sha256:
        notes.append(f"computed anew with {path} on {population.since}")
    return "; ".join(notes)


def _values(figure: Figure, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a figure's axes in a row of a macro, by column."""
    return {name: row[name] for name in row if name.removesuffix("_lower").removesuffix("_upper") in figure.by}


def _counts(figure: Figure, row: Mapping[str, Any]) -> list[float | None]:
    """The counts behind a figure, of which the cells tell none that is below the least figure that is shown."""
    if figure.rate is not None:
        rates = [row["estimate"], row["unbiased"]]
        return [None if rate is None else rate * row["population"] / figure.rate.per for rate in rates]
    if figure.share is not None:
        part, whole = row["part_estimate"], row["whole_estimate"]
        return [part, whole - part, whole]
    return [row["rows"]["estimate"], row["rows"]["unbiased"]]


def _figure_line(figure: Figure, row: Mapping[str, Any], anew: str, limit: int | None = None) -> Line:
    """What a line has of a row of a macro: values of axes, the number that is told first, and remarks."""
    values = _values(figure, row).items()
    axes = {name: OTHER if value is None and name in figure.by else value for name, value in values}
    number = HeadlineFigure.of(row)
    lower, upper = row["ci_lower"], row["ci_upper"]
    reason = row.get("reason", "")
    if figure.share is not None and (lower, upper) == (0, 1):
        reason = NOT_ABOVE_NOISE
    # A known count is public: it is never hidden.
    is_noisy = row.get("basis") != "known"
    if limit is not None and is_noisy and any(count is not None and count < limit for count in _counts(figure, row)):
        reason = f"not shown: a count behind it is below {limit}"
    is_told = number.value == number.value and not reason
    remarks = [reason or row["note"], *((row.get("capped"), anew) if is_told else ())]
    # Noise can bring a share beyond 0 or 1, where the ends of its interval are cut off: so is the number.
    value = min(1.0, max(0.0, number.value)) if figure.share is not None else number.value
    shown = {"value": value, "ci_lower": lower, "ci_upper": upper} if is_told else {}
    return {**axes, **shown, "note": _sentences(remarks)}


def _sentences(remarks: Sequence[str | None]) -> str:
    return " ".join(f"{remark[0].upper()}{remark[1:].removesuffix('.')}." for remark in remarks if remark)


def table_of(lines: Sequence[Line], made_from: Mapping[tuple[str, int], str] | None = None) -> pa.Table:
    """Lines as a table, whose columns of axes are text or numbers; with `made_from`, each has what it was made from."""
    kinds: dict[str, pa.DataType] = {}
    for line in lines:
        for name in line.keys() - FIRST.keys() - LAST.keys():
            kind = pa.null() if line[name] is None else pa.string() if isinstance(line[name], str) else pa.float64()
            before = kinds.setdefault(name, kind)
            if kind not in (before, pa.null()):
                kinds[name] = kind if before == pa.null() else pa.string()
    # In the order in which figures have them.
    kinds = {
        name: pa.string() if kinds[name] == pa.null() else kinds[name]
        for line in lines
        for name in line
        if name in kinds
    }
    schema = FIRST | kinds | LAST
    texts = {name for name, kind in kinds.items() if kind == pa.string()}
    rows = [
        {name: str(value) if name in texts and value is not None else value for name, value in line.items()}
        for line in lines
    ]
    if made_from is None:
        return pa.Table.from_pylist(rows, pa.schema(list(schema.items())))
    marked = [
        {**row, "made_from": made_from[line["period"], line["revision"]]} for row, line in zip(rows, lines, strict=True)
    ]
    return pa.Table.from_pylist(marked, pa.schema([*schema.items(), ("made_from", pa.string())]))


def update_figures(connection: duckdb.DuckDBPyConnection, public: Path) -> dict[str, tuple[pa.Table, str]]:
    """Brings the figures of a catalogue that is in use to what the public folder says.

    Gives the lines of each release that has figures, or had some, and what they were made from.
    """
    names = (
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND starts_with(table_name, ?)"
    )
    there = {name.removeprefix(FIGURES) for (name,) in connection.execute(names, [FIGURES]).fetchall()}
    having = {file.parent.name for file in public.glob(f"*/{DECLARED}")}
    amounts = f"SELECT DISTINCT release FROM {PLACES.table('dph_releases')} WHERE is_latest AND half_part IS NOT NULL"
    having |= {name for (name,) in connection.execute(amounts).fetchall()}
    return {release: _update(connection, public, release, release in there) for release in sorted(there | having)}


def _update(connection: duckdb.DuckDBPyConnection, public: Path, release: str, is_there: bool) -> tuple[pa.Table, str]:
    declared, table = DeclaredFigures.read(public / release), PLACES.internals + identifier(FIGURES + release)
    standing = _standing(connection, public, release)
    marks = {
        one.key: hashlib.sha256(
            json.dumps([FORM, version(), declared.digest, one.audit["audit_digest"]]).encode()
        ).hexdigest()
        for one in standing
    }
    held: list[Line] = []
    if is_there:
        held = _rows(connection, table, "list_contains(?, made_from)", list(marks.values()))
    known = {(line["period"], line["revision"]) for line in held}
    untold = [one for one in standing if one.key not in known]
    new = [*Asking(connection).lines(untold, declared, declared.figures)]
    new += [line for one in untold for line in one.amount_lines()]
    lines = [{name: value for name, value in line.items() if name != "made_from"} for line in held] + new
    order = {figure.name: place for place, figure in enumerate(declared.figures)}
    for line in lines:
        order.setdefault(line["figure"], len(order))
    lines.sort(key=lambda line: (line["period"], order[line["figure"]]))
    rows = table_of(lines, marks)
    view = f"{PLACES.users}{identifier(release + OF_FIGURES)}"
    is_free = release + OF_FIGURES not in releases_in(connection, PLACES)  # a release keeps its name
    if is_free:
        connection.execute(f"DROP VIEW IF EXISTS {view}")
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    if is_free and (declared.figures or any("amount" in one.audit for one in standing)):
        connection.register("dph_lines_made", rows)
        connection.execute(f"CREATE TABLE {table} AS FROM dph_lines_made")
        connection.unregister("dph_lines_made")
        connection.execute(f"CREATE VIEW {view} AS SELECT * EXCLUDE (made_from) FROM {table}")
        about = (
            f"The figures of {release}: of each period's latest revision, a line for each figure and value of its axes."
        )
        connection.execute(f"COMMENT ON VIEW {view} IS {literal(about)}")
        for name in rows.column_names[:-1]:
            said = ABOUT.get(name, f"{name}: as in the table; null for another figure, for an open end and for other")
            connection.execute(f"COMMENT ON COLUMN {view}.{identifier(name)} IS {literal(said)}")
    return table_of(
        lines
    ), f"{declared.digest} {hashlib.sha256(json.dumps(sorted(marks.values())).encode()).hexdigest()}"


def _standing(connection: duckdb.DuckDBPyConnection, public: Path, release: str) -> list[PublicationWithFigures]:
    """The latest revisions of a release or family that the catalogue holds, ordered by period."""
    query = (
        f"SELECT DISTINCT period, revision FROM {PLACES.table('dph_releases')} "
        "WHERE is_latest AND coalesce(family, release) = $release ORDER BY period"
    )
    standing = []
    for period, revision in connection.execute(query, {"release": release}).fetchall():
        folder = public / release / f"period={period}" / f"revision={revision}"
        standing.append(PublicationWithFigures(release, read_audit(folder), folder))
    return standing


def write_figures(public: Path, lines: Mapping[str, tuple[pa.Table, str]], scratch: Path) -> None:
    """Writes the lines of each release into its `latest/figures.*`."""
    for release, (rows, made_from) in lines.items():
        write_lines(public / release, rows, made_from, scratch)


def rehearsal_of_rates(
    figures: Sequence[Figure], declared: DeclaredFigures, axes: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[list[str], list[str]]:
    """What rates would say of a table of zeros: why they are refused, and which rows have no people.

    `axes`: of the published tables, by their names, as an audit has them. Only those of a figure are in its table.
    """
    refused, lacking = list[str](), list[str]()
    grids = {name: domain_of(described) for name, described in axes.items()}
    for figure in figures:
        assert figure.rate is not None
        name = figure.grid(grids) or ""
        needed = [
            described
            for described, axis in zip(axes[name], grids[name].axes, strict=True)
            if {axis.name, *axis.levels} & {*figure.names}
        ]
        with tempfile.TemporaryDirectory(prefix="dphist_") as folder, duckdb.connect() as connection:
            told = PublicationWithFigures("zeros", _of_zeros(needed or axes[name][:1], Path(folder)), Path(folder))
            create_tables(connection, [(Path(folder), told.audit)], macros=("dph_rate",), described=False)
            try:
                rows = Asking(connection).rows("zeros", told, declared, figure, None)
            except QuestionRefused as problem:
                refused.append(f"figure {figure.name}, {figure.rate.population}: {problem.problem}")
            else:
                reasons = [row["note"].removeprefix("the population ") for row in rows if row["estimate"] is None]
                if reasons:
                    named = first_of(reasons, MOST_NAMED)
                    lacking.append(f"figure {figure.name}, {figure.rate.population}: the population {named}")
    return refused, lacking


def _of_zeros(axes: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    """Writes a table of zeros, and gives what its audit would say."""
    domain = domain_of(axes)
    zeros = np.zeros(domain.shape)
    estimate = Estimate(domain, zeros, (), NoisyCells(zeros, Fraction(1)))
    write_histogram(estimate, folder / "histogram.parquet")
    facts = {"release": "zeros", "period": "all", "revision": 1, "cells": domain.cells, "axes": list(axes)}
    facts |= {"privacy_unit": "row", "max_rows_per_unit": 1, "ledger": None, "audit_digest": ""}
    return facts | unbiased_facts(estimate)

"""The lines of figures: what the macros answer of each published period, in the catalogue and in `latest/figures.*`.

Lines of periods that were told already stand in the catalogue, so that a new period costs what one costs. Nothing here
fails a release: a figure that cannot be told is a line without a number, with the reason.
"""

from __future__ import annotations

import hashlib
import json
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
from dphist_pipeline.base.domain import OTHER, BinnedAxis, Domain
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.errors import first_of
from dphist_pipeline.estimates.chosen_cells import QuestionRefused, box_as_json
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.publishing.figure_files import DECLARED, DeclaredFigures, write_lines
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.parquet_tables import write_histogram
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.unbiased_facts import unbiased_facts
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.fields import FIGURES as OF_FIGURES
from dphist_pipeline.spec.published_figures import Figure

FORM, MOST_NAMED = 2, 20
PEOPLE, ANSWER = "dph_population", "dph_answer"
NOT_ABOVE_NOISE = "the rows are not above their noise"
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
    "figure": "name of the figure in the spec",
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

    `audit`: of the release or family.
    """

    release: str
    audit: Mapping[str, Any]

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
        """A line of it, without a number by default."""
        period, revision = self.key
        first = {"release": self.release, "period": period, "revision": revision, "figure": figure.name}
        numbers = dict.fromkeys(("value", "ci_lower", "ci_upper"))
        return (
            first
            | numbers
            | {"unit": _unit(figure, self.audit), "note": _sentences([note]), "source_digest": digest}
            | more
        )


def _unit(figure: Figure, audit: Mapping[str, Any]) -> str:
    counted = str(audit.get("counted") or "rows")
    if figure.rate is not None:
        return f"{counted} per {figure.rate.per:,.15g}"
    if figure.mean is not None:
        return str((audit.get("axis_labels") or {}).get(figure.mean.axis, figure.mean.axis))
    return f"share of {counted}"


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
        if not by:
            counts = self._call("dph_box", grid, ("{}",), {"period": period})
        else:
            counts = self._call("dph_marginal", grid, (by,), {"period": period})
        rows: list[dict[str, Any]] = []
        boxes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for count in counts:
            boxes[json.dumps(_box_of(count, by, domain), default=str)].append(count)
        for box, of_box in boxes.items():
            means = self._call("dph_mean", grid, (figure.mean.axis, *ends, box), {"period": period})
            by_key = {(mean["period"], mean["revision"]): mean for mean in means}
            for count in of_box:
                mean = by_key.get((count["period"], count["revision"]))
                if mean is not None:
                    is_known = count["ci_lower"] is None or count["ci_lower"] > 0
                    reason = {} if is_known else {"ci_lower": None, "reason": NOT_ABOVE_NOISE}
                    rows.append({**count, **mean, "rows": count} | reason)
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


def _box_of(row: Mapping[str, Any], by: Sequence[str], domain: Domain) -> dict[str, object]:
    """The box of a row's values of some axes and levels."""
    binned = {axis.name for axis in domain.axes if isinstance(axis, BinnedAxis)}
    return {name: [row[f"{name}_lower"], row[f"{name}_upper"]] if name in binned else row[name] for name in by}


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
    axes = {name: row[name] for name in row if name.removesuffix("_lower").removesuffix("_upper") in figure.by}
    axes = {name: OTHER if value is None and name in figure.by else value for name, value in axes.items()}
    number = HeadlineFigure.of(row)
    lower, upper = row["ci_lower"], row["ci_upper"]
    reason = row.get("reason", "")
    if figure.share is not None and (lower, upper) == (0, 1):
        reason = NOT_ABOVE_NOISE
    if limit is not None and any(count is not None and count < limit for count in _counts(figure, row)):
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
    declared = {file.parent.name for file in public.glob(f"*/{DECLARED}")}
    return {release: _update(connection, public, release, release in there) for release in sorted(there | declared)}


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
    new = [*Asking(connection).lines([one for one in standing if one.key not in known], declared, declared.figures)]
    lines = [{name: value for name, value in line.items() if name != "made_from"} for line in held] + new
    order = {name: place for place, name in enumerate(figure.name for figure in declared.figures)}
    lines.sort(key=lambda line: (line["period"], order[line["figure"]]))
    rows = table_of(lines, marks)
    view = f"{PLACES.users}{identifier(release + OF_FIGURES)}"
    is_free = release + OF_FIGURES not in releases_in(connection, PLACES)  # a release keeps its name
    if is_free:
        connection.execute(f"DROP VIEW IF EXISTS {view}")
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    if declared.figures and is_free:
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
        standing.append(PublicationWithFigures(release, read_audit(folder)))
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
            told = PublicationWithFigures("zeros", _of_zeros(needed or axes[name][:1], Path(folder)))
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

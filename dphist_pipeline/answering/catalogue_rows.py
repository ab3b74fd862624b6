"""The rows of the catalogue's own tables, from audits, as Arrow tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering._catalogue_schemas import (
    BINS,
    CHARGES,
    COVARIANCE,
    DISTANCES,
    GROUPS,
    KNOWN,
    LINES,
    MOMENTS,
    QUALITY,
    RELEASES,
    TABLES,
)
from dphist_pipeline.base.domain import AmountAxis, Axis, BinnedAxis, Domain
from dphist_pipeline.estimates.known_figures import KnownFigures
from dphist_pipeline.estimates.laws import INTERVALS, named_law, noise_law
from dphist_pipeline.estimates.lines import lines_from_facts
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.estimates.whole_tables import WholeTable
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.derived_files import grid_of
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

Audit = Mapping[str, Any]
KEY = ("release", "period", "revision")


def release_rows(audits: Sequence[Audit]) -> Any:
    """The rows of `dph_releases`, one for each audit; whether it is the latest revision is left to be filled in."""
    return pa.Table.from_pylist(list(map(_release_row, audits)), RELEASES)


def charge_rows(audits: Iterable[Audit]) -> Any:
    """The rows of `dph_charges`: one for each step of a release, or of a family of tables together."""
    rows = [
        {**{name: audit[name] for name in KEY}, "number": number, "spent": float(Fraction(charge["epsilon"])), **charge}
        for audit in audits
        for number, charge in enumerate(audit.get("charges", ()), 1)
    ]
    return pa.Table.from_pylist(rows, CHARGES)


def covariance_rows(audits: Sequence[Audit]) -> Any:
    """The rows of `dph_covariance`: one for each publication of linear estimates, level from the root, and axis."""
    rows = [
        {
            **{name: audit[name] for name in KEY},
            "level": level,
            "axis": axis.name,
            "width": width,
            "coefficient": part["coefficient"],
        }
        for audit in audits
        if audit.get("unbiased_covariance")
        for level, part in enumerate(audit["unbiased_covariance"], 1)
        for axis, width in zip(domain_of(audit["axes"]).axes, part["widths"], strict=True)
    ]
    return pa.Table.from_pylist(rows, COVARIANCE)


def line_rows(audits: Sequence[Audit], known: Collection[int]) -> Any:
    """The rows of `dph_lines` for weighted lines that are not `known`: one for each node of a line, and position.

    With a weight for each row, the variance of a sum of positions is the sum of the squares of their weights in node
    -1, less the square of the sum of their weights in each other node.
    """
    rows, done = [LINES.empty_table()], set(known)
    for line in (line for audit in audits for line in lines_from_facts(audit.get("unbiased_lines") or [])):
        if line.number in done:
            continue
        done.add(line.number)
        weights = np.vstack([np.sqrt(line.alone), line.shared])
        node, position = np.indices(weights.shape)
        columns = [np.full(weights.size, line.number), node.ravel() - 1, position.ravel(), weights.ravel()]
        rows.append(pa.table([pa.array(column) for column in columns], schema=LINES))
    return pa.concat_tables(rows)


def bin_rows(audit: Audit) -> Any:
    """The rows of `dph_bins` for the grid of an audit; estimates from reports have the `atoms` of each bin, too."""
    domain: Domain = domain_of(audit["axes"])
    rows = [
        rows
        for axis, stride in zip(domain.axes, domain.strides, strict=True)
        for rows in _rows_of_axis(grid_of(audit), axis, stride, audit.get("atoms"), audit.get("model") == "local")
    ]
    return pa.concat_tables(rows)


def group_rows(audit: Audit, sums: Any) -> Any:
    """The rows of `dph_groups` for one publication, from the Arrow table of its sums."""
    variances = {scale: noise_law(Fraction(scale)).variance for scale in set(sums["noise_scale"].to_pylist())}
    for number, name in enumerate(KEY):
        field = GROUPS.field(name)
        sums = sums.add_column(number, field, pa.repeat(pa.scalar(audit[name], field.type), sums.num_rows))
    noise = pa.array([variances[scale] for scale in sums["noise_scale"].to_pylist()], pa.float64())
    return sums.append_column("noise_variance", noise).select(GROUPS.names).cast(GROUPS)


def known_rows(audit: Audit, known: KnownFigures) -> Any:
    """The rows of `dph_known` for one publication: the groups of cells whose counts are public figures."""
    columns = {
        "known_group": np.arange(known.figures.size),
        "cells": known.sizes.ravel(),
        "figure": known.figures.ravel(),
    }
    keys = {name: [audit[name]] * known.figures.size for name in KEY}
    return pa.table({**keys, **columns}, schema=KNOWN)


def width_table(audit: Audit) -> str:
    """The table with the half widths of sums of a publication's estimates."""
    return "dph_half_widths" if audit.get("unbiased_covariance") is None else "dph_linear_widths"


def width_rows(table: str, scale: str, draws: int) -> Any:
    """The rows of `dph_half_widths`, or of `dph_linear_widths`, for one scale and up to `draws`; see `most_draws`."""
    _, schema = TABLES[table]
    law = named_law(scale)
    grid: Callable[[int, Fraction], Sequence[tuple[int, float]]]
    grid = law.linear_reach_grid if table == "dph_linear_widths" else law.half_width_grid
    once, twice = (grid(draws, level) for level in (INTERVALS.level, INTERVALS.level_of_two))
    deviations = [law.linear_reach(number) for number, _ in once]
    rows = [
        (scale, number, width, of_two, one)[: len(schema)]
        for (number, width), (_, of_two), one in zip(once, twice, deviations, strict=True)
    ]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )


def moment_rows(scales: Collection[str]) -> Any:
    """The rows of `dph_moments` for some scales of noise, in their order."""
    moments = [(scale, zip(*named_law(scale).moments, strict=True)) for scale in scales]
    rows = [
        {"noise_scale": scale, "moments": [{"rate": rate, "log_moment": moment} for rate, moment in pairs]}
        for scale, pairs in moments
    ]
    return pa.Table.from_pylist(rows, MOMENTS)


def most_draws(audit: Audit) -> int:
    """The largest number of draws whose noise an answer sums: in all cells of two periods.

    For linear estimates, the variance of a sum of n cells is at most n times the largest sum of a row of the covariance
    of cells, which is compared with the variance of a draw.
    """
    row = 0.0
    if lines := lines_from_facts(audit.get("unbiased_lines") or []):
        # A line's covariance is at most that of its positions, each measured by itself alone.
        row = audit["unbiased_covariance"][0]["coefficient"] * math.prod(float(line.alone.max()) for line in lines)
    elif audit.get("unbiased_covariance"):
        row = math.fsum(abs(part["coefficient"]) * math.prod(part["widths"]) for part in audit["unbiased_covariance"])
    in_a_cell = max(1.0, row / named_law(audit["unbiased_noise_scale"]).variance)
    return math.ceil(2 * int(audit["cells"]) * in_a_cell)


def quality_table(audit: Audit, rows: Sequence[Mapping[str, Any]], most: Mapping[str | None, float]) -> Any:
    """The rows of `dph_quality_rows` for one publication; their numbers count from 1, in the order of `rows`.

    `most`: what the counts allow by axis, see `PublishedQuality.most_failed`.
    """
    key = {name: audit[name] for name in KEY}
    variances = {scale: noise_law(Fraction(scale)).variance for scale in {row["noise_scale"] for row in rows}}
    cuts = [
        {
            **{**key, "number": number, **row, "noise_variance": variances[row["noise_scale"]]},
            "most": most.get(row["axis"]) if QualityTable.is_in_other(row) else None,
        }
        for number, row in enumerate(rows, 1)
    ]
    return pa.Table.from_pylist(cuts, QUALITY)


def whole_of(folder: Path, audit: Audit, rows: Any) -> WholeTable:
    """The whole table of a publication: fitted now, or as it was published with the other tables of its family.

    The rows are its published cells, in declared order.
    """
    domain: Domain = domain_of(audit["axes"])
    values, unbiased = (rows[name].to_numpy().reshape(domain.shape) for name in ("estimate", "unbiased_estimate"))
    if np.array_equal(values, unbiased):
        unbiased = values  # which needs no band around it, and half the memory
    cells = published_unbiased(audit, unbiased)
    file = PublishedFolder(folder).whole
    if not file.exists():
        return WholeTable.fit(
            domain, values, cells, **({"way": audit["whole_counts"]} if "whole_counts" in audit else {})
        )
    counts = pq.ParquetFile(file).read()["whole_count"].to_numpy().reshape(domain.shape)
    return WholeTable.of_published(domain, counts, values, cells)


def distance_rows(audit: Audit, whole: WholeTable) -> Any:
    """The rows of `dph_distances` for one publication, with its whole table; see `whole_of`."""
    key = {name: audit[name] for name in KEY}
    rows = [
        {
            **key,
            "sums_by": distance.table,
            "sums": distance.sums,
            "farthest": distance.farthest,
            "half_width": None if math.isnan(distance.half_width) else distance.half_width,
            "outside": distance.outside,
        }
        for distance in whole.distances
    ]
    return pa.Table.from_pylist(rows, DISTANCES)


def _release_row(audit: Audit) -> dict[str, Any]:
    row = {name: audit[name] for name in RELEASES.names if name in audit}
    row = {"model": "central", **row, **(audit.get("report_law") or {})}
    scale, tail = audit["unbiased_noise_scale"], audit.get("unbiased_tail") or {}
    return {
        **row,
        **{f"tail_{name}": bound for name, bound in tail.items()},
        "half_part": audit["amount"]["worth_of_part"] / 2 if "amount" in audit else None,
        "period_start": day_of_period(audit, "period_start"),
        "period_end": day_of_period(audit, "period_end"),
        "published_on": day_of_period(audit, "published_on"),
        **({"counted_once": audit.get("unit_label") or audit["privacy_unit"]} if "take" in audit else {}),
        "axes": [axis.get("name") or axis["column"] for axis in audit["axes"]],
        "grid": grid_of(audit),
        "noise_scale": scale,
        "noise_variance": None if scale is None else named_law(scale).variance,
        **({"charge": audit["ledger"]["hash"], "charged_at": audit["ledger"]["charged_at"]} if audit["ledger"] else {}),
    }


def day_of_period(audit: Audit, end: str) -> date | None:
    """The local day of an end of the period; audits of version 0.1 and releases without periods have none.

    `end`: `period_start`, or `period_end`, which is the day after the last; or `published_on`.
    """
    return datetime.fromisoformat(audit[end]).date() if audit.get(end) else None


def _rows_of_axis(grid: str, axis: Axis, stride: int, atoms: list[int] | None, closed: bool) -> Iterator[Any]:
    """The rows for an axis and each of its levels; bounds and category of the cell `other` are null."""
    fixed = {"grid": grid, "axis": axis.name, "level_of": axis.name, "stride": stride, "size": axis.size}
    fixed |= {"binned": axis.is_ordered, "calendar": axis.reads == "days", "amount": axis.kind == "amount"}
    if isinstance(axis, AmountAxis):  # bins of width zero
        columns = dict.fromkeys(("bin_lower", "bin_upper", "first_value", "last_value"), pa.array(axis.ends))
        yield _rows(axis.size, {**fixed, **columns})
        return
    if isinstance(axis, BinnedAxis):
        lower, upper = (pa.array(along, from_pandas=True) for along in axis.bounds)
        ends = list(zip(*(bound.tolist() for bound in axis.bounds), strict=True))
        words = [ReaderAxis(axis, closed).words_of_ends(low, high) for low, high in ends]
        values = zip(*(_within(axis, *axis.values_between(low, high, closed)) for low, high in ends), strict=True)
        columns = {name: [one[name] for one in words] for name in ("first", "last", "below", "above")}
        columns |= dict(
            zip(("first_value", "last_value"), (pa.array(one, from_pandas=True) for one in values), strict=True)
        )
        yield _rows(axis.size, {**fixed, **columns, "bin_lower": lower, "bin_upper": upper, "atoms": atoms})
        return
    none = [None] * axis.other
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        labels = [*(label or None for label in axis.labels), *none] if axis.labels and name == axis.name else None
        yield _rows(axis.size, {**fixed, "axis": name, "category": [*groups, *none], "label": labels})


def _within(axis: BinnedAxis, first: float, last: float) -> tuple[float, float]:
    """The ends between which the values of a bin lie; those of an open bin as declared, if they are."""
    return (
        first if axis.lowest is None or first != -math.inf else axis.lowest,
        last if axis.highest is None or last != math.inf else axis.highest,
    )


def _rows(positions: int, columns: Mapping[str, Any]) -> Any:
    """Rows of `dph_bins`: a single value is repeated in all rows, and a missing column is null."""
    filled = {"position": np.arange(positions), **columns}
    arrays = []
    for field in BINS:
        value = filled.get(field.name)
        plain = value is None or isinstance(value, str | int)
        arrays.append(pa.array([value] * positions if plain else value, field.type))
    return pa.table(arrays, schema=BINS)

"""The rows of the catalogue's own tables, from audits: Arrow tables, each column with its meaning as a comment."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.intervals import LEVEL, LEVEL_OF_TWO, half_width_grid, linear_reach_grid
from dphist_pipeline.answering.whole_tables import WholeTable, whole_table, with_distances
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, Domain
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.lines import lines_from_facts
from dphist_pipeline.publishing.current_files import grid_of
from dphist_pipeline.publishing.published_files import WHOLE
from dphist_pipeline.publishing.release_files import REPORT_LAW, published_unbiased
from dphist_pipeline.spec.axes import domain_of

Audit = Mapping[str, Any]
KEY = ("release", "period", "revision")


def release_rows(audits: Sequence[Audit]) -> Any:
    """The rows of `dph_releases`, one for each audit; whether it is the latest revision is left to be filled in."""
    return pa.Table.from_pylist(list(map(_release_row, audits)), RELEASES)


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

    Args:
        audits: of publications in any order; only those with weighted lines give rows.
        known: numbers of lines that `dph_lines` holds already.
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
    """The rows of `dph_bins` for the grid of an audit."""
    domain: Domain = domain_of(audit["axes"])
    rows = [
        rows
        for axis, stride in zip(domain.axes, domain.strides, strict=True)
        for rows in _rows_of_axis(grid_of(audit), axis, stride, audit.get("atoms"))
    ]
    return pa.concat_tables(rows)


def group_rows(audit: Audit, sums: Any) -> Any:
    """The rows of `dph_groups` for one publication.

    Args:
        audit: of a publication that names `sums.parquet`.
        sums: the content of that file, an Arrow table.
    """
    variances = {scale: noise_law.variance(Fraction(scale)) for scale in set(sums["noise_scale"].to_pylist())}
    for number, name in enumerate(KEY):
        sums = sums.add_column(number, GROUPS.field(name), pa.repeat(pa.scalar(audit[name]), sums.num_rows))
    noise = pa.array([variances[scale] for scale in sums["noise_scale"].to_pylist()], pa.float64())
    return sums.append_column("noise_variance", noise).select(GROUPS.names).cast(GROUPS)


def width_table(audit: Audit) -> str:
    """The table with the half widths of sums of a publication's estimates."""
    return "dph_half_widths" if audit.get("unbiased_covariance") is None else "dph_linear_widths"


def width_rows(table: str, scale: str, draws: int) -> Any:
    """The rows of `dph_half_widths`, or of `dph_linear_widths`, for one scale of noise.

    Args:
        table: which of them.
        scale: of the noise, as a fraction.
        draws: the largest number of draws in an answer; see `most_draws`.
    """
    _, schema = TABLES[table]
    grid: Callable[[Fraction, int, Fraction], Sequence[tuple[int, float]]]
    grid = linear_reach_grid if table == "dph_linear_widths" else half_width_grid
    once, twice = (grid(Fraction(scale), draws, level) for level in (LEVEL, LEVEL_OF_TWO))
    rows = [(scale, number, width, of_two) for (number, width), (_, of_two) in zip(once, twice, strict=True)]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )


def most_draws(audit: Audit) -> int:
    """The largest number of draws whose noise an answer sums: in all cells of two periods.

    For linear estimates, the variance of a sum of n cells is at most n times the largest sum of a row of the
    covariance of cells, which is compared with the variance of a draw.
    """
    row = 0.0
    if lines := lines_from_facts(audit.get("unbiased_lines") or []):
        # A line's covariance is at most that of its positions, each measured by itself alone.
        row = audit["unbiased_covariance"][0]["coefficient"] * math.prod(float(line.alone.max()) for line in lines)
    elif audit.get("unbiased_covariance"):
        row = math.fsum(abs(part["coefficient"]) * math.prod(part["widths"]) for part in audit["unbiased_covariance"])
    in_a_cell = max(1.0, row / noise_law.variance(Fraction(audit["unbiased_noise_scale"])))
    return math.ceil(2 * int(audit["cells"]) * in_a_cell)


def quality_table(audit: Audit, rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows of `dph_quality_rows` for one publication.

    Args:
        audit: its release, period and revision begin every row.
        rows: see `read_rows`; their numbers count from 1, in this order.
    """
    key = {name: audit[name] for name in KEY}
    return pa.Table.from_pylist([{**key, "number": number, **row} for number, row in enumerate(rows, 1)], QUALITY)


def whole_of(folder: Path, audit: Audit, rows: Any) -> WholeTable:
    """The whole table of a publication: fitted now, or as it was published with the other tables of its family.

    Args:
        folder: of the publication.
        audit: of the publication.
        rows: its published cells, in declared order.
    """
    domain: Domain = domain_of(audit["axes"])
    values, unbiased = (rows[name].to_numpy().reshape(domain.shape) for name in ("estimate", "unbiased_estimate"))
    if np.array_equal(values, unbiased):
        unbiased = values  # which needs no band around it, and half the memory
    cells = published_unbiased(audit, unbiased)
    if WHOLE not in audit["files"]:
        return whole_table(domain, values, cells)
    counts = pq.ParquetFile(folder / WHOLE).read()["whole_count"].to_numpy().reshape(domain.shape)
    return with_distances(domain, counts, values, cells)


def distance_rows(audit: Audit, whole: WholeTable) -> Any:
    """The rows of `dph_distances` for one publication."""
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
        "period_start": _day(audit, "period_start"),
        "period_end": _day(audit, "period_end"),
        "axes": [axis.get("name") or axis["column"] for axis in audit["axes"]],
        "grid": grid_of(audit),
        "noise_scale": scale,
        "noise_variance": None if scale is None else noise_law.variance(Fraction(scale)),
        **({"charge": audit["ledger"]["hash"], "charged_at": audit["ledger"]["charged_at"]} if audit["ledger"] else {}),
    }


def _day(audit: Audit, end: str) -> date | None:
    """The local day of an end of the period; audits of version 0.1 and releases without periods have none."""
    return datetime.fromisoformat(audit[end]).date() if audit.get(end) else None


def _rows_of_axis(grid: str, axis: Axis, stride: int, atoms: list[int] | None) -> Iterator[Any]:
    """The rows for an axis and each of its levels; bounds and category of the cell `other` are null."""
    fixed = {"grid": grid, "axis": axis.name, "level_of": axis.name, "stride": stride, "size": axis.size}
    fixed |= {"binned": isinstance(axis, BinnedAxis), "calendar": isinstance(axis, CalendarAxis)}
    if isinstance(axis, BinnedAxis):
        lower, upper = (pa.array(ends, from_pandas=True) for ends in axis.bounds)
        yield _rows(axis.size, {**fixed, "bin_lower": lower, "bin_upper": upper, "atoms": atoms})
        return
    none = [None] * axis.other
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        labels = [*(label or None for label in axis.labels), *none] if axis.labels and name == axis.name else None
        yield _rows(axis.size, {**fixed, "axis": name, "category": [*groups, *none], "label": labels})


def _rows(positions: int, columns: Mapping[str, Any]) -> Any:
    """Rows of `dph_bins`: a single value is repeated in all rows, and a missing column is null."""
    filled = {"position": np.arange(positions), **columns}
    arrays = []
    for field in BINS:
        value = filled.get(field.name)
        plain = value is None or isinstance(value, str | int)
        arrays.append(pa.array([value] * positions if plain else value, field.type))
    return pa.table(arrays, schema=BINS)


def _schema(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    """A schema from (name, type, meaning of the column)."""
    return pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in columns])


def comments_of(schema: pa.Schema) -> dict[str, str]:
    """The meaning of every column of a table, by name."""
    return {field.name: field.metadata[b"comment"].decode() for field in schema}


_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_RELEASE = ("release", _TEXT, "name of the release")
_PERIOD = ("period", _TEXT, "first day of the period, such as 2026-01-05; `all` for a release without periods")
_REVISION = ("revision", _WHOLE, "from 1; a later revision of a period replaces the earlier ones")
_GRID = ("grid", _TEXT, "digest of the axes; publications of the same grid have the same cells")
_SCALE = (
    "noise_scale",
    _TEXT,
    "scale of the discrete Laplace noise of one draw, exact; null where no noisy cells were paid for",
)
RELEASES = _schema(
    _RELEASE,
    ("title", _TEXT, "title for readers; null if the spec has none"),
    _PERIOD,
    ("period_start", pa.date32(), "first day of the period"),
    ("period_end", pa.date32(), "day after the last day of the period"),
    _REVISION,
    ("is_latest", pa.bool_(), "whether this is the latest revision of the period"),
    ("axes", pa.list_(_TEXT), "names of the axes, in declared order"),
    ("mechanism", _TEXT, "published mechanism that made the estimates"),
    ("privacy_unit", _TEXT, "who is protected"),
    ("neighbours", _TEXT, "inputs that the promise makes alike: add_remove or substitute one unit"),
    ("max_rows_per_unit", _WHOLE, "rows of a unit that count; further rows were left out before counting"),
    ("epsilon", _TEXT, "privacy budget that this revision spent, exact"),
    ("cells", _WHOLE, "number of declared cells"),
    ("account", _TEXT, "account of the ledger that paid"),
    ("charged_at", _TEXT, "when the ledger charged it"),
    ("charge", _TEXT, "hash of that entry of the ledger; the tables of a family share it, and their noise"),
    ("audit_digest", _TEXT, "digest of audit.json"),
    _GRID,
    _SCALE,
    ("noise_variance", _REAL, "variance of one draw of the noise"),
    (
        "tail_rate",
        _REAL,
        "linear estimates: P(|noise of a cell| > c) <= tail_factor * exp(-tail_rate * c); null if unknown",
    ),
    ("tail_factor", _REAL, "see tail_rate"),
    ("model", _TEXT, "central, or local where contributors randomise their own reports"),
    *(
        (name, _REAL, f"{name} of the error law of estimates from reports; null for the central model")
        for name in REPORT_LAW
    ),
)
BINS = _schema(
    _GRID,
    ("axis", _TEXT, "axis, or level of its hierarchy"),
    ("level_of", _TEXT, "axis that a level belongs to; an axis belongs to itself"),
    ("stride", _WHOLE, "difference of cell numbers for one step along the axis"),
    ("size", _WHOLE, "number of positions along the axis"),
    ("position", _WHOLE, "from 0, in declared order"),
    ("binned", pa.bool_(), "whether the axis has bins of a number or of days, not categories"),
    ("calendar", pa.bool_(), "whether the ends of bins are days since 1970-01-01"),
    ("bin_lower", _REAL, "lower end of the bin; -inf for an open end, null for `other`"),
    ("bin_upper", _REAL, "upper end of the bin; inf for an open end, null for `other`"),
    ("category", _TEXT, "category or group; null for `other`"),
    ("label", _TEXT, "display name of the category; null where there is none, and for levels"),
    ("atoms", _WHOLE, "number of report intervals in the bin, for estimates from reports"),
)
_OF_TWO = ", for two intervals that hold together with 95 %"
HALF_WIDTHS = _schema(
    _SCALE,
    ("cells", _WHOLE, "number of cells in a sum; use the first entry that is large enough"),
    ("half_width", _WHOLE, "half the width of the 95 % interval of the sum, in rows"),
    ("half_width_of_two", _WHOLE, f"the same at 97.5 %{_OF_TWO}"),
)
COVARIANCE = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    ("level", _WHOLE, "from 1, the root"),
    ("axis", _TEXT, "axis"),
    ("width", _WHOLE, "cells along the axis that share a node of the level; below 0 the number of a weighted line"),
    ("coefficient", _REAL, "covariance of two cells in the same node, summed over such levels"),
)
LINES = _schema(
    ("width", _WHOLE, "number of the line, below 0"),
    ("node", _WHOLE, "-1, or the number of a sum that was measured, from 0"),
    ("position", _WHOLE, "along the axis, from 0"),
    (
        "weight",
        _REAL,
        "its square adds to a variance in node -1; of other nodes, the square of the sum is taken off",
    ),
)
LINEAR_WIDTHS = _schema(
    _SCALE,
    ("draws", _WHOLE, "number of draws with the variance of the estimate; use the last entry that is not larger"),
    ("deviations", _REAL, "half the width of the 95 % interval of a linear estimate, in its standard deviations"),
    ("deviations_of_two", _REAL, f"the same at 97.5 %{_OF_TWO}"),
)
QUALITY = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    ("number", _WHOLE, "order of the numbers of a publication, from 1"),
    ("statistic", _TEXT, "what is counted: units, rows, unparsed, undeclared or cut"),
    ("axis", _TEXT, "axis that the number is about; null for all"),
    ("position", _WHOLE, "along the axis, from 0; of units the rows that they hold"),
    ("category", _TEXT, "what the position is called; null for `other`"),
    ("estimate", _REAL, "noisy number, not cut off at 0"),
    ("ci_lower", _REAL, "lower end of its 95 % interval, not cut off at 0"),
    ("ci_upper", _REAL, "upper end of its 95 % interval"),
    ("noise_scale", _REAL, "scale of its discrete Laplace noise"),
)
DISTANCES = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    ("sums_by", _TEXT, "which sums of whole counts: total, an axis, two axes joined by *, or cells"),
    ("sums", _WHOLE, "number of these sums"),
    ("farthest", _REAL, "largest distance of such a sum from its unbiased estimate, in rows"),
    (
        "half_width",
        _REAL,
        "half width of the band that holds all these sums together with 95 %, in rows; null where there is none",
    ),
    ("outside", _WHOLE, "number of these sums outside that band"),
)
GROUPS = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    ("sum_number", _WHOLE, "number of the sum, from 0"),
    ("parent", _WHOLE, "sum of a larger box that holds this one; null if there is none"),
    ("first_group", _WHOLE, "first group_id in the sum"),
    ("last_group", _WHOLE, "last group_id in the sum"),
    ("cells", _WHOLE, "number of cells in the sum"),
    ("noisy_sum", _REAL, "unbiased noisy sum, drawn after the groups were found"),
    _SCALE,
    ("noise_variance", _REAL, "variance of its noise"),
)
BETTER = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    (
        "names",
        pa.struct([("by", pa.list_(_TEXT)), ("boxed", pa.list_(_TEXT))]),
        "axes and levels in a question: those with conditions (boxed), the others it is asked by; as in the alphabet",
    ),
    ("best", _TEXT, "the table of the same family that macros ask for such questions"),
    (
        "first_number",
        _WHOLE,
        "number of the first cell of that table among those that macros read for the release; a multiple of its cells",
    ),
)
VERSION = _schema(
    ("version", _TEXT, "digest of the definitions of tables, views and macros"),
    ("sealed", _WHOLE, "the file's time of modification, in seconds since 1970; another one means another writer"),
)
TABLES = {
    "dph_releases": ("One row for each publication: its privacy promise and the law of its noise.", RELEASES),
    "dph_bins": ("One row for each position along an axis of a grid, and for each of its levels.", BINS),
    "dph_half_widths": ("Half widths of 95 % intervals of sums of independent noisy cells.", HALF_WIDTHS),
    "dph_covariance": ("The covariance of two cells of linear estimates.", COVARIANCE),
    "dph_lines": ("The covariance of positions along an axis of which weighted sums were measured.", LINES),
    "dph_linear_widths": ("Half widths of 95 % intervals of linear estimates.", LINEAR_WIDTHS),
    "dph_groups": ("Noisy sums of groups of cells, drawn after the groups were found.", GROUPS),
    "dph_quality_rows": ("What was bought about the rows behind the counts: one row for each number.", QUALITY),
    "dph_distances": ("How far sums of whole counts are from the unbiased estimates.", DISTANCES),
    "dph_better": ("Where another table of a family tells less noise than the one that is named.", BETTER),
    "dph_version": ("One row: the version of the definitions.", VERSION),
}

"""The columns of the catalogue's own tables: Arrow schemas, each column with its meaning as a comment."""

from __future__ import annotations

import pyarrow as pa

from dphist_pipeline.estimates.laws import ReportLaw


def _schema(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    """A schema from (name, type, meaning of the column)."""
    return pa.schema([pa.field(name, kind, metadata={"comment": comment}) for name, kind, comment in columns])


def comments_of(schema: pa.Schema) -> dict[str, str]:
    """The meaning of every column of a table, by name."""
    return {field.name: field.metadata[b"comment"].decode() for field in schema}


_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
# What a spec bounds: cells by `max_cells`, revisions by the least epsilon. JSON of JavaScript has no BIGINT.
BOUNDED = pa.int32()
_RELEASE = ("release", _TEXT, "name of the release")
_PERIOD = ("period", _TEXT, "first day of the period, such as 2026-01-05; `all` for a release without periods")
_REVISION = ("revision", BOUNDED, "from 1; a later revision of a period replaces the earlier ones")
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
    ("year_rows", _WHOLE, "rows of a unit that a year pays for, in an individual account; null in others"),
    ("take", _TEXT, "which rows of a unit count: one_per_cell, first or last; null where all do, up to the bound"),
    ("counted_once", _TEXT, "who counts once in a cell, whatever rows they have there; null where all rows count"),
    ("epsilon", _TEXT, "privacy budget that this revision spent, exact"),
    ("cells", BOUNDED, "number of declared cells"),
    ("account", _TEXT, "account of the ledger that paid"),
    ("charged_at", _TEXT, "when the ledger charged it"),
    ("published_on", pa.date32(), "day (UTC) on which its files were made; null in those of versions up to 0.2"),
    ("reason", _TEXT, "why this revision was made; null for a first one"),
    ("charge", _TEXT, "hash of that entry of the ledger; the tables of a family share it, and their noise"),
    ("audit_digest", _TEXT, "digest of audit.json"),
    _GRID,
    _SCALE,
    ("noise_variance", _REAL, "variance of one draw of the noise"),
    ("half_part", _REAL, "how far rounding to parts of rows may move an amount; null without an amount"),
    (
        "tail_rate",
        _REAL,
        "linear estimates: P(|noise of a cell| > c) <= tail_factor * exp(-tail_rate * c); null if unknown",
    ),
    ("tail_factor", _REAL, "see tail_rate"),
    ("model", _TEXT, "central, or local where contributors randomise their own reports"),
    *(
        (name, _REAL, f"{name} of the error law of estimates from reports; null for the central model")
        for name in ReportLaw.__dataclass_fields__
    ),
    ("family", _TEXT, "family of tables that it is one of; null for a release that is none"),
)
CHARGES = _schema(
    ("release", _TEXT, "name of the release, or of the family whose tables were charged together"),
    *(_PERIOD, _REVISION),
    ("number", _WHOLE, "order of the steps of a publication, from 1"),
    ("step", _TEXT, "what spent it: a step of the mechanism, or the quality table"),
    ("epsilon", _TEXT, "privacy budget that the step spent, exact; those of a publication add up to its epsilon"),
    ("spent", _REAL, "the same as a number, to sort and add"),
    ("noise_scale", _TEXT, "scale of the discrete Laplace noise of one draw of the step, exact; null for choices"),
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
    ("amount", pa.bool_(), "whether its positions are the ends of an amount, each a bin of width 0"),
    ("bin_lower", _REAL, "lower end of the bin; -inf for an open end, null for `other`"),
    ("bin_upper", _REAL, "upper end of the bin; inf for an open end, null for `other`"),
    (
        "first_value",
        _REAL,
        "first whole number of the bin if the axis is declared whole, else bin_lower; `lowest` of an open bin",
    ),
    (
        "last_value",
        _REAL,
        "last whole number of the bin if the axis is declared whole, else bin_upper; `highest` of an open bin",
    ),
    ("category", _TEXT, "category or group; null for `other`"),
    ("label", _TEXT, "display name of the category; null where there is none, and for levels"),
    ("first", _TEXT, "begins the words for a range of numbers from this bin on, such as 0 in 0 to 19"),
    ("last", _TEXT, "ends the words for a range of numbers up to this bin, such as 19 in 0 to 19, or under 20"),
    ("below", _TEXT, "the words for all numbers up to this bin"),
    ("above", _TEXT, "the words for all numbers from this bin on"),
    ("atoms", _WHOLE, "number of report intervals in the bin, for estimates from reports"),
)
_OF_TWO = ", for two intervals that hold together with 95 %"
HALF_WIDTHS = _schema(
    _SCALE,
    ("cells", _WHOLE, "number of cells in a sum; use the first entry that is large enough"),
    ("half_width", _REAL, "half the width of the 95 % interval of the sum, in rows"),
    ("half_width_of_two", _REAL, f"the same at 97.5 %{_OF_TWO}"),
    ("deviations", _REAL, "half the width of the 95 % interval of a weighted sum, in its standard deviations"),
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
MOMENTS = _schema(
    _SCALE,
    (
        "moments",
        pa.list_(pa.struct([("rate", _REAL), ("log_moment", _REAL)])),
        "rates to try in Chernoff's inequality, and the logarithm of the mean of exp(rate * noise) of one draw at each",
    ),
)
QUALITY = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    ("number", _WHOLE, "order of the numbers of a publication, from 1"),
    ("statistic", _TEXT, "what is counted: units, rows, unparsed, undeclared, cut, misfiled or left_out"),
    ("axis", _TEXT, "axis that the number is about; null for all"),
    ("position", _WHOLE, "along the axis, from 0; of units the rows that they hold"),
    ("category", _TEXT, "what the position is called; null for `other`"),
    ("estimate", _REAL, "noisy number, not cut off at 0"),
    ("ci_lower", _REAL, "lower end of its 95 % interval, not cut off at 0"),
    ("ci_upper", _REAL, "upper end of its 95 % interval"),
    ("noise_scale", _REAL, "scale of its discrete Laplace noise"),
    ("noise_variance", _REAL, "variance of its noise"),
    ("most", _REAL, "what the published counts allow it to be at most; null where they do not tell"),
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
KNOWN = _schema(
    *(_RELEASE, _PERIOD, _REVISION),
    (
        "known_group",
        _WHOLE,
        "number of a group of cells whose count is a public figure, from 0; every cell lies in one",
    ),
    ("cells", _WHOLE, "number of cells in the group"),
    ("figure", _WHOLE, "the public figure: the exact count of the group"),
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
    "dph_charges": (
        "One row for each step of a publication: the epsilon that it spent. Tables of a family are charged together.",
        CHARGES,
    ),
    "dph_bins": ("One row for each position along an axis of a grid, and for each of its levels.", BINS),
    "dph_half_widths": ("Half widths of 95 % intervals of sums of independent noisy cells.", HALF_WIDTHS),
    "dph_covariance": ("The covariance of two cells of linear estimates.", COVARIANCE),
    "dph_lines": ("The covariance of positions along an axis of which weighted sums were measured.", LINES),
    "dph_linear_widths": ("Half widths of 95 % intervals of linear estimates.", LINEAR_WIDTHS),
    "dph_moments": ("What bounds the tails of sums of noise.", MOMENTS),
    "dph_groups": ("Noisy sums of groups of cells, drawn after the groups were found.", GROUPS),
    "dph_quality_rows": ("What was bought about the rows behind the counts: one row for each number.", QUALITY),
    "dph_distances": ("How far sums of whole counts are from the unbiased estimates.", DISTANCES),
    "dph_known": ("Public figures that counts meet exactly: one row for each group of cells with a figure.", KNOWN),
    "dph_better": ("Where another table of a family tells less noise than the one that is named.", BETTER),
    "dph_version": ("One row: the version of the definitions.", VERSION),
}

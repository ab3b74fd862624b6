"""Assembles the SQL macros of the catalogue from shared pieces.

The pieces are inserted as text, because a macro of an attached catalogue cannot call another of its macros.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from dphist_pipeline.answering import notes
from dphist_pipeline.answering.intervals import LEVEL, LEVEL_OF_TWO
from dphist_pipeline.answering.report_intervals import normal_factor
from dphist_pipeline.sql_files import identifier, literal, statement

MACROS = (
    "dph_total",
    "dph_box",
    "dph_range",
    "dph_marginal",
    "dph_share",
    "dph_quantile",
    "dph_compare",
    "dph_band",
    "dph_whole",
    "dph_distances",
    "dph_quality",
)
_ROW_FOR_ROW = ("dph_marginal", "dph_band", "dph_whole")  # return cells or sums of cells with the table's column names
_NUMBERS = "t.period, t.revision, t.cell_number, t.estimate, t.unbiased_estimate, t.group_id"
_ONE_BOX = ("dph_total", "dph_box")
_ONE_KEY = {"periods": "[period]", "revisions": "[revision]", "places": "[1]"}
_TWO_KEYS = {
    "periods": "[CAST(first_period AS VARCHAR), CAST(second_period AS VARCHAR)]",
    "revisions": "coalesce(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[]), [NULL, NULL])[:2]",
    "places": "[1, 2]",
}
# Half the width of a 95 % interval, in standard deviations: 2.12 for one Laplace variable, less for sums of several;
# the rest is for the ratios of noisy numbers.
SURE = 2.2
_NONE_APART = "SELECT CAST(NULL AS VARCHAR) AS grid, CAST(NULL AS VARCHAR) AS axis WHERE false"
_ROLLED_APART = "SELECT DISTINCT w.grid, w.level_of AS axis FROM wanted_axes AS w WHERE w.is_asked"
_SPAN_APART = "SELECT spans.grid, spans.axis FROM spans"
_APART = {"dph_marginal": _ROLLED_APART, "dph_quantile": _SPAN_APART}
_THE_BOX = "SELECT 'box' AS name, 'box' AS source"
_WITH_INNER = """
    SELECT 'around' AS name, 'box' AS source
    UNION ALL
    SELECT 'inner' AS name, 'box' AS source WHERE EXISTS (FROM cuts)
"""
_NAMED = {
    **dict.fromkeys(_ONE_BOX, _WITH_INNER),
    "dph_range": "SELECT unnest(['inner', 'outer']) AS name, 'box' AS source",
    "dph_share": "FROM (VALUES ('whole', 'whole'), ('part', 'whole'), ('part', 'part')) AS names(name, source)",
}


@cache
def macro(name: str, schema: str | None = None) -> str:
    """The CREATE statement of a macro.

    Args:
        name: one of `MACROS`.
        schema: where the macro is created; None for the current schema of the connection.
    """
    inside, trials = _piece("inside"), _piece("trials")
    parts = {
        "schema": "" if schema is None else f"{identifier(schema)}.",
        "opening": _piece(
            "opening",
            columns="t.*" if name in _ROW_FOR_ROW else _NUMBERS,
            **(_TWO_KEYS if name == "dph_compare" else _ONE_KEY),
        ),
        "bins": _piece("bins"),
        **{given: _piece("given_box", given=given) for given in ("box", "whole", "part")},
        "boxes": _piece(
            "boxes",
            named=_NAMED.get(name, _THE_BOX),
            more_positions=_piece("range_positions") if name == "dph_range" else "",
            takes_any_end="true" if name in _ONE_BOX else "false",
        ),
        "nested": _piece("nested", apart=_APART.get(name, _NONE_APART)),
        "crossed": _piece("crossed"),
        "chebyshev": repr(math.sqrt(1 / (1 - LEVEL))),
        "atoms": _piece("atoms"),
        "sums": _piece(
            "sums",
            inside=inside,
            report_variance=_variance("s"),
            **(_spread_sums() if name in _ONE_BOX else {"spread": "", "spread_columns": ""}),
            **_SUMS,
        ),
        **_SUMS,
        "inside": inside,
        "reach": _piece("reach", report_reach=_report_reach(LEVEL), report_reach_of_two=_report_reach(LEVEL_OF_TWO)),
        "group_sums": _piece("group_sums"),
        "ends": _piece("ends", rows="reaching", id="_first" if name == "dph_marginal" else "name"),
        "bound": _piece("bound", trials=trials),
        "report_bound": _piece("report_reach", row="v", factor="v.factor", variance="variance"),
        **_report_parts(name),
        "answer": _piece("answer", cut_note="", **_NOTES),
        "answer_of_cut": _piece("answer", cut_note=_CUT_NOTE, **_NOTES),
        "caps": _piece("caps"),
        "capped": _piece("capped", row="caps"),
        "first_capped": _piece("capped", row="one_cap"),
        "second_capped": _piece("capped", row="two_cap"),
        "sure": repr(SURE),
        "found": _piece("found"),
        "no_problem": _piece("no_problem", macro=name),
    }
    if name in _ONE_BOX:
        one = {**parts, "box": "JSON '{}'"} if name == "dph_total" else parts
        parts["one_box"] = _piece("one_box", **one)
    return statement(f"answering/{name}", **parts, **_NOTES)


def _report_reach(level: Fraction) -> str:
    """SQL for half the width of the interval of a row of `summed` from reports."""
    return _piece("report_reach", row="summed", factor=repr(normal_factor(level)), variance="linear_variance")


def _spread_sums() -> dict[str, str]:
    """SQL for the sums that spread the rows of cut bins evenly, and for the names of these sums."""
    weight = _piece("weight")
    names = {"spread_estimate": "estimate", "spread_unbiased": "unbiased_estimate"}
    sums = [f"{_sum(f't.{column} * {weight}')} AS {name}" for name, column in names.items()]
    return {
        "spread": "".join(f",\n                {one}" for one in sums),
        "spread_columns": "".join(f",\n            inside.{name}" for name in names),
    }


def _sum(number: str) -> str:
    return _piece("exact_sum", number=number)


def _report_parts(name: str) -> dict[str, str]:
    """SQL for variances of counts from reports, with the column names that the macro's tables use."""
    if name == "dph_marginal":
        return {"report_variance": _variance("l")}
    if name == "dph_band":
        return {"report_variance": _variance("r", "bins.atoms", "i.unbiased_estimate")}
    if name == "dph_share":
        contrast = _contrast("b", "sound", ("b.atoms", "b.unbiased"), ("b.other_atoms", "b.other_unbiased"))
        return {"report_variance": _variance("r", "r.other_atoms", "r.other_unbiased"), "report_contrast": contrast}
    if name == "dph_quantile":
        below, above = ("e.atoms_below", "e.unbiased_below"), ("e.atoms_above", "e.unbiased_above")
        return {"report_contrast": _contrast("c", "e.q", below, above)}
    return {}


def _variance(law: str, atoms: str = "", count: str = "") -> str:
    return _piece("report_variance", law=law, atoms=atoms or f"{law}.atoms", count=count or f"{law}.unbiased")


def _contrast(law: str, share: str, one: tuple[str, str], other: tuple[str, str]) -> str:
    """SQL for the variance of (1 - share) · count of one set - share · count of another; sets as (atoms, count)."""
    parts = {"atoms": one[0], "count": one[1], "other_atoms": other[0], "other_count": other[1]}
    return _piece("report_contrast", law=law, weight=f"(1 - {share})", other_weight=f"(-{share})", **parts)


def _piece(name: str, **parts: str) -> str:
    """The SQL of a piece, without its opening comment."""
    lines = statement(f"answering/pieces/{name}", **parts).splitlines()
    while lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines)


_SUMS = {
    name: _sum(number)
    for name, number in {
        "estimate": "t.estimate",
        "unbiased": "t.unbiased_estimate",
        "variance": "nested.coefficient * nested.squares",
        "sum_of_estimate": "estimate",
        "sum_of_unbiased": "unbiased_estimate",
        "sum_of_row": "v.coefficient * v.squares",
        "sum_of_nodes": "nodes.coefficient",
        "sum_of_spans": "s.weight * s.share",
    }.items()
}
_NOTES = {
    name: literal(text)[1:-1]
    for name, text in {
        "no_interval": notes.NO_INTERVAL,
        "smoothed": notes.SMOOTHED,
        "below": notes.BELOW,
        "no_whole": notes.NO_WHOLE,
        "no_share": notes.NO_SHARE,
        "open_bin": notes.OPEN_BIN,
        "cut": notes.CUT,
        "cuts_group": notes.CUTS_GROUP,
    }.items()
}
_CUT_NOTE = "WHEN barred.cut_axes IS NOT NULL THEN '{}' || barred.cut_axes || '{}'\n        ".format(
    *_NOTES["cut"].split("{axes}")
)

"""Assembles the SQL macros of the catalogue from shared pieces.

The pieces are inserted as text, because a macro of an attached catalogue cannot call another of its macros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from dphist_pipeline.answering._asked_boxes import BOXES, ONE_BOX, WITHOUT_BOXES, asked_boxes
from dphist_pipeline.answering._asked_boxes import piece as _piece
from dphist_pipeline.answering._catalogue_places import Places
from dphist_pipeline.answering._macro_texts import CUT_NOTE, LIMITS, NOTES, SUMS, exact_sum
from dphist_pipeline.answering._period_days import days, end_of
from dphist_pipeline.estimates.laws import LEAST_VARIANCE_OF_SHARES, LEVEL, LEVEL_OF_TWO, SURE, normal_factor
from dphist_pipeline.published_columns import KINDS_OF_VALUES, VALUE_COLUMNS
from dphist_pipeline.sql_files import statement

MACROS = (
    "dph_total",
    "dph_box",
    "dph_range",
    "dph_marginal",
    "dph_share",
    "dph_quantile",
    "dph_mean",
    "dph_sum",
    "dph_rate",
    "dph_standardised",
    "dph_ranks",
    "dph_difference",
    "dph_ratio",
    "dph_compare",
    "dph_compare_releases",
    "dph_changes",
    "dph_over",
    "dph_band",
    "dph_whole",
    "dph_distances",
    "dph_quality",
)
_ROW_FOR_ROW = ("dph_marginal", "dph_band", "dph_whole")  # return cells or sums of cells with the table's column names
_SUMMED = ("period", "revision", "cell_number", *(column.name for column in VALUE_COLUMNS if column.is_summed))
_NUMBERS = ", ".join(f"t.{name}" for name in _SUMMED)
_VALUE_COLUMNS = ", ".join(
    ("cell_number", *KINDS_OF_VALUES, "whole_count")
)  # of the table of a release, beside its axes
_ONE_BOX = ("dph_total", "dph_box")
_ONE_KEY = {
    "periods": "[period]",
    "revisions": "[TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT)]",
    "places": "[1]",
    "written_revision": "CAST(revision AS VARCHAR)",
}
_ALL_KEYS = {"periods": "[NULL]", "revisions": "[NULL]", "places": "[1]", "written_revision": "NULL"}
_TWO_KEYS = {
    "periods": "[CAST(first_period AS VARCHAR), CAST(second_period AS VARCHAR)]",
    "revisions": "coalesce(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[]), [NULL, NULL])[:2]",
    "places": "[1, 2]",
    "written_revision": "NULL",  # dph_compare has a message of its own
}
_KEYS = {
    "dph_compare": _TWO_KEYS,
    "dph_compare_releases": {**_ALL_KEYS, "periods": "[period]"},
    "dph_changes": {**_ALL_KEYS, "named_periods": "[period]"},
    "dph_over": _ALL_KEYS,
}
_PAIRS = {
    "dph_compare": "one.place = 1 AND two.place = 2",
    "dph_compare_releases": "one.place = 1 AND two.place = 2 AND two.period = one.period",
    "dph_changes": "one.period = (SELECT max(c.period) FROM chosen AS c WHERE c.period < two.period)",
}
_SAME = {"dph_compare": "barred.first_period = barred.second_period"}  # when two counts are of the same records
# The axes that a macro sums along beside its boxes, and names that it is asked by. Other macros show the cells of the
# table that is named, or what else is told about it.
_NO_NAMES = "CAST([] AS VARCHAR[])"
_BY_BOXES = {"along": _NO_NAMES, "by": "[]"}
_ALONG_AXIS = {"along": "[coalesce(CAST(axis AS VARCHAR), '')]", "by": "[]"}
_NAMING = {
    **dict.fromkeys(("dph_total", "dph_box", "dph_share", "dph_difference", "dph_ratio"), _BY_BOXES),
    **dict.fromkeys(("dph_compare", "dph_compare_releases", "dph_changes", "dph_over"), _BY_BOXES),
    **dict.fromkeys(("dph_range", "dph_quantile", "dph_mean", "dph_sum"), _ALONG_AXIS),
    "dph_marginal": {**_BY_BOXES, "by": "axes"},
}
_ALWAYS_NAMED = {
    "best_columns": "r.is_latest, 0 AS first_number",
    "best_join": "WHERE r.release = (SELECT asked.release FROM asked)",
}
# What is told of all tables of a family, from any of them.
_ANY_OF_FAMILY = {
    "best_columns": "r.is_latest, 0 AS first_number",
    "best_join": (
        "WHERE (SELECT asked.release FROM asked) IN (r.release, r.family)\n"
        "    QUALIFY row_number() OVER (PARTITION BY r.period, r.revision ORDER BY r.release) = 1"
    ),
}
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
_ASKED = "coalesce(TRY_CAST(with_chance AS BOOLEAN), false)"
# The rows of cells that lie in both boxes vary alike.
_WITH_BOTH = f"""
    SELECT unnest(['first', 'second']) AS name, name AS source
    UNION ALL
    SELECT 'both', unnest(['first', 'second']) WHERE {_ASKED}
"""
_TWO_BOXES = ("dph_difference", "dph_ratio")
_MOVED = {"dph_share": "share", "dph_ratio": "ratio", "dph_rate": "rate", "dph_standardised": "rate"}
# The two boxes whose rows cut are summed along an axis.
_CUT_IN = {"dph_share": {"first": "part", "second": "whole"}, "dph_ratio": {"first": "first", "second": "second"}}
_NAMED = {
    **dict.fromkeys(_TWO_BOXES, _WITH_BOTH),
    **dict.fromkeys(_ONE_BOX, _WITH_INNER),
    "dph_range": "SELECT unnest(['inner', 'outer']) AS name, 'box' AS source",
    "dph_share": "FROM (VALUES ('whole', 'whole'), ('part', 'whole'), ('part', 'part')) AS names(name, source)",
}
_MOMENTS = """
    SELECT v.name, i.grid, i.axis, i.position, CASE WHEN i.axis = given.axis THEN v.weight ELSE 1 END AS weight
    FROM inside_positions AS i JOIN given ON true
    LEFT JOIN closed AS k ON k.grid = i.grid AND k.axis = i.axis AND k.position = i.position, LATERAL (
        SELECT
            unnest(['rows', 'low', 'high', 'middle']) AS name,
            unnest([1, k.above_least, k.below_most, (k.low_end + k.high_end) / 2]) AS weight
    ) AS v
"""
_WEIGHTS = dict.fromkeys(("dph_mean", "dph_sum"), _MOMENTS)
_WEIGHTS |= dict.fromkeys(_TWO_BOXES, "SELECT i.*, 1 AS weight FROM inside_positions AS i")


# How far the bound moves an answer, and the ends of the interval of that.
_SHIFTS = {"shift": "moved.shift", "shift_lower": "moved.lower", "shift_upper": "moved.upper"}
_SHIFTS_OF_SHARE = {
    "shift": "biased.points",
    "shift_lower": "biased.points_lower",
    "shift_upper": "biased.points_upper",
}
# A rate is too low by the rows cut, each with a weight. Their interval is cut off as that of all rows cut.
_CUTS = {
    "shift": "greatest(0, {cut})",
    "shift_lower": "CASE WHEN {cut} + {reach} > 0 THEN {cut} + {reach} ELSE {reach} END",
    "shift_upper": "greatest(0, {cut} - {reach})",
}
_RATES = {
    "dph_rate": {"cut": "answered._cut.cut", "reach": "answered._cut.reach", "weight": "per / m.population"},
    "dph_standardised": {
        "cut": "barred.cut / barred.most",
        "reach": "barred.cut_reach / barred.most",
        "weight": "barred.most",
    },
}
# How far all rows cut would move an answer, wherever they fell.
_RATIOS = {
    "least_ratio": "barred.first_unbiased / (barred.second_unbiased + capping.cut_upper)",
    "most_ratio": "(barred.first_unbiased + capping.cut_upper) / "
    "(barred.second_unbiased + CASE WHEN lying.is_part THEN capping.cut_upper ELSE 0 END)",
}
# How far rows elsewhere in their bins move a mean or a sum: each bin counts by its rows.
_MOVES = {
    "moved_mean": "least(barred.half_bin, "
    "barred.moved_sum / greatest(0, coalesce(barred.rows, barred.estimated_rows)))",
    "moved_sum": "barred.moved_sum",
}
_MEAN_SHIFTS = {
    "least_shift": "(barred.least - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper)",
    "most_shift": "(barred.most - barred.unbiased) * capping.cut_upper / (barred.rows + capping.cut_upper)",
}
_SUM_SHIFTS = {
    "least_shift": "least(0, barred.least) * capping.cut_upper",
    "most_shift": "greatest(0, barred.most) * capping.cut_upper",
}

# What a macro within which the query of dph_marginal stands reads of it.
_INNER_ANSWER = """
    barred._first, barred.cells AS _cells,
    CASE WHEN NOT barred.is_grouped THEN coalesce(barred.linear_variance, barred.cells * barred.noise_variance) END
        AS _variance,
    barred.linear_variance IS NOT NULL AS _is_linear, barred.unbiased AS _unbiased,
    {'noise_scale': barred.noise_scale, 'noise_variance': barred.noise_variance} AS _law,
    (SELECT a FROM (SELECT {answer}) AS a) AS _answer
"""
_CUT_OF_ROW = """,
    (SELECT k FROM cut_of_rows AS k WHERE k.period = grouped.period AND k._first = grouped._first) AS _cut
"""
_AROUND_MARGINALS = {
    "dph_rate": "axes",
    "dph_standardised": "list_append(coalesce(TRY_CAST(axes AS VARCHAR[]), []), CAST(over AS VARCHAR))",
    "dph_ranks": "[CAST(axis AS VARCHAR)]",
}


@cache
def macro(name: str, schema: str | None = None) -> str:
    """The CREATE statement of a macro.

    Args:
        name: one of `MACROS`.
    """
    parts = _parts(name)
    if name in _AROUND_MARGINALS:
        inner = _parts("dph_marginal") | {"no_problem": parts["no_problem"]}
        inner["answer"] = _INNER_ANSWER.replace("{answer}", inner["answer"])
        if name in _RATES:
            inner["answer"] += _CUT_OF_ROW
            inner["cut_of_rows"] = _piece("cut_of_rows")
        inner["days_of_grouped"] = f"{end_of('grouped')} AS _period_end"
        marginal = statement("answering/dph_marginal", **inner, **NOTES).partition(" AS TABLE\n")[2]
        axes = _AROUND_MARGINALS[name]
        parts["marginal"] = re.sub(r"\baxes(?= AS VARCHAR| IS NOT NULL)", axes, marginal)
        if name != "dph_ranks":
            over = "over" if name == "dph_standardised" else "NULL"
            parts["matched"] = _piece("matched", axes=axes, over=over, marginal=parts["marginal"])
    if name == "dph_compare_releases":
        for side, box in {
            "first": "box",
            "second": "coalesce(CAST(second_box AS VARCHAR), CAST(box AS VARCHAR))",
        }.items():
            of_side = {**parts, "opening": _opening(name, {"box": box})}
            parts[f"{side}_side"] = _of_release(f"{side}_release", _piece("side", **of_side))
        parts["change_of_two"] = _of_release("first_release", parts["change_of_two"])
    places = Places(schema)
    parts["schema"] = places.users
    return places.in_macro(statement(f"answering/{name}", **parts, **NOTES))


def _of_release(release: str, text: str) -> str:
    """A piece for a macro whose argument has another name than `release_name`."""
    return re.sub(r"\brelease_name\b", release, text)


def _parts(name: str) -> dict[str, str]:
    """The pieces of SQL that a macro may name, by their names in its file."""
    inside = _piece("inside")
    parts = {
        "schema": "",
        "value_columns": _VALUE_COLUMNS,
        "cut_of_rows": "",
        "opening": _opening(name, BOXES.get(name, ONE_BOX)),
        "boxes_asked": _piece("boxes_asked"),
        "boxes_along": _piece("boxes_along"),
        "bins": _piece("bins"),
        "bin_in_words": _piece("ends_in_words", low="middle", high="middle"),
        "bins_in_words": _piece("ends_in_words", low="lowest", high="highest"),
        "boxes": _piece(
            "boxes",
            named=_NAMED.get(name, _THE_BOX),
            more_positions=_piece("range_positions") if name == "dph_range" else "",
            takes_any_end="true" if name in _ONE_BOX else "false",
        ),
        "nested": _piece("nested", apart=_APART.get(name, _NONE_APART)),
        "crossed": _piece("crossed"),
        "least_variance": repr(LEAST_VARIANCE_OF_SHARES),
        "atoms": _piece("atoms"),
        "sums": _piece(
            "sums",
            inside=inside,
            report_variance=_variance("s"),
            **(_spread_sums() if name in _ONE_BOX else {"spread": "", "spread_columns": ""}),
            **SUMS,
        ),
        **SUMS,
        "inside": inside,
        "covariances": _piece("covariances", weights=_WEIGHTS.get(name, ""), **SUMS),
        "bound": _piece("bound", row="v"),
        "draw_reach": _piece("draw_reach", row="v"),
        "draw_reach_of_row": _piece("draw_reach", row="w"),
        "decay_of_law": _piece("decay", scale="a._law.noise_scale"),
        "bound_of_row": _piece("bound", row="w"),
        "deviations": _piece("deviations", row="d", draws="d.draws"),
        "reach": _piece("reach", report_reach=_report_reach(LEVEL), report_reach_of_two=_report_reach(LEVEL_OF_TWO)),
        "group_sums": _piece("group_sums"),
        "ends": _piece("ends", rows="reaching", id="_first" if name == "dph_marginal" else "name"),
        "sure_of_reports": repr(normal_factor(LEVEL)),
        "report_reach_of_sum": _piece("report_reach", row="r", factor=repr(normal_factor(LEVEL)), variance="variance"),
        "report_bound": _piece("report_reach", row="v", factor="v.factor", variance="variance"),
        **_report_parts(name),
        **days(),
        "answer": _piece("answer", cut_note="", judged_error="barred.noise_error", **LIMITS, **NOTES),
        "answer_of_cut": _piece("answer", cut_note=CUT_NOTE, judged_error=_piece("judged_error"), **LIMITS, **NOTES),
        "change": _piece(
            "change",
            **{**NOTES, **_chance(name), "why_revised": _piece("why_revised") if name in _SAME else "''"},
            same_records=_SAME.get(name, "false"),
            note_of_sum=_note_of_sum(name),
        ),
        "note_of_sum": _note_of_sum(name),
        "caps": _piece("caps", cut_of_all=_piece("cut_of_all", row="b")),
        "capped": _capped("caps"),
        "capping": _piece("capping", cut_of_all=_piece("cut_of_all", row="q")),
        "capped_of_release": _capped("capping"),
        "cut_along": _piece("cut_along", **_CUT_IN.get(name, {"first": "", "second": ""})),
        "shift_of_share": f"({_piece('shift_of_share')})",
        "shift_of_ratio": f"({_piece('shift_of_ratio', **_numbers(_RATIOS))})",
        "moved": _moved(name),
        **_numbers(_MOVES, digits="3"),
        "shifted": _piece(
            "shifted",
            capped_of_release=_capped("capping"),
            measured=_measured(name),
            shift=_shift_of(name),
            cap_unknown=NOTES["cap_unknown"],
        ),
        "first_capped": _capped("one_cap"),
        "second_capped": _capped("two_cap"),
        "sure": repr(SURE),
        **_chance(name),
        **LIMITS,
        "found": _piece("found"),
        "no_problem": _piece("no_problem", macro=name),
    }
    parts["chance"] = _piece("chance", **{**NOTES, **parts})
    parts["capped_of_two"] = _piece("capped_of_two", same_records=_SAME.get(name, "false"), **NOTES, **parts)
    parts["moments"] = _piece("moments", **parts)
    parts["two_boxes"] = _piece("two_boxes", **parts)
    parts["change_of_two"] = _piece("change_of_two", pairs=_PAIRS.get(name, ""), **parts)
    if name in _ONE_BOX:
        parts["one_box"] = _piece("one_box", **parts)
    return parts


def _capped(row: str) -> str:
    """SQL for the sentence on what the bound cut, from a row of what was bought."""
    return _piece("capped", row=row, beginning=_among_first(row))


def _among_first(row: str) -> str:
    """SQL for the beginning of a sentence on rows that the bound cut: what is not seen of them."""
    return _piece("among_first", row=row, unseen=NOTES["unseen"])


def _moved(name: str) -> str:
    """SQL for the sentence on how far the bound moves a share, a ratio or a rate; empty for others."""
    what = _MOVED.get(name)
    if what is None:
        return ""
    if name == "dph_share":
        numbers = {which: f"printf('%+.2f', {number})" for which, number in _SHIFTS_OF_SHARE.items()}
    elif name in _RATES:
        numbers = _numbers({which: _lower_rate(name, cut) for which, cut in _CUTS.items()}, sign="+")
    else:
        numbers = _numbers(_SHIFTS, sign="+", digits="3")
    unit = " points" if name == "dph_share" else ""
    return _piece("moved", beginning=_among_first("capping"), what=what, unit=unit, **numbers)


def _lower_rate(name: str, cut: str) -> str:
    """SQL for how far a rate is moved by some rows cut, which are no more than all that may be."""
    weight = _RATES[name]["weight"]
    return f"0 - least(capping.cut_upper, {cut.format(**_RATES[name])}) * {weight}"


def _measured(name: str) -> str:
    """SQL for the case in which a quality table tells how far the bound moves a rate; empty for others."""
    if name not in _RATES:
        return ""
    return f"\n        WHEN {_RATES[name]['cut']} IS NOT NULL THEN {_moved(name)}"


def _missing(name: str) -> str:
    """SQL for words on the days between periods that are in no published one."""
    more = {"dph_over": "', and not in this sum'", "dph_changes": "', from ' || barred.first_end || ' on'"}
    if name not in more:
        return "NULL"
    return _piece("missing_days", days="barred.missing_days", more=more[name], **NOTES)


def _note_of_sum(name: str) -> str:
    """SQL for the note of a sum over periods, or of a change between them, which alone may well be below 0."""
    below = "\n            WHEN barred.estimate < 0 THEN '{below}'".format(**NOTES) if name == "dph_over" else ""
    return _piece("note_of_sum", missing=_missing(name), below_zero=below, **NOTES)


def _numbers(numbers: Mapping[str, str], sign: str = "", digits: str = "4") -> dict[str, str]:
    """SQL for numbers in words, by their names."""
    return {name: _piece("number", number=f"({number})", sign=sign, digits=digits) for name, number in numbers.items()}


def _shift_of(name: str) -> str:
    """SQL for words that say how far the rows that the bound cut may move an answer."""
    if name in ("dph_mean", "dph_sum"):
        digits, ends = ("3", _MEAN_SHIFTS) if name == "dph_mean" else ("4", _SUM_SHIFTS)
        return f"({_piece(name.replace('dph_', 'shift_of_'), **_numbers(ends, '+', digits))})"
    if name not in _RATES:
        return "NULL"
    (most,) = _numbers({"most": f"capping.cut_upper * {_RATES[name]['weight']}"}).values()
    return f"'each rate is too low by the rows cut there, by at most ' || {most}"


def _chance(name: str) -> dict[str, str]:
    """SQL for half widths that cover the variation of counts by chance, too, where a question asks for that."""
    never = name == "dph_compare_releases"  # the same people may be in both
    asked = "false" if never else _ASKED
    normal, answer = repr(normal_factor(LEVEL) ** 2), "answered._answer"
    widened = {
        "change": ("d.noise_half_width", normal, "d.chance_variance"),
        "first": ("d.first_reach", normal, "greatest(0, d.first_unbiased) + 1"),
        "second": ("d.second_reach", normal, "greatest(0, d.second_unbiased) + 1"),
        "part": ("summed.part_reach", normal, "summed.part_chance"),
        "rest": ("summed.other_reach", normal, "summed.other_chance"),
        "ranks": ("n.noise_half_width", "2 * ln(2 / n.missed)", "greatest(0, n._unbiased) + 1"),
        "below": (f"({answer}.unbiased - {answer}.ci_lower)", normal, f"greatest(0, {answer}.unbiased) + 1"),
        "above": (f"({answer}.ci_upper - {answer}.unbiased)", normal, f"greatest(0, {answer}.unbiased) + 1"),
    }
    pieces = {
        f"{which}_with_chance": _piece("with_chance", asked=asked, reach=reach, sure=sure, variance=variance)
        for which, (reach, sure, variance) in widened.items()
    }
    # Of counts in the bins of an axis that vary apart: sums of their variances, by the weights of the bins.
    weights = {
        "rows": "1",
        **{
            "low": "k.above_least",
            "low_low": "k.above_least ** 2",
            "high": "k.below_most",
            "high_high": "k.below_most ** 2",
        },
        **{"middle": "k.middle", "middle_middle": "k.middle ** 2"},
        **{"lower_ends": "k.low_end ** 2", "upper_ends": "k.high_end ** 2"},
    }
    for which, weight in weights.items():
        summed = f"fsum(greatest(0, a.unbiased) * {weight} ORDER BY a.position)"
        pieces[f"chance_{which}"] = f"CASE WHEN {asked} THEN {summed} ELSE 0 END"
    return {**pieces, "asked": asked, "chance_outside": NOTES["chance_of_releases" if never else "chance_left_out"]}


def _opening(name: str, boxes: Mapping[str, str]) -> str:
    """SQL for the cells and publications of a question; `boxes` has the arguments of boxes, by their names."""
    best, asked = _ANY_OF_FAMILY if name == "dph_quality" else _ALWAYS_NAMED, ""
    if name in _NAMING:
        names = _piece("asked_names", **_NAMING[name]) if boxes else f"{{'by': {_NO_NAMES}, 'boxed': {_NO_NAMES}}}"
        join = _piece("best_join", asked_names=names)
        best = {"best_columns": "o.is_latest, o.first_number", "best_join": join}
    if name not in WITHOUT_BOXES:
        asked = asked_boxes(boxes or {"box": "CAST(NULL AS VARCHAR)"}) + ",\n"
    columns = "t.*" if name in _ROW_FOR_ROW else _NUMBERS
    keys = _KEYS.get(name, _ONE_KEY)
    named = {"named_periods": keys["periods"]} | keys  # a change to one period takes all of them
    decay = _piece("decay", scale="r.noise_scale")
    return _piece("opening", columns=columns, asked_boxes=asked, decay=decay, **best, **named)


def _report_reach(level: Fraction) -> str:
    """SQL for half the width of the interval of a row of `summed` from reports."""
    return _piece("report_reach", row="summed", factor=repr(normal_factor(level)), variance="linear_variance")


def _spread_sums() -> dict[str, str]:
    """SQL for the sums that spread the rows of cut bins evenly, and for the names of these sums."""
    weight = _piece("weight")
    names = {"spread_estimate": "estimate", "spread_unbiased": "unbiased_estimate"}
    sums = [f"{exact_sum(f't.{column} * {weight}')} AS {name}" for name, column in names.items()]
    return {
        "spread": "".join(f",\n                {one}" for one in sums),
        "spread_columns": "".join(f",\n            inside.{name}" for name in names),
    }


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

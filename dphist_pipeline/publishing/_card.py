"""The release card: one page in every published folder: what was counted, how sure it is, and what it cost.

Its words are in `templates/card*.html.j2`; this file computes the numbers in them. Its bytes depend on the published
values, the audit, what stands around it and the version of the program alone.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dphist_pipeline.base.domain import OTHER, AmountAxis, Axis, BinnedAxis, CategoricalAxis, Domain, with_words
from dphist_pipeline.base.languages.texts import (
    ENGLISH,
    gettext,
    in_language,
    language,
    number_text,
    pgettext,
    translate,
    whole,
)
from dphist_pipeline.base.shown_below import compared_in_words, hidden_in_words, limit_of, words_for
from dphist_pipeline.base.sql_files import literal
from dphist_pipeline.estimates.amounts import figures_by
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.cells_near_zero import CellsNearZero, first_in_words
from dphist_pipeline.estimates.estimate import Estimate, answer_box
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells
from dphist_pipeline.estimates.randomized_response import odds
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.estimates.row_quality import BoundingEffect, QualityTable, cap_in_words
from dphist_pipeline.publishing._card_cover import ALONE, PublicationNeighbours, cover_facts, covered_in_words
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.formatting import (
    comma_list,
    epsilon_text,
    likelihood_ratio,
    percent,
    posterior_odds,
    rough_number,
    shown_number,
)
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.pages import picture_facts
from dphist_pipeline.publishing.picture_sums import Grid, Reals, end_in_words
from dphist_pipeline.publishing.pictures import all_pictures
from dphist_pipeline.publishing.rendering import render
from dphist_pipeline.spec.declared_columns import conditions, derived_columns
from dphist_pipeline.spec.unit_axes import in_words

Rows = Sequence[Mapping[str, Any]]
MOST_NAMED, ASKED_AXES = 12, 2
LEAST_PART = 0.01  # of an estimate, to have a line
LENGTHS = (2, 10, 100, 1000)
# Read as text: the card of a mechanism is its file's docstring, and the public side loads no mechanism.
_MECHANISMS = Path(__file__).parents[1] / "mechanisms"
_ALSO = re.compile(r"(.*?)(?:; values of (.+) changed, too)?", re.DOTALL)
_WENT = re.compile(
    r" (fell|rose)(?: from about ([0-9,]+) to about ([0-9,]+))?(?: \(and ([0-9]+) more of (\w+)\))?(.*)", re.DOTALL
)
_WHILE = re.compile(r" while (.+) rose by as much: was a code renamed\?", re.DOTALL)


def release_card(
    estimate: Estimate,
    audit: Mapping[str, Any],
    rows: Rows | None = None,
    around: PublicationNeighbours = ALONE,
) -> str:
    """The card of a publication, as HTML, from the facts of its audit with charges and versions.

    `rows`: of its quality table; those of the estimate by default.
    """
    rows = QualityTable.of(estimate.quality).rows if rows is None else rows
    with in_language(around.about.language_of(audit)):
        return _page(estimate, audit, rows, around)


def _page(estimate: Estimate, audit: Mapping[str, Any], rows: Rows, around: PublicationNeighbours) -> str:
    axes, amount = estimate.domain.axes, amount_facts(estimate, audit, rows)
    estimate = estimate.of_rows
    domain, epsilon = estimate.domain, Fraction(audit["epsilon"])
    near = CellsNearZero.of_estimate(estimate)
    labelled = domain.called(audit.get("axis_labels"))
    pictures = [
        picture.told_as(audit) for picture in all_pictures(Grid.of_all(labelled, estimate.values, estimate.unbiased))
    ]
    local = audit.get("model") == "local"
    return render(
        "card_local.html.j2" if local else "card_central.html.j2",
        audit=audit,
        title=str(audit.get("title") or audit["release"]),
        axes=[axis_facts(axis, audit) for axis in axes],
        axes_of_rows=[axis_facts(axis, audit) for axis in domain.axes],
        amount=amount,
        cells=domain.cells,
        outside=shown_number(round(domain.cells / 20)) if domain.cells > 20 else "",
        pictures=[picture_facts(picture) for picture in pictures],
        left_out=len(domain.axes) - len(pictures) + (len(domain.axes) > 1),
        smoothed=is_smoothed(estimate),
        **{"reliability": RELIABILITY.sentence([estimate.unbiased], local), "legend": legend()},
        cells_near_zero=[first_in_words(audit, [near]), near.below_in_words()],
        days=days_of(audit),
        epsilon=epsilon_text(epsilon),
        promised=[promise_to(people, epsilon) for people in (1, 2, 5, 10)],
        sql={
            "name": audit["release"],
            "period": literal(audit["period"]),
            "box": example_box(domain),
            "file": literal("histogram.parquet"),
        },
        rendered=rendered_by(audit),
        hidden=hidden_in_words(limit) if (limit := limit_of(audit)) is not None else "",
        **comparison_facts(audit),
        cover=cover_of(audit, around, None if local else answer_box(estimate, {})),
        **(_local_facts(estimate, audit) if local else _central_facts(estimate, audit, rows)),
    )


def amount_facts(estimate: Estimate, audit: Mapping[str, Any], rows: Rows) -> dict[str, Any] | None:
    """Sum and mean of an amount over all rows, and what is known of amounts beyond its ends; None without an amount.

    There is no interval at an end: what lies there are parts of rows.
    """
    if estimate.domain.amount is None:
        return None
    ((_, figures),) = figures_by(estimate)
    limit = limit_of(audit)
    hidden = limit is not None and figures.rows.value < limit
    table = [
        (name, *(shown_number(number, *places) for number in (one.value, one.lower, one.upper)))
        for name, one in ((gettext("sum"), figures.sum), (gettext("mean"), figures.mean))
        if not math.isnan(one.value) and not hidden
        for places in [(0,)]
    ]
    cut = next((row for row in rows if row["statistic"] == "undeclared" and row["axis"] == figures.axis.name), None)
    seen = QualityTable(rows).rows_seen if cut is not None else 0
    return {
        "name": _position_name(figures.axis.name, audit),
        "unit": audit["amount"].get("measured_in", ""),
        "figures": table,
        "note": translate(figures.mean.note) if figures.mean.note and not hidden else "",
        "cut": None if cut is None else _with_ends(cut),
        "seen": seen,
    }


def _with_ends(row: Mapping[str, Any]) -> str:
    """A number of a quality table with its interval, none below 0."""
    number, low, high = (shown_number(max(0.0, float(row[name]))) for name in ("estimate", "ci_lower", "ci_upper"))
    return gettext("%(number)s (%(low)s to %(high)s, 95 %%)", number=number, low=low, high=high)


def rendered_by(audit: Mapping[str, Any]) -> str:
    """Which version rendered a page anew, in words; empty where it is the one that published the numbers."""
    here = version("dphist-pipeline")
    first = (audit.get("versions") or {}).get("dphist-pipeline", here)
    return "" if first == here else gettext("by dphist-pipeline %(version)s", version=here)


def legend() -> dict[str, str]:
    """The meaning of each word of reliability."""
    return {word: translate(meaning) for word, meaning in RELIABILITY.legend.items()}


def _range(low: str, high: str) -> str:
    return gettext("%(low)s to %(high)s", low=low, high=high)


def cover_of(audit: Mapping[str, Any], around: PublicationNeighbours, total: Answer | None) -> dict[str, Any]:
    """What the cover of a card shows; `total` is None where the number of reports is told in its place."""
    limit, before = limit_of(audit), around.before
    if limit is not None and total is not None and before is not None and before.total is not None:
        # Nothing is compared with a figure that is not shown.
        around = replace(
            around, is_alike=around.is_alike and min(HeadlineFigure.of(vars(total)).value, before.total) >= limit
        )
    return cover_facts(audit, around, total, total is not None and total_facts(total)["around_zero"] is not None)


def is_smoothed(estimate: Estimate) -> bool:
    """Whether estimates differ from the noisy counts that intervals come from."""
    return estimate.unbiased is None or not np.array_equal(estimate.unbiased.values, estimate.values)


def days_of(audit: Mapping[str, Any]) -> str:
    """The first and the last day of the period; empty if the audit does not say when the period ends."""
    if not (audit.get("period_start") and audit.get("period_end")):
        return ""
    first, after = (date.fromisoformat(audit[name][:10]) for name in ("period_start", "period_end"))
    return f"{first} to {after - timedelta(days=1)}" if after - first > timedelta(days=1) else str(first)


def promise_to(people: int, epsilon: Fraction) -> dict[str, str]:
    """What is promised to some people together, each of whom is promised epsilon."""
    together = epsilon * people
    low, high = posterior_odds(together)
    return {
        **{"people": str(people), "epsilon": epsilon_text(together), "ratio": likelihood_ratio(together)},
        **{"low": low, "high": high, "odds": _range(low, high)},
    }


def axis_facts(axis: Axis, audit: Mapping[str, Any]) -> dict[str, Any]:
    """What the card says of an axis, or of a level of one in a family; long lists of categories and bins are cut."""
    facts: dict[str, Any] = {"name": _position_name(axis.name, audit), "size": axis.size, "other": axis.other}
    facts["column"] = axis.name if facts["name"] != axis.name else ""
    if isinstance(axis, CategoricalAxis):
        pairs = zip(axis.values, axis.labels or axis.values, strict=True)
        return facts | {
            "kind": axis.kind,
            "named": [(value, label if label != value else "") for value, label in pairs][:MOST_NAMED],
            "more": max(0, len(axis.values) - MOST_NAMED),
            "levels": [(level, len(set(parents))) for level, parents in axis.levels.items()],
            **{"tidy": list(axis.tidy), "spellings": len(axis.spellings)},
        }
    if isinstance(axis, AmountAxis):
        amount = audit["amount"]
        ends = [f"{number_text(f'{end:,.15g}')} {amount.get('measured_in', '')}".rstrip() for end in axis.ends]
        worth = f"{amount['worth_of_part']:.2g} {amount.get('measured_in', '')}".rstrip()
        return facts | {"kind": axis.kind, "low": ends[0], "high": ends[1], "parts": amount["parts"], "worth": worth}
    few = axis.bins <= MOST_NAMED
    ends = [end_in_words(axis, edge) for edge in (axis.edges if few else (*axis.edges[:4], axis.edges[-1]))]
    widths = np.diff(axis.edges)
    return facts | {
        "kind": axis.kind,
        "bins": axis.bins,
        "ends": language().between.join(ends if few else [*ends[:4], "…", ends[-1]]),
        **{"first": ends[0], "last": ends[-1]},
        "equal": axis.bins > 1 and bool(np.allclose(widths, widths[0])),
        **{"closed": axis.closed, "below": axis.below, "above": axis.above},
    }


def _position_name(name: str, audit: Mapping[str, Any]) -> str:
    return str((audit.get("axis_labels") or {}).get(name) or name)


def example_box(domain: Domain) -> str:
    """A box about the first axes as an SQL struct, with ends and categories that the grid has."""
    boxes = []
    for axis in domain.axes[:ASKED_AXES]:
        if isinstance(axis, BinnedAxis):
            middle = axis.written(axis.edges[axis.bins // 2])
            boxes.append(f"[{literal(middle) if axis.reads == 'days' else middle}, NULL]")
        elif isinstance(axis, CategoricalAxis):
            boxes.append(literal(axis.values[0]))
    return "{" + ", ".join(f"{literal(axis.name)}: {box}" for axis, box in zip(domain.axes, boxes, strict=False)) + "}"


def _central_facts(estimate: Estimate, audit: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    unbiased = estimate.unbiased
    if isinstance(unbiased, ReportedCells):
        raise TypeError("these cells were estimated from reports: their card is that of the local model")
    mechanism, fields = mechanism_card(str(audit["mechanism"]))
    total, quality = total_facts(answer_box(estimate, {}), limit_of(audit)), quality_facts([estimate], rows, audit)
    facts = {
        "by_row": audit["privacy_unit"] == "row",
        "substitute": audit["neighbours"] == "substitute",
        "charges": charges_in_words(audit),
        "of_units": list(in_words(audit.get("axes", ())).items()),
        "derived": [(one.column, one.says) for one in derived_columns(audit.get("derive", ()))],
        "kept": [one.says for one in conditions(audit.get("keep", ()))],
        **{"mechanism": mechanism, "fields": fields, "reach": None},
        **total,
        "quality": quality,
        "left_out_units": QualityTable(rows).left_out_in_words(audit),
        "covers": cover_of_total(total, estimate, quality, audit),
        **_findings(estimate),
    }
    if unbiased is None:
        return facts
    reach, deviation = unbiased.half_width_of_cell(), math.sqrt(unbiased.variance)
    # The interval of the total uses sums of groups too, where there are some: one page tells one error of one sum.
    of_groups = estimate.domain.cells if estimate.sums is not None and estimate.domain.cells > 1 else None
    return facts | {
        "reach": shown_number(reach),
        "deviation": shown_number(deviation),
        "least_good": shown_number(math.ceil(deviation / RELIABILITY.good)),
        "least_fair": shown_number(math.ceil(deviation / RELIABILITY.fair)),
        "reaches": [
            (what, whole(cells), str(facts["total_reach"]) if cells == of_groups else shown_number(width))
            for what, cells, width in _reaches(unbiased, estimate.domain.called(audit.get("axis_labels")))
            if cells < estimate.domain.cells or cells == 1 or facts["total_reach"]  # else sums of groups tell it, too
        ],
    }


def total_facts(total: Answer, limit: int | None = None) -> dict[str, str | None]:
    """The sum of all cells, and how far it may be from the true one or the ends of its interval; None if nothing tells.

    `around_zero` is its interval if that holds 0. A figure below `limit` is told as words, without its interval.
    """
    figure = HeadlineFigure.of(vars(total))
    if limit is not None and figure.value < limit and not figure.is_known:
        not_shown = gettext("not shown beside a figure below %(limit)s", limit=limit)
        ends = not_shown if figure.lower <= 0 else None
        return {
            "total": words_for(limit),
            "total_known": None,
            "total_reach": None,
            "total_ends": None,
            "around_zero": ends,
        }
    value, half, lower, upper = (
        None if number is None or math.isnan(number) else shown_number(number, figure.decimals)
        for number in (figure.value, figure.half, figure.lower, figure.upper)
    )
    ends = None if lower is None or upper is None or figure.is_known else _range(lower, upper)
    return {
        "total": value,
        "total_known": pgettext("reliability", "known") if figure.is_known else None,
        "total_reach": half,
        "total_ends": ends if figure.half is None else None,
        "around_zero": ends if figure.lower <= 0 else None,
    }


def cover_of_total(
    total: Mapping[str, str | None], estimate: Estimate, quality: Mapping[str, Any] | None, audit: Mapping[str, Any]
) -> list[str]:
    """What the error beside the total covers and what not, a sentence each."""
    if total["total_known"]:
        return [gettext("The total is a public figure, without noise.")]
    capped = quality["capped"] if quality else cap_in_words(audit, 1, None)
    is_measured_twice = estimate.sums is not None and estimate.unbiased is not None and estimate.cells > 1
    return covered_in_words(total["total_reach"], bool(total["total_ends"]), capped, is_measured_twice)


def _findings(estimate: Estimate) -> dict[str, Any]:
    """The findings of the mechanism, the largest parts first: name, words, part of the estimate, and size of its error.

    `unused` is the number of findings that have next to no part, which get no line.
    """
    used = [finding for finding in estimate.findings if finding.weight >= LEAST_PART] or list(estimate.findings[:1])
    findings = [
        (finding.name, finding.about, f"{100 * finding.weight:.0f} %", shown_number(math.sqrt(max(0.0, finding.error))))
        for finding in used[:MOST_NAMED]
    ]
    return {"findings": findings, "unused": len(estimate.findings) - len(findings)}


def quality_facts(tables: Sequence[Estimate], rows: Rows, audit: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the cap cut, in words and by axis, and whether nearly all rows failed; None without a quality table."""
    if all(row["statistic"] == "left_out" for row in rows):
        return None

    def counted(axis: str | None) -> Reals:
        table = next(table for table in tables if axis is None or axis in [known.name for known in table.domain.axes])
        return table.domain.sums_along(axis, table.values if table.unbiased is None else table.unbiased.values)

    table = QualityTable(rows)
    cuts_by_axis = table.cuts(counted)
    words = {
        axis.name: with_words(axis) or _bins_in_words(axis) for estimate in tables for axis in estimate.domain.axes
    }
    sections = [
        {
            "axis": _position_name(axis, audit),
            "rows": [_cut_in_words(cut, words.get(str(axis), {}), limit_of(audit)) for cut in outstanding[:MOST_NAMED]],
            "more": max(0, len(outstanding) - MOST_NAMED),
        }
        for axis, cuts in cuts_by_axis.items()
        if axis is not None and (outstanding := [cut for cut in cuts if cut.stands_out])
    ]
    return {
        "says": table.failed_nearly_all,
        "capped": cap_in_words(audit, table.rows_seen, *cuts_by_axis.get(None, [None])),
        "tables": sections,
        "cut": None in cuts_by_axis,
        "seen": table.rows_seen,
    }


def _bins_in_words(axis: Axis) -> dict[str, str]:
    """What each bin is called in the language of the page, by the English words that a quality table has."""
    with in_language(""):
        english = ReaderAxis(axis).labels
    return dict(zip(english, ReaderAxis(axis).labels, strict=True))


def _cut_in_words(cut: BoundingEffect, words: Mapping[str, str], limit: int | None) -> tuple[str, ...]:
    numbers = (shown_number(round(value)) for value in (cut.counted, cut.about, *cut.possible))
    rows, cut_off, lower, upper = numbers
    category = pgettext("category", "other") if cut.category is None else words.get(cut.category, cut.category)
    if limit is not None and min(cut.counted, cut.about) < limit:
        low, low_too = (value < limit for value in (cut.counted, cut.about))
        return category, words_for(limit) if low else rows, words_for(limit) if low_too else cut_off, "", ""
    return category, rows, cut_off, _range(lower, upper), cut.share_in_words


def charges_in_words(audit: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """For each charge of an audit of the central model its step, its epsilon, and the scale of its noise."""
    return [
        (charge["step"], epsilon_text(Fraction(charge["epsilon"])), _scale_text(charge["noise_scale"]))
        for charge in audit["charges"]
    ]


def _scale_text(scale: str | None) -> str:
    return (
        (whole(int(scale)) if scale.isdigit() else epsilon_text(Fraction(scale)))
        if scale
        else gettext("no noise: no budget was left for this step")
    )


def _reaches(unbiased: NoisyCells | NestedCells, domain: Domain) -> Iterator[tuple[str, int, float]]:
    """Sums that readers ask for, with their number of cells and half width: single cells up to all cells."""
    one = [np.zeros(1, dtype=np.int64)] * len(domain.axes)
    yield gettext("one cell"), 1, unbiased.half_width_of_cell()
    first = domain.axes[0].name
    for cells in (10, 100, 1000, 10_000):
        if isinstance(unbiased, NoisyCells) and cells < domain.cells:
            yield gettext("any cells chosen before looking"), cells, float(unbiased.half_width_of_cells(cells))
        elif isinstance(unbiased, NestedCells) and cells < domain.shape[0]:
            width = unbiased.half_width_of_box([np.arange(cells), *one[1:]])
            label = gettext(
                "the first %(number)s along %(axis)s, one cell of the others", number=whole(cells), axis=first
            )
            yield label, cells, width
    if len(domain.axes) > 1:
        for number, axis in enumerate(domain.axes):
            along = [*one[:number], np.arange(axis.size), *one[number + 1 :]]
            label = gettext("all of %(axis)s, one cell of the others", axis=axis.name)
            yield label, axis.size, unbiased.half_width_of_box(along)
    if domain.cells > 1:
        yield gettext("all cells"), domain.cells, unbiased.half_width_of_box([np.arange(size) for size in domain.shape])


def mechanism_card(mechanism: str) -> tuple[str, dict[str, str]]:
    """The first line of a mechanism's docstring without its name, and its fields; empty if it has no file."""
    file = _MECHANISMS / f"{mechanism}.py"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", mechanism) or not file.is_file():
        return "", {}
    head, _, rest = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")
    fields = re.findall(r"^([A-Z][a-z]+):\s+(.*(?:\n(?![A-Z][a-z]+:\s).*\S.*)*)", rest, re.MULTILINE)
    return head.partition(": ")[2], {name: " ".join(text.replace("`", "").split()) for name, text in fields}


def question_facts(audit: Mapping[str, Any]) -> dict[str, Any]:
    """What the contributors of a release of the local model were asked; see `local.publication`."""
    settings, reports = audit["settings"], audit["reports"]
    participation, accepted = Fraction(settings.get("participation", 1)), int(reports["accepted"])
    report_epsilon, part_epsilon = (Fraction(settings[name]) for name in ("report_epsilon", "part_epsilon"))
    values, intervals, summed = (
        int(audit["max_rows_per_unit"]),
        int(settings["intervals"]),
        settings["values"] == "summed",
    )
    chances = odds(settings["encoding"], intervals, part_epsilon)
    return {
        **{"values_each": values, "summed": summed, "intervals": intervals, "encoding": settings["encoding"]},
        **{
            "participation": participation,
            "chance": epsilon_text(participation),
            "sampled": participation < 1,
            "nonnegative": bool(settings["nonnegative"]),
        },
        **{"report_epsilon": epsilon_text(report_epsilon), "part_epsilon": epsilon_text(part_epsilon)},
        **{"parted": part_epsilon != report_epsilon, "shared": audit["mechanism"] in ("chp", "sampled")},
        **{
            "accepted": accepted,
            "made": rough_number(accepted / float(participation)),
            "reported": int(reports["values"]),
        },
        "refused": [(reason, number) for reason, number in reports["refused"].items() if number],
        "contributors": None if participation < 1 else accepted // (1 if summed else values),
        **{"p": number_text(f"{chances.there:.6g}"), "q": number_text(f"{chances.elsewhere:.6g}")},
        **{"kept": percent(chances.there), "flipped": percent(chances.elsewhere)},
    }


def _local_facts(estimate: Estimate, audit: Mapping[str, Any]) -> dict[str, Any]:
    cells, question = estimate.unbiased, question_facts(audit)
    if not isinstance(cells, ReportedCells):
        raise TypeError("these cells were not estimated from reports: their card is that of the central model")
    size, law, none = cells.values.size, cells.law, np.zeros(cells.values.shape)
    one = cells.half_widths()
    empty = law.reach(cells.atoms, none)
    reported = question["reported"] / float(question["participation"])
    share = 100 * float(one.max()) / max(reported, 1)
    ranges = {gettext("1 interval"): one}
    for length in (length for length in LENGTHS if length < size):
        ranges[gettext("%(number)s neighbouring intervals", number=whole(length))] = reach_of_ranges(cells, length)
    if size > 1:
        ranges[gettext("all %(number)s intervals", number=whole(size))] = reach_of_ranges(cells, size)
    return {
        "asked": question,
        "reach": pgettext("number", " to ").join(
            dict.fromkeys(shown_number(float(end)) for end in (one.min(), one.max()))
        ),
        "differs": shown_number(float(one.min())) != shown_number(float(one.max())),
        "reported": rough_number(reported) if question["sampled"] else shown_number(round(reported)),
        "share": number_text(f"{share:,.0f} %" if share >= 10 else f"{share:.2g} %"),
        "alike": not np.ptp(cells.atoms),
        "empty": shown_number(float(empty.min())),
        "near_zero": int(np.count_nonzero(cells.values <= one)),
        "reaches": [
            (label, *(shown_number(float(end)) for end in (widths.min(), np.median(widths), widths.max())))
            for label, widths in ranges.items()
        ],
    }


def reach_of_ranges(cells: ReportedCells, length: int) -> Reals:
    """The 95 % half width of the estimate of every range of `length` neighbouring intervals, in order.

    Args:
        length: number of intervals in a range, from 1 to all cells.

    Returns:
        In records, shape (cells - length + 1,).
    """
    atoms, counts = (
        running[length:] - running[:-length]
        for running in (np.cumsum([0, *values.tolist()]) for values in (cells.atoms, cells.values))
    )
    return cells.law.reach(atoms, counts)


def comparison_facts(audit: Mapping[str, Any]) -> dict[str, Any]:
    """What a card tells of sudden changes by its audit: `compared`, perhaps empty, and whether `compared_spoken`.

    An audit has the sentence in English, with the sums that changed. It is said again from its parts; a sentence with
    any other part, such as one of another version, stays English.
    """
    says = compared_in_words(audit)
    if language() is ENGLISH or not says:
        return {"compared": says, "compared_spoken": True}
    spoken = _translated_sentence(says, (audit.get("compared") or {}).get("changes", ()))
    return {"compared": spoken or says, "compared_spoken": bool(spoken)}


def _translated_sentence(says: str, changes: Any) -> str:
    """The sentence in the language of the page; empty if it is not made of the parts that are known."""
    parts = _ALSO.fullmatch(says)
    body, others = (parts[1], parts[2]) if parts else (says, None)
    names = dict(pair for change in changes for pair in _names_of_change(change))
    # The longest first: a value may begin as another one.
    for name in sorted((name for name in names if body.startswith(f"{name} ")), key=len, reverse=True):
        went = _WENT.fullmatch(body[len(name) :])
        if went is None:
            continue
        more = gettext(" (and %(number)s more of %(axis)s)", number=went[4], axis=went[5]) if went[4] else ""
        sentence = _with_question(f"{_change_in_words(names[name], went[1], went[2], went[3])}{more}", went[6], names)
        axes = [] if others is None else re.split(r", | and of ", others)
        also = gettext("; values of %(axes)s changed, too", axes=comma_list(axes)) if axes else ""
        return f"{sentence}{also}" if sentence else ""
    return ""


def _names_of_change(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the English sentence may call a sum, with what this language calls it."""
    axis, value = str(change.get("axis", "")), str(change.get("value", ""))
    if not axis:
        yield "the total", gettext("the total")
    elif value == OTHER:
        yield f"{OTHER} of {axis}", gettext("other of %(axis)s", axis=axis)
    else:
        yield value, value
        yield f"{axis} {value}", f"{axis} {value}"


def _change_in_words(name: str, word: str, before: str | None, now: str | None) -> str:
    if before is None or now is None:
        return gettext("%(name)s fell", name=name) if word == "fell" else gettext("%(name)s rose", name=name)
    words = {"name": name, "before": number_text(before), "now": number_text(now)}
    if word == "fell":
        return gettext("%(name)s fell from about %(before)s to about %(now)s", **words)
    return gettext("%(name)s rose from about %(before)s to about %(now)s", **words)


def _with_question(change: str, tail: str, names: Mapping[str, str]) -> str:
    """What changed with the question about it, which ends the sentence; empty if it is none that is known."""
    questions = {
        ": was anything delivered twice?": gettext(": was anything delivered twice?"),
        ": are all records there?": gettext(": are all records there?"),
        ": was a code renamed?": gettext(": was a code renamed?"),
        ", and the total by as much: was a code renamed?": gettext(", and the total by as much: was a code renamed?"),
        ": is there a new code, or a wrong one?": gettext(": is there a new code, or a wrong one?"),
    }
    if renamed := _WHILE.fullmatch(tail):
        rose = pgettext("category", "other") if renamed[1] == OTHER else names.get(renamed[1], renamed[1])
        return gettext("%(change)s while %(name)s rose by as much: was a code renamed?", change=change, name=rose)
    return f"{change}{questions[tail]}" if tail in questions else ""

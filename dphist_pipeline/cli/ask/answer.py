"""The command `dphist answer`: a count, or a table of other answers, from a publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from dphist_pipeline.base.domain import with_words
from dphist_pipeline.base.shown_below import commands_hide, limit_of, words_for
from dphist_pipeline.cli.ask._answer_rows import (
    MARKS,
    AnswerOptions,
    answer_as_json,
    answer_rows,
    bins_in_words,
    box_where,
    cell_text,
    mark_of,
    names_of,
    print_rows,
    print_rows_as_json,
    print_which,
)
from dphist_pipeline.cli.options import DecimalsOption, JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_table
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    from dphist_pipeline.answering.asking import Box, Publication
    from dphist_pipeline.answering.pivots import Pivot
    from dphist_pipeline.estimates.answers import Answer


class ChangesOfPeriods(TyperCommand):
    """A command whose `--changes` may stand alone: two periods follow it, or none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Gives `--changes` an empty value where no period follows; a release's name begins with a letter."""
        words = []
        for arg, after in zip(args, [*args[1:], ""], strict=True):
            words += [arg, ""] if arg == "--changes" and not after[:1].isdigit() else [arg]
        return super().parse_args(ctx, words)


def answer(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The name of a published release, or of a family of tables.")
    ],
    where: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Conditions on axes, joined by `and`: \"age in [60, 80) and ward = 'surgery'\"; also !=, <, >=, "
            "`in ('a', 'b')`, and `or` on one axis. [60, 80) is from 60 to below 80: a square bracket takes the end "
            'in, a round one leaves it out. Days: "day in [2026-03-02, 2026-03-09)". All cells without it.',
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(
            metavar="AXIS,AXIS",
            help="A table by these axes or levels, instead of one number; with --share, --ratio, --changes or "
            "--compare, and with --mean or --sum of an amount, a row for each value, with its own 95 % interval.",
        ),
    ] = "",
    pivot: Annotated[
        str, typer.Option(metavar="AXIS", help="With --by: the categories of this axis as columns, and totals.")
    ] = "",
    quantile: Annotated[
        str,
        typer.Option(
            metavar="AXIS=Q,Q", help='Quantiles of a binned axis: "age=0.25,0.5"; their intervals hold together.'
        ),
    ] = "",
    mean: Annotated[
        str, typer.Option(metavar="AXIS", help="The mean of a binned axis, or of an amount, over the rows.")
    ] = "",
    total: Annotated[
        str, typer.Option("--sum", metavar="AXIS", help="The sum of a binned axis, or of an amount, over the rows.")
    ] = "",
    low: Annotated[str | None, typer.Option(metavar="END", help="No value lies below it; for means and sums.")] = None,
    high: Annotated[str | None, typer.Option(metavar="END", help="No value lies above it; for means and sums.")] = None,
    ranks: Annotated[
        str, typer.Option(metavar="AXIS", help="Ranks by counts, the largest first; all intervals hold together.")
    ] = "",
    difference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Subtracts the count where this holds; written as --where.")
    ] = None,
    ratio: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Divides by the count where this holds, which need not be a part; written as --where. Surgery for "
            "each row of medicine: --where \"ward = 'surgery'\" --ratio \"ward = 'medicine'\".",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The share of the rows for which this holds, from 0 to 1: of all rows, or of those of --where. "
            'Surgery among the old: --share "ward = \'surgery\'" --where "age >= 60"; with --by, within each value.',
        ),
    ] = None,
    compare: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="Subtracts the count in this release, of the same account and period. "
            "(`dphist compare` compares mechanisms.)",
        ),
    ] = "",
    changes: Annotated[
        str | None,
        typer.Option(
            "--changes",
            metavar="[DAY,DAY]",
            help="The change from each period to the next one; with two periods, from the first to the second.",
        ),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            metavar="DAY,DAY", help="All periods from the first to the last together, as --period names them."
        ),
    ] = "",
    with_chance: Annotated[
        bool,
        typer.Option(
            "--with-chance",
            help="Intervals cover chance, too, as if each count varied as Poisson's do. For --difference, --ratio, "
            "--share, --mean, --sum, --ranks, --changes and --population.",
        ),
    ] = False,
    per: Annotated[
        float, typer.Option(metavar="NUMBER", help="With --population: people that a rate is for.")
    ] = 100_000,
    population: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or Parquet with the axes of --by and `population`: rates, not counts."),
    ] = None,
    standardise: Annotated[
        str,
        typer.Option(
            metavar="AXIS", help="With --population: rates standardised over this axis, by its column `standard`."
        ),
    ] = "",
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest.")
    ] = None,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimates a count, share, mean or change from a publication, with its 95 % interval. Spends nothing."""
    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.answering.best_table import best_of_folder
    from dphist_pipeline.answering.published import is_family, latest_revision

    box = box_where(where)
    public = Store.public_folder(store)
    question = AnswerOptions(
        by=by,
        quantile=quantile,
        mean=mean,
        sum=total,
        ranks=ranks,
        difference=difference,
        ratio=ratio,
        share=share,
        over=over,
        changes=changes is not None,
        periods=changes or "",
        low=low,
        high=high,
        per=per,
        population=population,
        standardise=standardise,
        compare=compare,
        pivot=pivot,
        with_chance=with_chance,
    )
    # A question of several periods is asked of one table, which a family's latest period chooses.
    one_period = question.question not in ("changes", "over", "compare")
    folder = latest_revision(public, release, period, family=True)
    if one_period or is_family(folder):
        publication = best_of_folder(folder, question.axes, question.boxes(box))
    else:
        publication = Publication.read(folder)
    release = release if one_period else str(publication.audit["release"])
    facts = {"release": release, **{name: publication.audit[name] for name in ("period", "revision")}, "where": where}
    period = str(facts["period"])
    other: Publication | None
    if changes:
        first, second = _two_periods(changes)
        publication = Publication.read(latest_revision(public, release, second))
        other = Publication.read(latest_revision(public, release, first))
    else:
        other = Publication.read(latest_revision(public, compare, period)) if compare else None
    if question.pivot:
        print_pivot(
            publication, {**facts, **question.facts}, answer_pivot(publication, question, box), as_json, decimals
        )
        return
    if question.question:
        publication = replace(publication, with_chance=with_chance)
        rows = answer_rows(publication, question, box, other)
        if as_json:
            print_rows_as_json({**facts, **question.facts}, rows)
        else:
            print_rows(publication, question, rows, decimals, other)
        return
    count = publication.answer(box)
    if as_json:
        print_json({**facts, **answer_as_json(count), "reliability": count.reliability or None})
        return
    which = f"{release}, period {facts['period']}, revision {facts['revision']}"
    _print_count(publication.audit, count, which, decimals)


def _print_count(audit: Mapping[str, Any], count: Answer, which: str, decimals: int | None) -> None:
    from dphist_pipeline.base.shown_below import commands_hide, limit_of
    from dphist_pipeline.publishing.headline_figures import HeadlineFigure

    unit, true = _unit_in_words(audit)
    cells = "1 cell" if count.cells == 1 else f"{count.cells:,} cells"
    number = HeadlineFigure.of(vars(count), decimals, limit_of(audit))
    how = "known" if number.is_known else "estimated"
    out.print(f"[bold]{number.figure(number.value)}[/] {escape(unit)}, {how} over {cells}: {which}")
    if number.limit is not None and number.hides:
        out.print(f"  {commands_hide(number.limit)}")
    elif count.basis not in ("noise_only", "known"):
        out.print(f"  95 % interval of the {true}: {number.text(count.ci_lower)} to {number.text(count.ci_upper)}")
        estimate, unbiased = number.figure(count.estimate), number.figure(count.unbiased)
        if estimate != unbiased and number.is_unbiased:
            out.print(f"  This is the unbiased sum; the cells as the mechanism smoothed them add up to {estimate}.")
        elif estimate != unbiased:
            out.print(f"  The interval belongs to the unbiased estimate, {unbiased}.")
        by = "noise" if count.judged_error == count.noise_error else "error, by the width of the interval,"
        out.print(f"  Reliability: {count.reliability}, the {by} is {_share_of(count)} of the count")
    if count.note:
        out.print(f"  {escape(count.note)}")
    if "reports" in audit:
        accepted = audit["reports"]["accepted"]
        out.print(f"  Estimated from {accepted:,} reports; an estimate may exceed their number.")


def _two_periods(option: str) -> tuple[str, str]:
    days = [day.strip() for day in option.split(",")]
    if len(days) != 2 or not all(days):
        raise typer.BadParameter("takes two periods, as in 2026-03-02,2026-03-09, or none", param_hint="--changes")
    return days[0], days[1]


def _unit_in_words(audit: Mapping[str, Any]) -> tuple[str, str]:
    """What readers call the unit of the estimate, and the number that the interval holds; only rows are bounded."""
    from dphist_pipeline.base.counted_words import counted_words
    from dphist_pipeline.publishing.formatting import visible

    if audit.get("model") != "local":
        return visible(counted_words(audit) or "records"), "true (bounded) count"
    return "contributors" if audit["max_rows_per_unit"] == 1 else "values of contributors", "true number"


def _share_of(count: Answer) -> str:
    """The error that reliability judges, in percent of the count."""
    error = count.judged_error
    if error > count.unbiased:
        return "more than 100 %"
    percent = 100 * error / count.unbiased
    return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"


def answer_pivot(publication: Publication, asked: AnswerOptions, box: Box) -> Pivot:
    """The pivot that was asked for.

    Raises:
        QuestionRefused: another question was asked, too, or see `pivots.pivot`.
    """
    from dphist_pipeline.answering.pivots import Pivot
    from dphist_pipeline.estimates.chosen_cells import QuestionRefused

    if asked.question != "by":
        raise QuestionRefused("", "--pivot goes with --by, as in --by county --pivot ward")
    return Pivot.of(publication, names_of(asked.by), asked.pivot, box)


def print_pivot(
    publication: Publication, facts: Mapping[str, Any], pivot: Pivot, as_json: bool, decimals: int | None = None
) -> None:
    """Prints a pivot, each number with its 95 % interval.

    Columns that do not fit beside each other on the terminal stand below, with the rows' names again.
    """
    if as_json:
        print_rows_as_json({**facts, "columns": list(pivot.heads)}, pivot.rows())
        return
    rows = bins_in_words(publication, pivot.keys)
    names = list(rows[0])
    keys = [tuple(cell_text(key, name, []) for name in names) for key in rows]
    keys.append(("total", *[""] * (len(names) - 1)))
    limit = limit_of(publication.audit)
    columns = [
        [_answer_text(cells.get(head), decimals, limit) for cells in (*pivot.answers, pivot.totals)]
        for head in pivot.heads
    ]
    # What the categories of the pivoted axis are called; those of a level have no other words.
    pivoted = [axis for axis in publication.domain.axes if axis.name == facts["pivot"]]
    words = with_words(pivoted[0]) if pivoted else {}
    lines = [(*key, *cells) for key, *cells in zip(keys, *columns, strict=True)]
    print_table([*names, *(words.get(head, head) for head in pivot.heads)], lines, keys=len(names))
    print_which(publication)
    reliability = {answer.get("reliability") for cells in pivot.answers for answer in cells.values()}
    from dphist_pipeline.answering.quality_tables import PublishedQuality
    from dphist_pipeline.estimates.reliability import RELIABILITY

    for word in (word for word in MARKS if word in reliability):
        out.print(f"{MARKS[word].strip()} {word}: {RELIABILITY.legend[word]}")
    cell_texts = [text for texts in columns for text in texts]
    if any("±" in text for text in cell_texts):
        out.print(
            "± half of the 95 % interval of a sum of cells, whose middle is the unbiased sum; do not add these up."
        )
    if any(" to " in text for text in cell_texts):
        out.print("(… to …) the 95 % interval of a single cell, or one that does not have its number in the middle.")
    if limit is not None and any(words_for(limit) in text for text in cell_texts):
        out.print(commands_hide(limit))
    if capped := PublishedQuality(publication.folder, publication.audit).cap_in_words():
        out.print(escape(capped))


def _answer_text(answer: Mapping[str, Any] | None, decimals: int | None, limit: int | None) -> str:
    if answer is None:
        return ""
    from dphist_pipeline.publishing.headline_figures import HeadlineFigure

    return f"{HeadlineFigure.of(answer, decimals, limit)}{mark_of(answer, 'estimate')}"

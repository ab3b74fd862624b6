"""The command `dphist quality`: what a publication says of the rows behind its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.base.shown_below import commands_hide, limit_of, words_for
from dphist_pipeline.cli.options import DecimalsOption, JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_lines, print_table
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    from dphist_pipeline.estimates.row_quality import BoundingEffect

MOST_ROWS = 60  # of a table in a terminal
TOGETHER = "95 %, all together"
BOUNDED = (
    "The upper end for {axes} is what the published counts allow, by `other` or by the rows dropped, and with what the "
    "cap cuts."
)
MISFILED = "in this period's files, and of a period that does not read them: counted in none"
TITLES = {"rows": "rows by where they fell", "units": "units by the rows they hold"}


def quality(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The name of a published release, or of a family of tables.")
    ],
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest.")
    ] = None,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shows what the bound cut and which values failed. Spends nothing.

    Only for releases whose spec declares `quality`: every number has noise
    that a share of their epsilon paid for, and a 95 % interval.
    """
    from dphist_pipeline.answering.published import latest_revision
    from dphist_pipeline.answering.quality_tables import PublishedQuality
    from dphist_pipeline.base.domain import with_words
    from dphist_pipeline.spec.axes import domain_of

    folder = latest_revision(Store.public_folder(store), release, period, family=True)
    quality = PublishedQuality.read(folder)
    audit, rows, cuts_by_axis, most = quality.audit, quality.rows, quality.cuts(), quality.most_failed()
    says = quality.table.sentences(audit, cuts_by_axis)
    if as_json:
        facts = {
            name: audit[name]
            for name in ("release", "period", "revision", "max_rows_per_unit", "quality")
            if name in audit
        }
        print_json({**facts, "says": says, "rows": rows})
        return
    texts = _QualityText(limit_of(audit) or 0, decimals)
    out.print(f"[bold]{release}[/], period {audit['period']}, revision {audit['revision']}")
    for sentence in says:
        out.print(f"  {escape(sentence)}")
    left_out = []
    for name, title in TITLES.items():
        standing = quality.table.numbers(name, f"numbers of {title}", most, texts.limit)
        if standing is None:
            left_out.append(title)
        else:
            _print_numbers(title, *standing, texts)
    _print_failures(quality.table.failures(most, texts.limit), most, texts)
    misfiled, sentence = quality.table.misfiled_rows(texts.limit)
    if misfiled:
        print_table(["rows", "estimate", TOGETHER], [(MISFILED, *texts.of(row)) for row in misfiled])
    print_lines(filter(None, [sentence]))
    words = {axis.name: with_words(axis) for axis in domain_of(audit["axes"]).axes}
    for axis, cuts in cuts_by_axis.items():
        lines = [texts.of_cut(cut, words.get(str(axis), {})) for cut in cuts if cut.stands_out]
        if axis is not None and lines:
            print_table([axis, "counted", "cut", TOGETHER, "share cut"], lines)
    if left_out:
        reason = "their intervals are wider than the count that they speak of"
        out.print(f"Not shown, for {reason}: {escape('; '.join(left_out))}. --json shows all")
    if texts.limit:
        out.print(commands_hide(texts.limit))


def _print_failures(
    standing: tuple[Sequence[Mapping[str, Any]], str], most: Mapping[str | None, float], numbers: _QualityText
) -> None:
    """Prints the missing and undeclared values that stand out, and the sentence on the others."""
    failed, sentence = standing
    means = {"unparsed": "is missing or does not parse", "undeclared": "is not declared"}
    if failed:
        header = ["axis", "rows whose value", "estimate", TOGETHER]
        print_table(header, [(row["axis"], means[row["statistic"]], *numbers.of(row)) for row in failed])
        if bounded := [row["axis"] for row in failed if row["ci_upper"] == most.get(row["axis"])]:
            axes = " and ".join(dict.fromkeys(bounded))
            out.print(f"  {escape(BOUNDED.format(axes=axes))}")
    print_lines(filter(None, [sentence]))


def _print_numbers(title: str, rows: Sequence[Mapping[str, Any]], sentence: str, numbers: _QualityText) -> None:
    if rows:
        lines = [(row["category"], *numbers.of(row)) for row in rows[:MOST_ROWS]]
        print_table([title, "estimate", TOGETHER], lines)
    if more := len(rows[MOST_ROWS:]):
        out.print(f"… and {more:,} more row{'s' if more > 1 else ''}: --json shows all")
    print_lines(filter(None, [sentence]))


@dataclass(frozen=True)
class _QualityText:
    """How numbers are told at a terminal; figures below `limit` as words, without their interval, 0 for none."""

    limit: int
    decimals: int | None

    def of(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """A number of the quality table, and its interval."""
        if row["estimate"] < self.limit:
            return words_for(self.limit), ""
        estimate, lower, upper = self._texts((row["estimate"], row["ci_lower"], row["ci_upper"]), row)
        return estimate, f"{lower} to {upper}"

    def of_cut(self, cut: BoundingEffect, words: Mapping[str, str]) -> tuple[str, ...]:
        """A category with its rows counted and cut, the interval and the share of the latter."""
        rows, about, lower, upper = self._texts((cut.counted, cut.about, *cut.possible), vars(cut))
        category = "other" if cut.category is None else words.get(cut.category, cut.category)
        if min(cut.counted, cut.about) < self.limit:
            few = words_for(self.limit)
            return (
                category,
                few if cut.counted < self.limit else rows,
                few if cut.about < self.limit else about,
                "",
                "",
            )
        return category, rows, about, f"{lower} to {upper}", cut.share_in_words

    def _texts(self, numbers: Sequence[float], interval: Mapping[str, Any]) -> list[str]:
        from dphist_pipeline.publishing.formatting import in_decimals
        from dphist_pipeline.publishing.headline_figures import HeadlineFigure

        places = HeadlineFigure.decimals_justified(interval) if self.decimals is None else self.decimals
        return [in_decimals(number, places) for number in numbers]

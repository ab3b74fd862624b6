"""The command `dphist quality`: what a publication says of the rows behind its counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import DecimalsOption, JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_lines, print_table
from dphist_pipeline.releasing.public_folder import public_folder

if TYPE_CHECKING:
    from dphist_pipeline.estimates.row_quality import Cut

MOST_ROWS = 60  # of a table in a terminal
TOGETHER = "95 %, all together"
BOUNDED = (
    "The upper end for {axes} is what the published counts allow, by `other` or by the rows dropped, and with what the "
    "cap cuts."
)
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
    from dphist_pipeline.answering.quality_tables import in_other, published_cuts, published_most, read_quality
    from dphist_pipeline.domain import with_words
    from dphist_pipeline.estimates.row_quality import failures, sentences, standing_out, tells
    from dphist_pipeline.spec.axes import domain_of

    folder = latest_revision(public_folder(store), release, period, family=True)
    audit, rows = read_quality(folder)
    found, most = published_cuts(folder, audit, rows), published_most(folder, audit, rows)
    says = sentences(audit, rows, found)
    if as_json:
        named = {name: audit[name] for name in ("release", "period", "revision", "max_rows_per_unit", "quality")}
        print_json({**named, "says": says, "rows": rows})
        return
    out.print(f"[bold]{release}[/], period {audit['period']}, revision {audit['revision']}")
    for sentence in says:
        out.print(f"  {escape(sentence)}")
    left_out = []
    for name, title in TITLES.items():
        numbers = [row for row in rows if row["statistic"] == name]
        if tells(numbers, sum(row["estimate"] for row in numbers)):
            tops = [most.get(None, math.inf) if in_other(row) else math.inf for row in numbers]
            _print_numbers(title, *standing_out(numbers, len(numbers), f"numbers of {title}", name, tops), decimals)
        else:
            left_out.append(title)
    failed, others = failures(rows, most)
    means = {"unparsed": "is missing or does not parse", "undeclared": "is not declared"}
    if failed:
        header = ["axis", "rows whose value", "estimate", TOGETHER]
        print_table(header, [(row["axis"], means[row["statistic"]], *_numbers(row, decimals)) for row in failed])
        if bounded := [row["axis"] for row in failed if row["ci_upper"] == most.get(row["axis"])]:
            axes = " and ".join(dict.fromkeys(bounded))
            out.print(f"  {escape(BOUNDED.format(axes=axes))}")
    print_lines(filter(None, [others]))
    words = {axis.name: with_words(axis) for axis in domain_of(audit["axes"]).axes}
    for axis, cuts in found.items():
        shown = [cut for cut in cuts if cut.stands_out]
        if axis is not None and shown:
            lines = [_cut(cut, words.get(axis, {}), decimals) for cut in shown]
            print_table([axis, "counted", "cut", TOGETHER, "share cut"], lines)
    if left_out:
        why = "their intervals are wider than the count that they speak of"
        out.print(f"Not shown, for {why}: {escape('; '.join(left_out))}. --json shows all")


def _cut(cut: Cut, words: Mapping[str, str], decimals: int | None) -> tuple[str, ...]:
    counted, about, lower, upper = _texts((cut.counted, cut.about, *cut.possible), vars(cut), decimals)
    category = "other" if cut.category is None else words.get(cut.category, cut.category)
    return category, counted, about, f"{lower} to {upper}", cut.share_in_words


def _print_numbers(title: str, rows: Sequence[Mapping[str, Any]], others: str, decimals: int | None) -> None:
    """Prints the numbers that stand out, and the sentence on the others."""
    if rows:
        lines = [(row["category"], *_numbers(row, decimals)) for row in rows[:MOST_ROWS]]
        print_table([title, "estimate", TOGETHER], lines)
    if more := len(rows[MOST_ROWS:]):
        out.print(f"… and {more:,} more row{'s' if more > 1 else ''}: --json shows all")
    print_lines(filter(None, [others]))


def _numbers(row: Mapping[str, Any], decimals: int | None) -> tuple[str, str]:
    estimate, lower, upper = _texts((row["estimate"], row["ci_lower"], row["ci_upper"]), row, decimals)
    return estimate, f"{lower} to {upper}"


def _texts(numbers: Sequence[float], interval: Mapping[str, Any], decimals: int | None) -> list[str]:
    """Numbers with as many decimals as the noise behind an interval justifies, unless others were asked for."""
    from dphist_pipeline.publishing.formatting import in_decimals
    from dphist_pipeline.publishing.told_numbers import decimals_justified

    places = decimals_justified(interval) if decimals is None else decimals
    return [in_decimals(number, places) for number in numbers]

"""The command `dphist quality`: what a publication says of the rows behind its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_lines, print_table
from dphist_pipeline.releasing.public_folder import public_folder

if TYPE_CHECKING:
    from dphist_pipeline.estimates.row_quality import Cut

MOST_ROWS = 60  # of a table in a terminal
TOGETHER = "95 %, all together"
TITLES = {"rows": "rows by where they fell", "units": "units by the rows they hold"}


def quality(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a published release.")],
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shows what the bound cut and which values failed. Spends nothing.

    Only for releases whose spec declares `quality`: every number has noise
    that a share of their epsilon paid for, and a 95 % interval.
    """
    from dphist_pipeline.answering.published import latest_revision
    from dphist_pipeline.answering.quality_tables import published_cuts, read_quality
    from dphist_pipeline.estimates.row_quality import failures, sentences, tells

    folder = latest_revision(public_folder(store), release, period, family=True)
    audit, rows = read_quality(folder)
    found = published_cuts(folder, audit, rows)
    says = sentences(audit, rows, found)
    if as_json:
        named = {name: audit[name] for name in ("release", "period", "revision", "max_rows_per_unit", "quality")}
        print_json({**named, "says": says, "rows": rows})
        return
    out.print(f"[bold]{release}[/], period {audit['period']}, revision {audit['revision']}")
    for sentence in says:
        out.print(f"  {escape(sentence)}")
    left_out = []
    for name in ("rows", "units"):
        numbers = [row for row in rows if row["statistic"] == name]
        if tells(numbers, sum(row["estimate"] for row in numbers)):
            _print_numbers(TITLES[name], numbers)
        else:
            left_out.append(TITLES[name])
    failed, others = failures(rows)
    means = {"unparsed": "is missing or does not parse", "undeclared": "is not declared"}
    if failed:
        header = ["axis", "rows whose value", "estimate", TOGETHER]
        print_table(header, [(row["axis"], means[row["statistic"]], *_numbers(row)) for row in failed])
    print_lines(filter(None, [others]))
    for axis, cuts in found.items():
        shown = [cut for cut in cuts if cut.stands_out]
        if axis is not None and shown:
            print_table([axis, "counted", "cut", TOGETHER, "share cut"], [_cut(cut) for cut in shown])
    if left_out:
        why = "their intervals are wider than the count that they speak of"
        out.print(f"Not shown, for {why}: {escape('; '.join(left_out))}. --json shows all")


def _cut(cut: Cut) -> tuple[str, ...]:
    lower, upper = cut.possible
    numbers = f"{cut.counted:,.0f}", f"{cut.about:,.0f}", f"{lower:,.0f} to {upper:,.0f}"
    return cut.category or "other", *numbers, cut.share_in_words


def _print_numbers(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        print_table([title, "estimate", "95 %"], [(row["category"], *_numbers(row)) for row in rows[:MOST_ROWS]])
    if len(rows) > MOST_ROWS:
        out.print(f"… and {len(rows) - MOST_ROWS:,} more rows: --json shows all")


def _numbers(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['estimate']:,.0f}", f"{row['ci_lower']:,.0f} to {row['ci_upper']:,.0f}"

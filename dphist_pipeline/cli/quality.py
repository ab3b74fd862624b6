"""The command `dphist quality`: what a publication says of the rows behind its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_table
from dphist_pipeline.releasing.public_folder import public_folder

MOST_ROWS = 60  # of a table in a terminal
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
    from dphist_pipeline.answering.row_quality import published_cuts, read_quality, sentences, tells, those_that_tell

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
    told = {name: [row for row in rows if row["statistic"] == name] for name in ("rows", "units")}
    counts = {name: sum(row["estimate"] for row in those) for name, those in told.items()}
    left_out = [TITLES[name] for name, those in told.items() if not tells(those, counts[name])]
    for name, those in told.items():
        if TITLES[name] not in left_out:
            _print_numbers(TITLES[name], those)
    failures = [row for row in rows if row["statistic"] in ("unparsed", "undeclared")]
    header = ["axis", "rows whose value", "estimate", "95 %"]
    means = {"unparsed": "is missing or does not parse", "undeclared": "is not declared"}
    if tells(failures, counts["rows"]):
        print_table(header, [(row["axis"], means[row["statistic"]], *_numbers(row)) for row in failures])
    else:
        left_out.append("rows whose value failed")
    shown = those_that_tell(found)
    left_out += [f"what the cap cut, by {axis}" for axis in found if axis is not None and axis not in shown]
    for axis, cuts in shown.items():
        print_table(
            [axis, "counted", "cut", "95 %", "share cut"],
            [
                (
                    cut.category or "other",
                    f"{cut.counted:,.0f}",
                    f"{cut.cut:,.0f}",
                    "{:,.0f} to {:,.0f}".format(*cut.possible),
                    cut.share_in_words,
                )
                for cut in cuts
            ],
        )
    if left_out:
        why = "their intervals are wider than the count that they speak of"
        out.print(f"Not shown, for {why}: {escape('; '.join(left_out))}. --json shows all")


def _print_numbers(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        print_table([title, "estimate", "95 %"], [(row["category"], *_numbers(row)) for row in rows[:MOST_ROWS]])
    if len(rows) > MOST_ROWS:
        out.print(f"… and {len(rows) - MOST_ROWS:,} more rows: --json shows all")


def _numbers(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['estimate']:,.0f}", f"{row['ci_lower']:,.0f} to {row['ci_upper']:,.0f}"

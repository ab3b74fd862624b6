"""The command `dphist rehearse`: a whole release on invented records."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, SpecArgument
from dphist_pipeline.cli.terminal import (
    out,
    print_facts,
    print_json,
    print_table,
    progress,
)
from dphist_pipeline.ledger.ledger import as_text
from dphist_pipeline.releasing.allowing import load_spec
from dphist_pipeline.spec.model import ReleaseSpec

if TYPE_CHECKING:
    from dphist_pipeline.planning.rehearsal import Rehearsed

MOST_ROWS = 2_000_000


def rehearse(
    spec: SpecArgument,
    rows: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="Records to invent.")] = 10_000,
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day; may lie ahead. Default: the latest finished.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep records and store in this new folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Runs a whole release on invented records, in a store that is deleted.

    Shows the files, columns, rows and seconds of a release. Every number
    is invented: your source, store and ledger are not touched.
    """
    checked = load_spec(spec)
    from dphist_pipeline.planning.rehearsal import rehearse as rehearsed

    with progress(as_json) as step:
        found = rehearsed(checked, rows, period, keep, step)
    if as_json:
        print_json({"release": checked.release, **found.facts()})
    else:
        _print_rehearsed(checked, found)


def _print_rehearsed(spec: ReleaseSpec, found: Rehearsed) -> None:
    out.print("[bold yellow]Every number below is invented.[/] Your source was not opened; your store and")
    out.print("your ledger were not touched.\n")
    period = "" if found.period == "all" else f", period {found.period}"
    print_facts(
        {
            "release": f"{spec.release}{period}",
            "by": f"{spec.mechanism}, epsilon {as_text(spec.epsilon)}, paid from {spec.account}",
            "records": f"{found.records:,} invented, some null, undeclared or of other periods",
            "cells": f"{found.cells:,}",
        }
    )
    out.print("\n[bold]Steps[/]")
    print_table(["step", "seconds"], [(name, f"{seconds:.2f}") for name, seconds in found.seconds])
    out.print(f"\n[bold]Files that would be published[/] in {escape(found.folder)}/, and the catalogue")
    print_table(["file", "bytes"], [(Path(name).name, f"{size:,}") for name, size in found.files])
    out.print("\n[bold]histogram.parquet: its columns and first rows[/]")
    ordinals = ["1st row", "2nd row", "3rd row"]
    most = max(len(values) for _, _, values in found.columns)
    print_table(
        ["column", "type", *ordinals[:most]],
        [(name, kind, *map(_cell, values)) for name, kind, values in found.columns],
    )
    out.print("\n[bold]What readers could ask[/]")
    print_table(
        ["cells", "estimate", "95 % interval"],
        [
            (where, f"{estimate:,.0f}", "none" if low is None or high is None else f"{low:,.0f} to {high:,.0f}")
            for where, estimate, low, high in found.answers
        ],
    )
    out.print()
    for remark in found.remarks:
        out.print(f"{escape(remark)}.")
    if found.kept is not None:
        out.print(f"Kept in {escape(str(found.kept))}: ask it with")
        out.print(f"  dphist answer {spec.release} --store {escape(str(found.kept / 'store'))}")


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return value.isoformat() if isinstance(value, date | datetime) else str(value)

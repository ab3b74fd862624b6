"""The command `dphist rehearse`: a whole release on invented records."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, SpecArgument
from dphist_pipeline.cli.terminal import out, print_facts, print_json, print_lines, print_table, progress
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.spec_check import load_spec

if TYPE_CHECKING:
    from dphist_pipeline.workbench.planning.rehearsal import Rehearsal

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
    is invented: your source, store and ledger are not touched. Run `check`
    first: it alone compares the spec with the columns of your source.
    """
    checked = load_spec(spec)
    from dphist_pipeline.workbench.planning import rehearsal

    with progress(as_json) as step:
        rehearsed = rehearsal.rehearse(checked, rows, period, keep, step)
    if as_json:
        print_json({"release": checked.release, **asdict(rehearsed)})
    else:
        _print_rehearsal(checked, rehearsed)


def _print_rehearsal(spec: ReleaseSpec, result: Rehearsal) -> None:
    out.print("[bold yellow]Every number below is invented.[/] Your source was not opened; your store and")
    out.print("your ledger were not touched.\n")
    period = "" if result.period == "all" else f", period {result.period}"
    print_facts(
        {
            "release": f"{spec.release}{period}",
            "by": f"{spec.mechanism}, epsilon {as_text(spec.epsilon)}, paid from {spec.account}",
            "records": f"{result.records:,} invented, some null, undeclared or of other periods",
            "cells": f"{result.cells:,}",
        }
    )
    out.print("\n[bold]Steps[/]")
    print_table(["step", "seconds"], [(name, f"{seconds:.2f}") for name, seconds in result.seconds.items()])
    folder = escape(result.folder)
    out.print(f"\n[bold]Files that would be published[/] in {folder}/, and those that are made from them")
    print_table(["file", "bytes"], [(Path(name).name, f"{size:,}") for name, size in result.files.items()])
    out.print("\n[bold]histogram.parquet: its columns and first rows[/]")
    ordinals = ["1st row", "2nd row", "3rd row"][: max(map(len, result.first_rows.values()))]
    rows = [(name, kind, *map(_cell, result.first_rows[name])) for name, kind in result.columns.items()]
    print_table(["column", "type", *ordinals], rows)
    out.print("\n[bold]What readers could ask[/]")
    answers = [(str(answer["where"]), f"{answer['estimate']:,.0f}", _interval(answer)) for answer in result.answers]
    print_table(["cells", "estimate", "95 % interval"], answers)
    print_lines(["", *(f"{remark}." for remark in result.remarks)])
    if result.kept is not None:
        store = Path(result.kept) / "store"
        print_lines([f"Kept in {result.kept}: ask it with", f"  dphist answer {spec.release} --store {store}"])


def _interval(answer: dict[str, Any]) -> str:
    return "none" if answer["ci_lower"] is None else f"{answer['ci_lower']:,.0f} to {answer['ci_upper']:,.0f}"


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)

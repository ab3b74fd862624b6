"""The commands `dphist new`, `rehearse` and `forecast`: what to ask before spending. None of them opens the records."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.allowing import load_spec
from dphist_pipeline.cli_compare import EPSILON
from dphist_pipeline.cli_options import JsonOption, MechanismsOption, StoreOption
from dphist_pipeline.ledger.ledger import as_text
from dphist_pipeline.spec import words
from dphist_pipeline.spec.epsilon import parse_epsilon
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.terminal import out, print_facts, print_json, print_table, progress, progress_bar

if TYPE_CHECKING:
    from dphist_pipeline.planning.rehearsal import Rehearsed

MOST_ROWS = 2_000_000
MOST_RECORDS = 10**12
MOST_REPEATS = 1000

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The release's YAML file.")]


def new(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The table's name, a plain identifier.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Parquet or CSV, or a glob in quotes: names and types of its columns become axes. No value is read.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The spec to write. Default: RELEASE.yaml, here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Drafts a spec, with what a person must decide left open.

    Never overwrites a file. `dphist check` refuses the draft until every
    TO_DECIDE is replaced: bounds and categories never come from data.
    """
    name = _release_name(release)
    from dphist_pipeline.planning.columns import layout_of
    from dphist_pipeline.planning.drafting import draft, still_open, write_draft

    file = output or Path(f"{name}.yaml")
    layout = layout_of(source) if source is not None else None
    text = draft(name, file, source, layout)
    places = still_open(text, file)
    write_draft(text, file)
    if as_json:
        print_json({"spec": str(file), "columns": len(layout.columns) if layout else 0, "to_decide": places})
        return
    out.print(f"[green]Wrote a draft[/] to {escape(str(file))}")
    out.print(f"{len(places)} places are left to a person, each marked TO_DECIDE. See them with:")
    out.print(f"  dphist check {escape(str(file))}")


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


def forecast(
    spec: SpecArgument,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(EPSILON, metavar="NUMBERS", help="One or several, as in 1 0.1 1/3. Default: around the spec's."),
    ] = None,
    mechanism: MechanismsOption = None,
    stand_in: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Public counts of this grid, as `dphist compare` takes them, or the name of a published release.",
        ),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(metavar="RECORDS", help="Also the least epsilon at which a cell's error is at most this."),
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, max=MOST_RECORDS, help="Without a stand-in: about how many records to expect.")
    ] = 100_000,
    repeat: Annotated[
        int | None, typer.Option(min=1, max=MOST_REPEATS, help="Simulated releases of each. Default: 5; less if large.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecasts errors, and how long the account lasts, from the spec alone.

    Errors are root mean squared, in records. Exact where the law of the
    noise gives them; else simulated on a stand-in, or on declared shapes.
    """
    checked = load_spec(spec, store)
    if target_error is not None and not 0 < target_error < float("inf"):
        raise typer.BadParameter("--target-error takes a number of records above 0")
    from dphist_pipeline.planning.study import prepare

    epsilons = [parse_epsilon(text) for text in epsilon or []]
    study = prepare(checked, epsilons, mechanism or [], stand_in, target_error, records, repeat, store)
    with progress_bar(study.steps, as_json) as step:
        found = study.run(step)
    if as_json:
        print_json(found.facts())
        return
    for line in found.opening():
        out.print(escape(line))
    for title, header, rows in found.tables():
        out.print(f"\n[bold]{escape(title)}[/]")
        print_table(header, rows)
    out.print()
    for line in found.notes():
        out.print(escape(line))


def _release_name(written: str) -> str:
    try:
        return words.release_name(written)
    except ValueError as error:
        problem = str(error)
    raise typer.BadParameter(problem, param_hint="RELEASE")


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

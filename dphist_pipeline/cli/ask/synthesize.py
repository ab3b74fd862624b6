"""The command `dphist synthesize`: synthetic records from a publication."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_tables, progress_bar
from dphist_pipeline.releasing.store import Store

END = "AXIS=VALUE"


def synthesize(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The name of a published release, table or family of tables.")
    ],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Ends in .parquet.")],
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="How many. Default: as many as the release counts.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest.")
    ] = None,
    low: Annotated[
        list[str] | None,
        typer.Option(metavar=END, help="The lowest value of an axis with an open bin below. Repeat for more."),
    ] = None,
    high: Annotated[
        list[str] | None,
        typer.Option(metavar=END, help="The highest value of an axis with an open bin above. Repeat for more."),
    ] = None,
    whole_numbers: Annotated[
        str, typer.Option(metavar="AXIS,AXIS", help="Axes whose values are whole numbers, such as age in years.")
    ] = "",
    interpolate: Annotated[
        bool, typer.Option("--interpolate", help="Let density rise and fall within bins. Default: uniform.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="To draw the same records again. Default: fresh, and told.")
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Compare the sums of the records, or all tables of a family, with what was published."
        ),
    ] = False,
    test_on: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Public records: report how well a classifier does on them. Needs --target."),
    ] = None,
    target: Annotated[str, typer.Option(metavar="AXIS", help="What the classifier of --test-on predicts.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draws synthetic records from what was published. Spends nothing.

    The records have the axes as columns and follow the whole counts of the
    release (`dph_whole`): no row is a person. Of a family of tables, they
    have the axes of all tables. The file says in its metadata that it is
    synthetic, and names the release, its epsilon and its audit.
    """
    from dphist_pipeline.answering.published import is_family, latest_revision
    from dphist_pipeline.applications.synthetic_records import SyntheticRecords, check_output, write_synthetic
    from dphist_pipeline.applications.synthetic_report import (
        PublicTest,
        report_on,
    )
    from dphist_pipeline.applications.values_in_bins import Spread
    from dphist_pipeline.applications.whole_family import WholeFamily
    from dphist_pipeline.applications.whole_release import WholeRelease, application_refused

    if (test_on is None) != (not target):
        raise typer.BadParameter("--test-on FILE and --target AXIS go together")
    check_output(output, overwrite)
    folder = latest_revision(Store.public_folder(store), release, period, family=True)
    whole = WholeFamily.read(folder) if is_family(folder) else WholeRelease.read(folder)
    names = [name.strip() for name in whole_numbers.split(",") if name.strip()]
    spread = Spread(_ends("--low", low), _ends("--high", high), names, interpolate)
    records = SyntheticRecords.of(whole, rows, seed, spread)
    if isinstance(whole, WholeFamily):
        if test_on:
            raise application_refused("--test-on compares with one table; name a table of the family")
        test = None
    else:
        test = PublicTest.of(whole, test_on, target) if test_on else None
    with progress_bar(records.batches, as_json) as step:
        write_synthetic(records, output, overwrite, step)
    test_report = report_on(whole, output, test) if report or test else None
    if as_json:
        print_json({"file": str(output), **records.facts(), **(test_report.facts() if test_report else {})})
        return
    _print(whole, records, output)
    if test_report:
        print_tables(test_report.tables())


def _ends(option: str, values: list[str] | None) -> dict[str, Any]:
    """The declared ends by axis: numbers, or texts of days."""
    ends: dict[str, Any] = {}
    for text in values or []:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value or name in ends:
            raise typer.BadParameter(f"{option} takes an axis and its end once, as in age=120, not {text!r:.60}")
        try:
            ends[name] = float(value)
        except ValueError:
            ends[name] = value
    return ends


def _print(whole: Any, records: Any, output: Path) -> None:
    out.print(f"[green]✓[/] Written: {escape(str(output))}, {records.rows:,} synthetic records")
    out.print(f"  Drawn from {escape(whole.called)}, whose whole counts sum to {whole.total:,}; seed {records.seed}")
    if "tables" in whole.audit:
        out.print("  They are the records that the whole counts of all tables of the family count.")
    elif not whole.distances:
        out.print("  The release has no unbiased estimates, so no bands tell how near its sums are.")
    elif not whole.missed:
        out.print("  All sums that were fitted lie within their 95 % bands.")
    for band in whole.missed:
        out.print(
            f"  Not within the 95 % band: {band.outside:,} of {band.sums:,} sums by {escape(band.table)}, "
            f"up to {band.farthest:,.0f} from the unbiased estimate (band ± {band.half_width:,.0f})"
        )

"""The command `dphist export`: a release as a file for a spreadsheet, a statistical system or a portal of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import DecimalsOption, StoreOption
from dphist_pipeline.cli.terminal import out
from dphist_pipeline.releasing.store import Store


def export(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a published release.")],
    to: Annotated[
        Literal["csv", "xlsx", "sdmx-csv", "px", "dcat-ap", "healthdcat-ap"],
        typer.Option("--to", "--format", help="The format of the file."),
    ],
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: all periods.")
    ] = None,
    revision: Annotated[int | None, typer.Option(metavar="N", help="Default: the latest of each period.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Default: RELEASE_published with the ending of the format, here."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
) -> None:
    """Writes what was published into one file, with its errors. Spends nothing.

    One row for each cell, with labels, the 95 % interval, the standard
    error and a word for the reliability. A workbook has a sheet of notes;
    csv has a data package beside it, sdmx-csv its structure. px is for
    PxWeb. dcat-ap and healthdcat-ap are records for portals: they need the
    publisher and more in about.json.
    """
    from dphist_pipeline.answering.exported_rows import Exported
    from dphist_pipeline.answering.exports import ENDINGS, write_export

    exported = Exported.read(Store.public_folder(store), release, period, revision, decimals)
    file = output or Path(f"{release}_published{ENDINGS[to]}")
    files = ", ".join(map(str, write_export(exported, to, file, overwrite=overwrite)))
    periods = len(exported.publications)
    out.print(f"[green]✓[/] Written: {escape(files)}, {periods} period{'s' if periods != 1 else ''}")

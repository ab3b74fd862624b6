"""The command `dphist export`: a release as a file for a spreadsheet, a statistical system or a portal of data."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.answering.exports.formats import OWN, format_named, names, summary_of, write_export, written_whole
from dphist_pipeline.cli.options import DecimalsOption, StoreOption
from dphist_pipeline.cli.terminal import out
from dphist_pipeline.releasing.store import Store


def _known_format(name: str) -> str:
    if name not in names():
        raise typer.BadParameter(f"{name!r} is none of {', '.join(names())}.")
    return name


def export(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="The name of a published release, or of a family of tables: then a file each."
        ),
    ],
    to: Annotated[
        str,
        typer.Option("--to", "--format", metavar="FORMAT", callback=_known_format, help="One of the formats above."),
    ],
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: all periods.")
    ] = None,
    revision: Annotated[int | None, typer.Option(metavar="N", help="Default: the latest of each period.")] = None,
    figures: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Declared figures in place of cells: one, or all. As csv, xlsx, parquet, px or sdmx-csv.",
        ),
    ] = "",
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
    error and a word for the reliability, in one of these formats:
    """
    from dphist_pipeline.answering.exports.figure_exports import lines_to_export, write_figures
    from dphist_pipeline.answering.exports.rows import Exported
    from dphist_pipeline.answering.published import tables_of
    from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas

    if to in OWN:  # a format of another package may have frames of pandas
        arrow_without_pandas()
    public = Store.public_folder(store)
    if figures:
        file = output or Path(f"{release}_figures{format_named(to).ending}")
        folder, beside = public / release, format_named(to).beside if to == "sdmx-csv" else None
        lines = lines_to_export(folder, "" if figures == "all" else figures, period)
        paths = [file, *([file.with_suffix(beside[0])] if beside else [])]
        written_whole(lambda *drafts: write_figures(lines, to, folder, *drafts), *paths, overwrite=overwrite)
        written = escape(", ".join(map(str, paths)))
        out.print(f"[green]✓[/] Written: {written}, {len(lines)} line{'s' if len(lines) != 1 else ''}")
        return
    tables = tables_of(public, release)
    if output is not None and len(tables) > 1:
        tables = [release]  # one file cannot hold them: it is refused, with the tables to choose from
    for exported in [Exported.read(public, table, period, revision, decimals) for table in tables]:
        file = output or Path(f"{exported.audit['release']}_published{format_named(to).ending}")
        files = ", ".join(map(str, write_export(exported, to, file, overwrite=overwrite)))
        periods = len(exported.publications)
        out.print(f"[green]✓[/] Written: {escape(files)}, {periods} period{'s' if periods != 1 else ''}")


def _summary_line(name: str) -> str:
    return fill(f"{name}: {summary_of(name)}", 68, subsequent_indent="  ")


# Other packages may add formats, so help tells those that are installed.
export.__doc__ = f"{cleandoc(export.__doc__ or '')}\n\n" + "\n".join(map(_summary_line, names()))

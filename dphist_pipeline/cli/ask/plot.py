"""The command `dphist plot`: a picture of what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import DecimalsOption, StoreOption
from dphist_pipeline.cli.terminal import out
from dphist_pipeline.releasing.store import Store


def plot(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a published release.")],
    period: Annotated[str | None, typer.Option(metavar="DAY", help="Its first day. Default: the latest.")] = None,
    where: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Only these cells, as in `dphist answer`: \"age >= 60 and ward = 'surgery'\"."
        ),
    ] = "",
    over: Annotated[
        Literal["period"] | None,
        typer.Option(metavar="period", help="Their sum in each period of the release, in place of the cells of one."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ends in .svg or .html (with the numbers as a table)."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
) -> None:
    """Draws what was published, with its intervals. Spends nothing.

    One axis gives bars, two give squares of colour, more give small
    pictures beside each other. A condition that leaves one cell of an
    axis takes that axis out.
    """
    from dphist_pipeline.answering.grammar import parse_where
    from dphist_pipeline.answering.plot import check_output, write_picture
    from dphist_pipeline.answering.published import latest_revision

    file = output or Path(f"{release}.svg")
    check_output(file, overwrite)
    public = Store.public_folder(store)
    box = parse_where(where) if where.strip() else {}
    folder = latest_revision(public, release, period)
    if over is not None and period is not None:
        raise typer.BadParameter("--over period draws all periods: leave out --period")
    write_picture(folder, box, where, file, overwrite=overwrite, decimals=decimals, over_periods=over is not None)
    if over is not None:
        out.print(f"[green]✓[/] Drawn: {escape(str(file))} ({release}, by period)")
        return
    which = folder.parent.name.removeprefix("period=")
    when = "" if which == "all" else f", period {which}"
    out.print(f"[green]✓[/] Drawn: {escape(str(file))} ({release}{when}, {folder.name.replace('=', ' ')})")
    if (folder / "card.html").exists():
        out.print(f"  All about it: {escape(str(folder / 'card.html'))}")

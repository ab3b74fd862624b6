"""The command `dphist block`: blocks for record linkage, from the releases of two owners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json, print_table
from dphist_pipeline.releasing.store import Store


def block(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A published release of one owner.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="A published release of the other owner.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Rules and columns as JSON, for both owners.")],
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS,AXIS", help="Axes to cut into blocks. Repeat for one more rule by other axes."),
    ] = None,
    released_groups: Annotated[
        bool,
        typer.Option(
            "--released-groups",
            help="In place of --by: blocks are the groups of cells that RELEASE has published, as in DPCube's paper.",
        ),
    ] = False,
    other_store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The store of the other owner. Default: the same store.")
    ] = None,
    period: Annotated[str | None, typer.Option(metavar="DAY", help="Period of RELEASE. Default: the latest.")] = None,
    other_period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Period of OTHER. Default: the latest.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Cut until a rule has at most N expected pairs. Default: 100 a record."),
    ] = None,
    least: Annotated[
        int, typer.Option(metavar="N", min=0, help="Expected records of both owners that a block keeps.")
    ] = 20,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cuts the grid of two owners' releases into blocks, so that linkage compares fewer pairs. Spends nothing.

    Both owners add the columns of FILE to their register in DuckDB, and give
    its rules to Splink. Candidate pairs and links are confidential.
    """
    from dphist_pipeline.answering.published import latest_revision
    from dphist_pipeline.applications.blocking import blocking, group_blocking, published_groups
    from dphist_pipeline.applications.whole_release import WholeRelease, application_refused

    if output.exists() and not overwrite:
        raise application_refused(f"{output} is there already; name another file, or add --overwrite")
    if released_groups == bool(by):
        raise application_refused("give either --by, which cuts blocks from both releases, or --released-groups")
    mine = Store.folder(store)
    releases = ((mine, release, period), (other_store or mine, other, other_period))
    folders = [latest_revision(Store.public_folder(at), name, period) for at, name, period in releases]
    one, two = map(WholeRelease.read, folders)
    if by:
        cut = blocking(one, two, [[name.strip() for name in axes.split(",")] for axes in by], pairs, least)
    else:
        cut = group_blocking(one, two, published_groups(folders[0]))
    facts = cut.facts()
    try:
        output.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        problem = f"{output} cannot be written: {error.strerror}"
    else:
        problem = ""
    if problem:
        raise application_refused(problem)
    if as_json:
        print_json({"file": str(output), **facts})
        return
    out.print(f"[green]✓[/] Written: {escape(str(output))}, rules for {escape(' and '.join(cut.releases))}")
    rows = [
        (
            *(name, ", ".join(axis.name for axis in part.axes), f"{part.number:,}"),
            *(f"{part.expected_pairs:,.0f}", f"{part.expected_reduction:.2%}"),
        )
        for name, part in cut.partitions.items()
    ]
    print_table(["column", "by", "blocks", "expected pairs", "pairs saved"], rows)
    out.print(f"  Whoever is in both registers has spent epsilon {cut.epsilon}. Pairs and links are confidential.")

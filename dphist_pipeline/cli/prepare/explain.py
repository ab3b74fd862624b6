"""The command `dphist explain`: what a release promises, for people who know no epsilon."""

from __future__ import annotations

from typing import Annotated

import typer

from dphist_pipeline.cli.options import JsonOption, SpecArgument, StoreOption
from dphist_pipeline.cli.terminal import print_json
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.workbench.planning.plain_texts import Reader, facts, plain_text


def explain(
    spec: SpecArgument,
    reader: Annotated[Reader, typer.Option("--for", help="Who reads it.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Writes a short text on a release for lawyers, ethics boards or the press.

    In Markdown, to be read and signed by a person. Who is protected, what
    somebody could still learn, in odds, and below which count a cell is not
    told from an empty one. No record is read and nothing is charged.
    """
    checked = load_spec(spec, store)
    text = plain_text(checked, reader, store)
    if as_json:
        print_json({**facts(checked, store), "text": text})
        return
    typer.echo(text, nl=False)

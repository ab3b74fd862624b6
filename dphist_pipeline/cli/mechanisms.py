"""The command `dphist mechanisms`."""

from __future__ import annotations

from typing import Annotated

import typer

from dphist_pipeline import mechanisms as registry
from dphist_pipeline.cli.options import JsonOption
from dphist_pipeline.cli.terminal import (
    out,
    print_json,
    print_table,
)


def show_mechanisms(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print the whole card of this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Lists the mechanisms, or prints the card of one."""
    cards = {name: registry.card(name)} if name else {known: registry.card(known) for known in registry.names()}
    if as_json:
        print_json(cards)
    elif name:
        out.print(cards[name], markup=False)
    else:
        print_table(
            ["mechanism", "what it does"],
            [(known, card.partition("\n")[0].partition(": ")[2]) for known, card in cards.items()],
        )
        out.print("\nThe whole card: dphist mechanisms NAME")

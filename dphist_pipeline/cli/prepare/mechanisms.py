"""The command `dphist mechanisms`: lists mechanisms, or prints the card of one."""

from __future__ import annotations

from typing import Annotated

import typer

from dphist_pipeline import mechanisms as registry
from dphist_pipeline.cli.options import JsonOption
from dphist_pipeline.cli.terminal import out, print_json, print_table


def show_mechanisms(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Print the whole card of this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Lists the mechanisms, or prints the card of one.

    A card ends with the settings: what each does, its default, the
    paper's value, and why they differ. In JSON: a card and a list of
    settings for each mechanism.
    """
    cards = (
        {name: registry.card(name)}
        if name
        else {mechanism: _card_or_problem(mechanism) for mechanism in registry.names()}
    )
    if as_json:
        print_json({mechanism: {"card": card, "settings": _settings(mechanism)} for mechanism, card in cards.items()})
    elif name:
        out.print(cards[name], markup=False)
    else:
        print_table(
            ["mechanism", "what it does"],
            [
                (mechanism, card.partition("\n")[0].partition(": ")[2] + _brought_by(mechanism))
                for mechanism, card in cards.items()
            ],
        )
        out.print("\nThe whole card: dphist mechanisms NAME")


def _card_or_problem(name: str) -> str:
    try:
        return registry.card(name)
    except registry.UnusableMechanism as error:
        return f"{name}: {error}"


def _settings(name: str) -> list[dict[str, str]]:
    """What is told of each setting; nothing for an unusable mechanism of another package."""
    try:
        return [setting.facts() for setting in registry.settings(name)]
    except registry.UnusableMechanism:
        return []


def _brought_by(name: str) -> str:
    package = registry.foreign_package(name)
    return f" (not part of dphist: {package})" if package else ""

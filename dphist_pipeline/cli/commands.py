"""The commands of `dphist`, each of which is imported when it is called; help needs none of them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Home(NamedTuple):
    """Where a command is: the module, whose folder is a heading of `dphist --help`, and its function or group.

    `summary`: the first paragraph of its help, as `dphist --help` shows it.
    """

    module: str
    name: str
    summary: str


HOMES = {
    "new": Home("prepare.new", "new", "Writes a draft of a spec, and says which decisions are still open."),
    "check": Home("prepare.check", "check", "Checks a spec without reading any record, and describes its release."),
    "mechanisms": Home("prepare.mechanisms", "show_mechanisms", "Lists the mechanisms, or prints the card of one."),
    "forecast": Home(
        "prepare.forecast", "forecast", "Forecasts errors, and how long the account lasts, before records are read."
    ),
    "compare": Home("prepare.compare", "compare", "Compares mechanisms on public counts, by many releases of each."),
    "explain": Home(
        "prepare.explain", "explain", "Writes a short text on a release for lawyers, ethics boards or the press."
    ),
    "rehearse": Home(
        "prepare.rehearse", "rehearse", "Runs a whole release on invented records, in a store that is deleted."
    ),
    "release": Home("release.release", "release", "Publishes a period of a release, or all that are due."),
    "publish": Home(
        "release.decide",
        "publish",
        "Publishes what `publish: manual` or `if_plausible` holds back. Spends nothing and reads no record.",
    ),
    "reject": Home(
        "release.decide",
        "reject",
        "Says that a release that waits will not be published, and deletes what was drawn for it.",
    ),
    "withdraw": Home(
        "release.decide",
        "withdraw",
        "Takes back a published period, all its revisions: out of the catalogue, marked in its audit.",
    ),
    "local": Home(
        "release.local",
        "local_app",
        "Collections under local privacy: contributors perturb their own values, and nobody else sees them.",
    ),
    "answer": Home(
        "ask.answer",
        "answer",
        "Estimates a count, share, mean or change from a publication, with its 95 % interval. Spends nothing.",
    ),
    "quality": Home("ask.quality", "quality", "Shows what the bound cut and which values failed. Spends nothing."),
    "plot": Home("ask.plot", "plot", "Draws what was published, with its intervals. Spends nothing."),
    "export": Home("ask.export", "export", "Writes what was published into one file, with its errors. Spends nothing."),
    "synthesize": Home(
        "ask.synthesize", "synthesize", "Draws synthetic records from what was published. Spends nothing."
    ),
    "block": Home(
        "ask.block",
        "block",
        "Cuts the grid of two owners' releases into blocks, so that linkage compares fewer pairs. Spends nothing.",
    ),
    "init": Home("operate.init", "init", "Makes a store: a public folder, a confidential one, and a ledger."),
    "ledger": Home(
        "operate.ledger_server",
        "ledger_app",
        "The operator's side: accounts of epsilon, what releases may read, what was spent.",
    ),
    "store": Home(
        "operate.store", "store_app", "A store as a whole: its copy in a bucket, and one put back from a backup."
    ),
    "look": Home(
        "operate.look", "look", "Shows an operator exact numbers of the records, on a terminal only, and notes it."
    ),
    "doctor": Home("operate.doctor", "doctor", "Checks store, ledger, witness, key, disk, clock and versions."),
}
HEADINGS = {
    "prepare": "Prepare: nothing is spent",
    "release": "Release",
    "ask": "Ask what is published: nothing is spent",
    "operate": "Operate",
}
SEVERAL_EPSILONS = ("forecast", "compare")
WITHOUT_PANDAS = ("publish", "withdraw", "store")  # they write pages and tables, and are given no frame


def heading(home: Home) -> str:
    """The heading under which the help shows a command."""
    return HEADINGS[home.module.partition(".")[0]]


class LazyCommands(TyperGroup):
    """Knows the commands by name and imports one when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update(
            {name: TyperCommand(name, help=home.summary, rich_help_panel=heading(home)) for name, home in HOMES.items()}
        )
        self.loaded: dict[str, Any] = {}
        self.is_help = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None; for the help, one that has a first paragraph and nothing else."""
        if self.is_help or cmd_name not in HOMES:
            return self.commands.get(cmd_name)
        if cmd_name not in self.loaded:
            self.loaded[cmd_name] = load(cmd_name)
        return self.loaded[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help without importing a command."""
        self.is_help = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.is_help = False


@cache
def load(name: str) -> Any:
    """Imports a command, one of `HOMES`."""
    home = HOMES[name]
    command = getattr(import_module(f"dphist_pipeline.cli.{home.module}"), home.name)
    if name in WITHOUT_PANDAS:
        import_module("dphist_pipeline.base.arrow_without_pandas").arrow_without_pandas()
    if isinstance(command, typer.Typer):
        group = typer.main.get_group(command)
        group.name = name
        return group
    one = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    kind = TyperCommand
    if name in SEVERAL_EPSILONS:
        kind = import_module("dphist_pipeline.cli.prepare.compare").SeveralEpsilons
    elif name == "answer":
        kind = import_module("dphist_pipeline.cli.ask.answer").ChangesOfPeriods
    one.command(name, cls=kind)(command)
    return typer.main.get_command(one)

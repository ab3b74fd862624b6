"""The command line: one command a task, one clear message a failure.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. With `--json`, what a script needs goes to standard output.
"""

from __future__ import annotations

import io
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline import mechanisms as registry
from dphist_pipeline.cli_answer import answer
from dphist_pipeline.cli_compare import SeveralEpsilons, compare
from dphist_pipeline.cli_decide import print_waiting, publish, reject, withdraw
from dphist_pipeline.cli_local import local_app
from dphist_pipeline.cli_local_encode import encode
from dphist_pipeline.cli_local_publish import publish as publish_reports
from dphist_pipeline.cli_options import JsonOption, StoreOption
from dphist_pipeline.cli_plan import forecast, new, rehearse
from dphist_pipeline.cli_plot import plot
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Account, as_text
from dphist_pipeline.spec.loading import load_spec
from dphist_pipeline.spec.numbers import exact
from dphist_pipeline.store import Store, store_folder
from dphist_pipeline.terminal import (
    err,
    out,
    per_period,
    print_facts,
    print_json,
    print_release,
    print_statement,
    print_table,
    progress,
    promise,
    statement_facts,
)

INTERRUPTED = 130

app = typer.Typer(
    help="Publish differentially private histograms: spec in, published tables out, charged once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
ledger_app = typer.Typer(
    help="Accounts of epsilon: open one, raise it, see what was spent, verify.", no_args_is_help=True
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(local_app, name="local")
local_app.command()(encode)
local_app.command()(publish_reports)
app.command()(answer)
app.command()(publish)
app.command()(reject)
app.command()(withdraw)
app.command()(new)
app.command()(rehearse)
app.command()(plot)
app.command(cls=SeveralEpsilons)(forecast)
app.command(cls=SeveralEpsilons)(compare)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The release's YAML file.")]


@app.command()
def init(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Makes a store: a public folder, a confidential one, and a ledger."""
    made = Store.create(store_folder(store))
    if as_json:
        print_json({"store": str(made.root), "id": made.id, "ledger": made.ledger_id})
        return
    out.print(f"[green]Made a store[/] at {escape(str(made.root))}")
    out.print("Next, open an account that releases can charge, for example:")
    out.print("  dphist ledger open health --privacy-unit patient_id --neighbours add_remove --total 26")


@app.command()
def check(
    spec: SpecArgument,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the declared grid, the published columns and what the account leaves."),
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Checks a spec without opening any data, and says what a release of it would be."""
    checked = load_spec(spec)
    if explain:
        from dphist_pipeline.explaining import explained, print_explained

        told = explained(checked, store)
        if as_json:
            print_json(told)
        else:
            print_explained(checked, told)
        return
    facts = {
        "release": checked.release,
        "mechanism": checked.mechanism,
        "axes": {axis.name: axis.size for axis in checked.domain.axes},
        "cells": checked.domain.cells,
        "privacy_unit": checked.privacy_unit,
        "neighbours": checked.neighbours,
        "sensitivity": checked.sensitivity,
        "epsilon": str(checked.epsilon),
        "account": checked.account,
        "period": checked.period,
        "digest": checked.digest,
    }
    if as_json:
        print_json(facts)
        return
    out.print(f"[green]✓[/] {escape(str(spec))} is a valid spec")
    shape = " × ".join(f"{axis.name} ({axis.size})" for axis in checked.domain.axes)
    print_facts(
        {
            "release": checked.release,
            "cells": f"{checked.domain.cells:,} = {shape}",
            "protects": promise(checked),
            "mechanism": f"{checked.mechanism}, epsilon {as_text(checked.epsilon)} per {per_period(checked)}",
            "account": checked.account,
        }
    )


@app.command()
def release(
    spec: SpecArgument,
    period: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="First day of the period, or 2026-W10. Default: the latest finished one."),
    ] = None,
    store: StoreOption = None,
    revise: Annotated[
        bool, typer.Option("--revise", help="Release a period again, charged again; needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why it is revised. The same reason again changes nothing.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Publishes one period of a release.

    Charges its account once, whatever happens: after a crash, the same
    command finishes; done again, it gives back what was published, spends
    nothing and reads no record.
    """
    if revise != bool(reason.strip()):
        raise typer.BadParameter("a revision is charged anew: give --revise and --reason TEXT together")
    checked = load_spec(spec)
    opened = Store.open(store_folder(store))
    from dphist_pipeline import pipeline
    from dphist_pipeline.approvals import AwaitsApproval

    try:
        with progress(as_json) as step:
            made = pipeline.release(checked, opened, period, reason=reason.strip(), progress=step)
    except AwaitsApproval as waiting:
        print_waiting(waiting, as_json)
        return
    statement = opened.ledger().statement(checked.account)
    if as_json:
        print_json(
            {
                "release": checked.release,
                "period": made.audit["period"],
                "revision": made.audit["revision"],
                "replayed": made.replayed,
                "path": str(made.path),
                "epsilon": made.audit["epsilon"],
                "account": statement_facts(statement),
            }
        )
        return
    print_release(made.audit, made.replayed, made.path, statement)


@app.command(name="mechanisms")
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


@ledger_app.command(name="open")
def open_account(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Its name, as specs will use it.")],
    privacy_unit: Annotated[
        str, typer.Option(metavar="COLUMN", help="Who is protected: the specs' privacy_unit, or `row`.")
    ],
    neighbours: Annotated[str, typer.Option(metavar="RELATION", help="add_remove or substitute.")],
    total: Annotated[
        str,
        typer.Option(metavar="EPSILON", help="The most that all releases together may spend, as in 26 or 1/3."),
    ],
    renews: Annotated[str | None, typer.Option(metavar="yearly", help="A fresh total each 1 January.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Opens an account. What it protects is fixed for good; only its total can be raised."""
    opened = _open_store(store)
    ledger = opened.ledger()
    if renews not in (None, "yearly"):
        raise typer.BadParameter("an account renews `yearly` or not at all", param_hint="--renews")
    ledger.open_account(
        Account(
            account,
            privacy_unit,
            _neighbours(neighbours),
            _total(total),
            "yearly" if renews else None,
            opened.id,
        )
    )
    print_statement(ledger.statement(account), as_json)


@ledger_app.command(name="raise")
def raise_total(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT")],
    total: Annotated[str, typer.Option(metavar="EPSILON", help="The new total, larger than the old one.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the ledger.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Raises an account's total, and keeps the reason."""
    ledger = _open_store(store).ledger()
    ledger.raise_total(account, _total(total), reason)
    print_statement(ledger.statement(account), as_json)


@ledger_app.command()
def show(
    account: Annotated[str | None, typer.Argument(metavar="ACCOUNT", help="Only this one, with its charges.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shows what accounts hold, and what was spent on which release."""
    ledger = _open_store(store).ledger()
    statements = [
        ledger.statement(name) for name in ([account] if account else [found.name for found in ledger.accounts()])
    ]
    if as_json:
        print_json([statement_facts(statement) for statement in statements])
        return
    if not statements:
        out.print("No account is open yet. Open one: dphist ledger open --help")
    for statement in statements:
        print_statement(statement, as_json=False)


@ledger_app.command()
def verify(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Reads the whole ledger again, every hash and every sum, and every published file against it."""
    opened = _open_store(store)
    entries, whole, missing = opened.verify()
    if as_json:
        print_json({"entries": entries, "publications": whole, "missing": missing, "ledger": opened.ledger_id})
        return
    out.print(f"[green]✓[/] {entries} entries, every hash and every sum holds; {whole} publications are whole")
    for place in missing:
        out.print(f"  published once, and not in the public folder now: {escape(place)}")


def main() -> None:
    """Runs the command line; nothing that an engine said reaches the terminal unasked."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    message, code = _run()
    if message:
        err.print(f"[bold red]error:[/] {escape(message)}")
    sys.exit(code)


def _run() -> tuple[str, int]:
    """What to say, if anything, and the exit code."""
    try:
        code = app(prog_name="dphist", standalone_mode=False) or 0
    except DphistError as error:
        return str(error), 1
    except typer.TyperException as error:
        return _usage(error), error.exit_code
    except Exception as error:
        if os.environ.get("DPHIST_DEBUG") == "1":
            raise
        kind = type(error).__name__
        if isinstance(error, OSError) and error.errno:
            # The system's own words for the number hold nothing else.
            kind += f", {os.strerror(error.errno)}"
    else:
        interrupted = "interrupted. Nothing is lost: the same command goes on where this one stopped."
        return interrupted if code == INTERRUPTED else "", code
    return (
        f"something unexpected failed ({kind}; its message is withheld, because it may hold values from records). "
        "Nothing is spent twice: the same command goes on. Where you may see records, set DPHIST_DEBUG=1 to read it.",
        1,
    )


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the command as typed, and where to read how it goes; nothing where help was shown."""
    context = getattr(error, "ctx", None)
    problem = error.format_message()
    if context is None or not problem:
        return problem
    end = "" if problem.endswith((".", "?")) else "."
    return f"{problem[0].lower()}{problem[1:]}{end} See `{context.command_path} --help`."


def _open_store(named: Path | None) -> Store:
    return Store.open(store_folder(named))


def _neighbours(word: str) -> str:
    spelled = {"add_or_remove_one": "add_remove", "replace_one": "substitute"}.get(word, word)
    if spelled not in ("add_remove", "substitute"):
        raise typer.BadParameter("must be add_remove or substitute", param_hint="--neighbours")
    return spelled


def _total(text: str) -> Fraction:
    try:
        return exact(text)
    except ValueError as error:
        problem = str(error)
    raise typer.BadParameter(problem, param_hint="--total")

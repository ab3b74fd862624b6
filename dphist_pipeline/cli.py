"""The command line: one command a task, one clear message a failure.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. With `--json`, what a script needs goes to standard output.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline import mechanisms as registry
from dphist_pipeline.allowing import load_spec
from dphist_pipeline.cli_answer import answer
from dphist_pipeline.cli_compare import SeveralEpsilons, compare
from dphist_pipeline.cli_decide import print_waiting, publish, reject, withdraw
from dphist_pipeline.cli_ledger import allow_code_lists, ledger_app
from dphist_pipeline.cli_local import local_app
from dphist_pipeline.cli_local_encode import encode
from dphist_pipeline.cli_local_publish import publish as publish_reports
from dphist_pipeline.cli_options import JsonOption, StoreOption
from dphist_pipeline.cli_plan import forecast, new, rehearse
from dphist_pipeline.cli_plot import plot
from dphist_pipeline.cli_store import store_app
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import as_text
from dphist_pipeline.ledger.signing import key_path
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.store import Store, store_folder
from dphist_pipeline.terminal import (
    err,
    out,
    per_period,
    print_facts,
    print_json,
    print_release,
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
app.add_typer(ledger_app, name="ledger")
app.add_typer(store_app, name="store")
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
def init(
    store: StoreOption = None,
    code_lists: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="A folder of public code lists, which specs may use. Repeat for more."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Makes a store: a public folder, a confidential one, and a ledger.

    Whoever runs this is the ledger's operator: decisions are signed with a
    key that is made in the user's configuration, unless it is there.
    """
    made = Store.create(store_folder(store))
    for folder in code_lists or []:
        allow_code_lists(made, folder)
    if as_json:
        print_json({"store": str(made.root), "id": made.id, "ledger": made.ledger_id})
        return
    out.print(f"[green]Made a store[/] at {escape(str(made.root))}")
    out.print(f"  decisions are signed with {escape(str(key_path()))}; keep it from those who write specs")
    out.print(f"  charges are witnessed in {escape(Witness.at().where)}; keep it apart from the store's backups")
    out.print("Next, open an account, and say which records it is for, for example:")
    out.print("  dphist ledger open health --privacy-unit patient_id --neighbours add_remove --total 26 \\")
    out.print("    --source 'data/admissions/*.parquet'")


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
    checked = load_spec(spec, store)
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
        **({"remarks": checked.remarks} if checked.remarks else {}),
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
    for remark in checked.remarks:
        out.print(escape(remark))


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
    checked = load_spec(spec, store)
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

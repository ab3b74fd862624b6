"""The command `dphist doctor`: whether everything is as releases need it, and how to mend what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_json
from dphist_pipeline.health.doctor import as_json as findings_as_json
from dphist_pipeline.health.doctor import examine
from dphist_pipeline.health.finding import worst
from dphist_pipeline.health.overdue import overdue
from dphist_pipeline.releasing.store import Store

SIGNS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "fault": "[bold red]✗[/]"}


def doctor(
    store: StoreOption = None,
    releases_only: Annotated[
        bool,
        typer.Option("--releases-only", help="This user must release, and must not be able to read an operator's key."),
    ] = False,
    due: Annotated[
        bool,
        typer.Option(
            "--due", help="Only whether periods are due that nobody released; the exit code is 1 if there is one."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Checks store, ledger, witness, key, disk, clock and versions.

    Each finding is ok, a warning, or a fault, with a line on how to mend it.
    Changes nothing and opens no record. The exit code is 1 if there is a fault.
    """
    root = Store.folder(store)
    if due:
        _tell_due(Store.open(root), as_json)
        return
    findings = examine(root, releases_only)
    if as_json:
        print_json(findings_as_json(root, findings))
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            out.print(f"{SIGNS[finding.state]} {finding.check:<{width}}  {escape(finding.seen)}")
            if finding.mend:
                out.print(f"  {'':<{width}}  [dim]mend:[/] {escape(finding.mend)}")
    if worst(findings) == "fault":
        raise typer.Exit(1)


def _tell_due(store: Store, as_json: bool) -> None:
    overdue_periods = overdue(store, store.ledger(), datetime.now(UTC))
    if as_json:
        print_json(overdue_periods.facts())
    elif overdue_periods.says:
        out.print(f"{SIGNS['fault']} {escape(overdue_periods.says)}")
        out.print("  look whether the schedule runs; run them, or waive what never comes: dphist ledger waive --help")
    else:
        out.print(f"{SIGNS['ok']} nothing is due")
    if overdue_periods.unknown and not as_json:
        out.print(f"  not known before their next release: {escape(', '.join(overdue_periods.unknown))}")
    if overdue_periods.periods:
        raise typer.Exit(1)

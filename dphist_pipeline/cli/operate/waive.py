"""The command `dphist ledger waive`: a period that never comes is due no more."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.operate.ledger import ReasonOption, ledger_app
from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import decision_facts, out, print_json
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions


@ledger_app.command()
def waive(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The name of a release that was charged before.")],
    period: Annotated[str, typer.Argument(metavar="PERIOD", help="Its key, the first day.")],
    reason: ReasonOption,
    and_later: Annotated[
        bool, typer.Option("--and-later", help="Every later period, too: the release has ended.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Says that a period never comes: nothing is due for it any more.

    No schedule asks for it, and `dphist doctor --due` does not count it. It
    can still be released by command, at its price.
    """
    decision = StoreDecisions.of(Store.open_named(store)).waive(release, period, reason, and_later)
    if as_json:
        print_json(decision_facts(decision))
        return
    later = " and all later ones" if and_later else ""
    out.print(f"[green]✓[/] Waived: {escape(release)}, period {escape(period)}{later} (entry {decision.number})")
    out.print(f"  dphist ledger disallow {decision.number} --reason TEXT takes it back")

"""The command `dphist check`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, SpecArgument, StoreOption
from dphist_pipeline.cli.terminal import (
    out,
    per_period,
    print_facts,
    print_json,
    promise,
)
from dphist_pipeline.ledger.ledger import as_text
from dphist_pipeline.releasing.allowing import load_spec


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
        from dphist_pipeline.cli.explaining import explained, print_explained

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

"""The command `dphist look`: exact numbers about records, for an operator at a terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dphist_pipeline.cli.options import SpecArgument, StoreOption
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store


def look(
    spec: SpecArgument,
    period: Annotated[
        str | None, typer.Option(metavar="DAY", help="Its first day, or 2026-W10. Default: the latest finished one.")
    ] = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; required once the account was charged. The ledger keeps it.")
    ] = "",
    store: StoreOption = None,
) -> None:
    """Shows an operator exact numbers of the records, on a terminal only, and notes it.

    The numbers are not private. They need an operator's key and a terminal,
    and go to no file. The ledger keeps who looked, when and at which release,
    and every later release of the account repeats it.
    """
    from dphist_pipeline.releasing.operator_look import look as look_at

    look_at(load_spec(spec, store), Store.open_named(store), _descriptor(), period, reason)


def _descriptor() -> int:
    """The descriptor of standard output; -1, which is no terminal, where output is not a file."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return -1

"""Shows an operator what a spec asks for, and has it signed: after a question in a terminal, or by its digest."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer
from rich.markup import escape

from dphist_pipeline.cli.terminal import (
    at_a_terminal,
    err,
    next_of_period,
    out,
    print_allowed,
    print_facts,
    print_json,
    print_lines,
    print_statement,
    told_before_release,
)
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.spec_decisions import SpecDecisions
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions


def show_and_sign(
    decisions: SpecDecisions,
    path: Path,
    store: Store,
    ledger: Ledger,
    yes: str | None,
    command: list[str],
    as_json: bool,
) -> None:
    """Shows the decisions of a spec, and enters them once an operator said yes to exactly these.

    Args:
        path: the spec as the operator named it.
        yes: the digest that was shown before; None asks here.
        command: that would sign them, without `--yes`.
    """
    if decisions.nothing:
        if as_json:
            print_json({"signed": False, **decisions.facts})
        else:
            out.print(f"[green]✓[/] All that {escape(str(path))} asks for was decided before; nothing was entered")
            _print_left_out(decisions)
        return
    digest = decisions.digest
    if yes is not None:
        decisions.refuse_another(yes)
    if not as_json:
        out.print(f"For {escape(str(path))} you sign:")
        print_facts({**decisions.words, "digest": digest})
    if yes is None:
        if as_json:
            print_json({"signed": False, "digest": digest, **decisions.facts})
            raise typer.Exit(1)
        if not at_a_terminal() or not typer.confirm("Sign this?", default=False):
            raise decisions.unsigned(shlex.join(command))
    with StoreDecisions(store, ledger).signing() as operator:
        made = decisions.sign(ledger, operator)
    _keep(decisions, store)
    if as_json:
        print_json({"signed": True, "digest": digest, **decisions.facts})
        return
    for decision in made:
        print_allowed(decision, as_json)
    print_statement(Statement.of(ledger, decisions.spec.account), as_json)
    _print_left_out(decisions)
    named = shlex.quote(str(path))
    print_lines(["Next:", *(f"  {one}" for one in (f"dphist check {named}", *next_of_period(decisions.spec, named)))])
    print_lines([told_before_release(decisions.spec)])


def _keep(decisions: SpecDecisions, store: Store) -> None:
    """Keeps the spec that was signed; the decision stands all the same where this user may not write to the store."""
    try:
        decisions.keep(store)
    except OSError as error:
        err.print(
            f"[yellow]![/] The decision stands. The spec was not kept in the store ({escape(str(error.strerror))}): "
            "its first release will not be able to say what changed since"
        )


def _print_left_out(decisions: SpecDecisions) -> None:
    if commands := decisions.left_out:
        out.print("The spec needs more, which is decided alone, with its reason:")
        print_lines(f"  {command}" for command in commands)

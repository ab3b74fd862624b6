"""Asks the questions of `dphist new` at a terminal, and ends with the commands to copy."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import typer
from rich.markup import escape

from dphist_pipeline.cli.terminal import advice_before_release, next_of_period, out, print_lines, print_warning
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.planning.interview import Decided, Question, told
from dphist_pipeline.releasing.spec_decisions import SpecDecisions
from dphist_pipeline.releasing.store import Store

LARGE_TOTAL = 10  # e^10 is about 22,026


def answered(talk: Generator[Question, str, Decided]) -> Decided:
    """What the answers of the person at the terminal make; Ctrl-C or the end of input aborts, with nothing written."""
    out.print(
        "Enter takes the answer in brackets; `back` goes to the question before; Ctrl-C ends, and nothing is written. "
        "No value of the file is read."
    )
    try:
        question = next(talk)
        while True:
            question = talk.send(_answer(question))
    except StopIteration as end:
        decided: Decided = end.value
        return decided


def _answer(question: Question) -> str:
    if question.problem:
        out.print(f"[yellow]![/] {escape(question.problem)}")
    else:
        print_lines(question.remarks)
        out.print(f"\n[bold]{escape(question.asks)}[/]")
        print_lines(f"  {line}" for line in question.because)
    default = f" [{question.default}]" if question.default else ""
    answer: str = typer.prompt(f">{default}", default="", show_default=False, prompt_suffix=" ")
    return answer


def print_next(decided: Decided, file: Path, store: Path) -> None:
    """What was written, what it means, and the next commands; where there is no store, the first one makes it."""
    spec, argument = decided.spec, shlex.quote(str(file))
    each = "" if spec.period == "none" else f", and a year of {spec.period}s {as_text(decided.total)}"
    out.print(f"\n[green]✓[/] Wrote {escape(str(file))}, which `dphist check` accepts")
    print_lines([f"  {told(spec)}; it costs epsilon {as_text(spec.epsilon)}{each}"])
    if decided.total > LARGE_TOTAL:
        print_warning(
            f"{'The table' if each == '' else f'A year of {spec.period}s'} takes epsilon {as_text(decided.total)} in "
            f"all, which bounds little: {LARGE_TOTAL} lets odds about a unit change more than 20,000 times. Smaller "
            f"epsilons or longer periods bound more; to compare them: dphist forecast {argument} --records N"
        )
    print_lines(["These rows fall to `other`, and no file was looked at to see how many:"])
    print_lines([*(f"  {other}" for other in decided.others), "Next, in this order:"])
    first = f"dphist check {argument}" if (store / "public").is_dir() else "dphist init"
    renews = "" if spec.period == "none" else " --renews yearly"
    second = f"dphist ledger open --for {argument} --total {as_text(decided.total)}{renews}"
    account = _open_account(spec.account, store)
    if account is not None and (account.privacy_unit, account.neighbours) == (spec.privacy_unit, spec.neighbours):
        second = "" if _allowed_already(file, store) else f"dphist ledger allow --for {argument}"
    elif account is not None:
        print_warning(
            f"Account {account.name} is open, and protects {account.privacy_unit} ({account.neighbours}), which is not "
            f"what the spec says. Before the second, write another `account` into {file}."
        )
    print_lines(f"  {command}" for command in (first, second, *next_of_period(spec, argument)) if command)
    print_lines([advice_before_release(spec)])


def _allowed_already(spec: Path, store: Path) -> bool:
    """Whether all that a spec reads is allowed."""
    with suppress(DphistError):
        opened_store = Store.open(store)
        return SpecDecisions.to_allow(spec, opened_store, opened_store.ledger(), None).nothing
    return False


def _open_account(name: str, store: Path) -> Account | None:
    """An account that the store's ledger has; None also where no ledger can be read, as the next command will say."""
    with suppress(DphistError):
        return Store.open(store).ledger().account(name)
    return None

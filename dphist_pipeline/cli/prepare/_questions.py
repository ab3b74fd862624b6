"""Asks the questions of `dphist new` at a terminal, and ends with the commands to copy."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from pathlib import Path

import typer
from rich.markup import escape

from dphist_pipeline.cli.terminal import out, print_lines
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.planning.interview import Decided, Question, told


def answered(talk: Generator[Question, str, Decided]) -> Decided:
    """What the answers of the person at the terminal make; Ctrl-C or the end of input aborts, with nothing written."""
    out.print("Enter takes the answer in brackets; Ctrl-C ends, and nothing is written. No value of the file is read.")
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
        print_lines(question.said)
        out.print(f"\n[bold]{escape(question.asks)}[/]")
        print_lines(f"  {line}" for line in question.because)
    default = f" [{question.default}]" if question.default else ""
    answer: str = typer.prompt(f">{default}", default="", show_default=False, prompt_suffix=" ")
    return answer


def print_next(decided: Decided, file: Path, has_store: bool) -> None:
    """What was written, what it means, and the next three commands.

    Args:
        has_store: whether there is a store; else one is made first.
    """
    spec, named = decided.spec, shlex.quote(str(file))
    each = "" if spec.period == "none" else f", and a year of {spec.period}s {as_text(decided.total)}"
    out.print(f"\n[green]✓[/] Wrote {escape(str(file))}, which `dphist check` accepts")
    print_lines([f"  {told(spec)}; it costs epsilon {as_text(spec.epsilon)}{each}"])
    print_lines(["These rows fall to `other`, and no file was looked at to see how many:"])
    print_lines([*(f"  {one}" for one in decided.others), "Next, in this order:"])
    first = f"dphist check {named}" if has_store else "dphist init"
    opened = f"dphist ledger open --for {named} --total {as_text(decided.total)}"
    renews = "" if spec.period == "none" else " --renews yearly"
    print_lines(f"  {command}" for command in (first, f"{opened}{renews}", f"dphist release {named}"))

"""The commands `dphist local check` and `plan`: a collection under local privacy before anybody is asked."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption
from dphist_pipeline.cli.terminal import out, print_facts, print_json, print_table
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.local.collection import CollectionSpec, load_collection
from dphist_pipeline.local.costs import NOT_COVERED, Plan, Way, described, planned, remarks, spending, write_question
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.question import Question
from dphist_pipeline.spec.fields import digits

WIDTH = 80
MOST_INTERVALS_SHOWN = 10
MOST_CONSUMERS_IN_FULL = 5

local_app = typer.Typer(
    help="Collections under local privacy: contributors perturb their own values, and nobody else sees them.",
    no_args_is_help=True,
)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The collection's YAML file.")]


@local_app.command()
def check(spec: SpecArgument, as_json: JsonOption = False) -> None:
    """Checks a collection's spec, and says what contributors are asked.

    Opens no reports.
    """
    checked = load_collection(spec)
    question = question_of(checked)
    if as_json:
        print_json({**described(checked, question), "remarks": remarks(checked)})
        return
    out.print(f"[green]✓[/] {escape(str(spec))} is a valid spec of a collection")
    _print_what(checked, question)
    out.print()
    _print_sentences(remarks(checked))


@local_app.command()
def plan(
    spec: SpecArgument,
    contributors: Annotated[int, typer.Option(min=1, max=10**10, help="How many are expected to answer.")] = 10_000,
    question: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the question, for the contributors' program. Never overwrites."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plans a collection: what it costs contributors, and expected errors.

    Before anybody is asked, and from the spec alone: bits, bytes and epsilon
    of each protocol that could serve these consumers, by each encoding, and
    the standard error of each interval's count.
    """
    found = planned(load_collection(spec), contributors)
    new = write_question(found.asked.question, question) if question is not None else False
    if as_json:
        print_json({**found.facts(), **({"question_file": str(question)} if question is not None else {})})
        return
    _print_plan(found)
    if question is not None:
        out.print(f"\n[green]{'Wrote' if new else 'Already there:'}[/] the question, {escape(str(question))}")


def _print_what(spec: CollectionSpec, question: Question) -> None:
    sampled = f", sent with probability {as_text(spec.participation)}" if spec.participation < 1 else ""
    when = "once" if spec.round == "all" else f"in the round of {spec.round}"
    values = f", {spec.values}" if spec.values_per_contributor > 1 else ""
    total = sum(part.intervals for part in question.parts)
    parts = f" in {len(question.parts)} vectors" if len(question.parts) > 1 else ""
    encodings = " and ".join(dict.fromkeys(part.encoding for part in question.parts))
    print_facts(
        {
            "collection": f"{spec.collection}, asked {when}",
            "value": f"{spec.value}, from {digits(spec.start)} up to and with {digits(spec.stop)}",
            "protocol": f"{spec.protocol}{sampled}",
            "intervals": f"{total:,}{parts} by {encodings}",
            "contributor": f"spends {spending(spec)}{values}",
            "digest": spec.digest,
        }
    )
    out.print()
    rows: list[tuple[str, ...]] = [
        (reader.name, f"{reader.intervals:,}", as_text(reader.epsilon), spec.release_of(reader))
        for reader in spec.consumers
    ]
    print_table(["consumer", "intervals", "epsilon", "release"], rows)


def _print_plan(found: Plan) -> None:
    _print_what(found.spec, found.asked.question)
    out.print("\n[bold]What a contributor sends[/]")
    sent: list[tuple[str, ...]] = []
    for way in found.ways:
        intervals = sum(part.intervals for part in way.question.parts)
        bits, size = way.question.contributor_bits, way.question.contributor_bytes
        sizes = (f"{intervals:,}", f"{bits:,}", f"{size:,}", as_text(way.question.epsilon))
        declared = "as declared" if way.question == found.asked.question else ""
        sent.append((way.protocol, way.encodings, *sizes, declared))
    print_table(["protocol", "encoding", "intervals", "bits", "bytes", "epsilon", ""], sent)
    told = f"Standard errors of counts, with {found.contributors:,} contributors"
    for protocol in dict.fromkeys(way.protocol for way in found.ways):
        ways = [way for way in found.ways if way.protocol == protocol]
        out.print(f"\n[bold]{told}, by {protocol}[/]")
        out.print("Values spread evenly; `at worst`: none or all of them in the interval.")
        header = [way.encodings if "," not in way.encodings else "auto" for way in ways]
        print_table(["consumer", "interval", *header], _errors(found, ways))
    out.print()
    _print_sentences([*remarks(found.spec), *NOT_COVERED])


def _errors(found: Plan, ways: list[Way]) -> list[tuple[str, ...]]:
    """Rows of errors: each interval of a consumer with few, else three of them, and the largest that is possible."""
    rows: list[tuple[str, ...]] = []
    for number, reader in enumerate(found.spec.consumers):
        even = np.array([way.errors[number].even for way in ways])
        if reader.intervals <= MOST_INTERVALS_SHOWN and len(found.spec.consumers) <= MOST_CONSUMERS_IN_FULL:
            told = [(_interval(reader.edges, place), *map(_error, column)) for place, column in enumerate(even.T)]
        else:
            told = _summary(even)
        told.append(("at worst", *(_error(way.errors[number].worst.max()) for way in ways)))
        rows += [(reader.name if place == 0 else "", *row) for place, row in enumerate(told)]
    return rows


def _summary(even: NDArray[np.float64]) -> list[tuple[str, ...]]:
    """The least, the median and the largest of each way's errors; one row where they are alike."""
    least, median, largest = (
        tuple(map(_error, numbers)) for numbers in np.quantile(even, [0, 0.5, 1], axis=1, method="lower")
    )
    if least == largest:
        return [("each", *least)]
    return [("least", *least), ("median", *median), ("largest", *largest)]


def _interval(edges: tuple[Fraction, ...], place: int) -> str:
    end = "]" if place == len(edges) - 2 else ")"
    return f"[{float(edges[place]):.6g}, {float(edges[place + 1]):.6g}{end}"


def _error(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _print_sentences(sentences: list[str]) -> None:
    for sentence in sentences:
        out.print(escape(textwrap.fill(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ")))

"""The commands `dphist local check` and `plan`: a collection under local privacy before anybody is asked."""

from __future__ import annotations

import textwrap
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption
from dphist_pipeline.cli.terminal import out, print_facts, print_json, print_table
from dphist_pipeline.ledger.entries import as_text
from dphist_pipeline.spec.numbers import digits

if TYPE_CHECKING:
    from dphist_pipeline.local.collection import CollectionSpec
    from dphist_pipeline.local.costs import Plan, Way
    from dphist_pipeline.local.question import Question

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
    from dphist_pipeline.local.collection import load_collection
    from dphist_pipeline.local.collection_remarks import remarks
    from dphist_pipeline.local.costs import described
    from dphist_pipeline.local.partition import question_of

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

    Before anybody is asked, and from the spec alone: bits and bytes of each
    protocol and encoding, and how far each interval's count will lie off.
    """
    from dphist_pipeline.local.collection import load_collection
    from dphist_pipeline.local.costs import planned, write_question

    found = planned(load_collection(spec), contributors)
    new = write_question(found.asked.question, question) if question is not None else False
    if as_json:
        written = {"question_file": str(question)} if question is not None else {}
        print_json({**found.facts(), **written})
        return
    _print_plan(found)
    if question is not None:
        out.print(f"\n[green]{'Wrote' if new else 'Already there:'}[/] the question, {escape(str(question))}")


def _print_what(spec: CollectionSpec, question: Question) -> None:
    from dphist_pipeline.local.collection_remarks import spending

    sampled = f", sent with probability {as_text(spec.participation)}" if spec.participation < 1 else ""
    values = f", {spec.values}" if spec.values_per_contributor > 1 else ""
    round_ = "once" if spec.round == "all" else f"in the round of {spec.round}"
    print_facts(
        {
            "collection": f"{spec.collection}, asked {round_}",
            "value": f"{spec.value}, from {digits(spec.start)} up to and with {digits(spec.stop)}",
            "protocol": f"{spec.protocol}{sampled}",
            "intervals": _asked(question),
            "contributor": f"spends {spending(spec)}{values}",
            "digest": spec.digest,
        }
    )
    out.print()
    print_table(
        ["consumer", "intervals", "epsilon", "release"],
        [
            (reader.name, f"{reader.intervals:,}", as_text(reader.epsilon), spec.release_of(reader))
            for reader in spec.consumers
        ],
    )


def _asked(question: Question) -> str:
    """The intervals of a report and how they are encoded."""
    total = sum(part.intervals for part in question.parts)
    encodings = " and ".join(dict.fromkeys(part.encoding for part in question.parts))
    parts = f" in {len(question.parts)} vectors" if len(question.parts) > 1 else ""
    return f"{total:,}{parts} by {encodings}"


def _print_plan(found: Plan) -> None:
    from dphist_pipeline.local.collection_remarks import NOT_COVERED, remarks

    _print_what(found.spec, found.asked.question)
    out.print("\n[bold]What a contributor sends[/]")
    print_table(
        ["protocol", "encoding", "intervals", "bits", "bytes", "epsilon", ""],
        [_sent(way, found.asked) for way in found.ways],
    )
    out.print(f"\n[bold]Standard errors of counts, with {found.contributors:,} contributors[/]")
    out.print("Values spread evenly; `at worst`: none or all of them in the interval.")
    header = [way.encodings if way in found.encodings else f"{way.protocol}, {way.encodings}" for way in found.ways]
    print_table(["consumer", "interval", *header], _errors(found))
    out.print()
    _print_sentences([*remarks(found.spec), *NOT_COVERED])


def _sent(way: Way, asked: Way) -> tuple[str, ...]:
    intervals = sum(part.intervals for part in way.question.parts)
    return (
        way.protocol,
        way.encodings,
        f"{intervals:,}",
        f"{way.bits:,}",
        f"{way.bytes:,}",
        as_text(way.question.epsilon),
        "as declared" if way.question == asked.question else "",
    )


def _errors(found: Plan) -> list[tuple[str, ...]]:
    """Rows of errors: each interval of a consumer with few, else three of them, and the largest that is possible."""
    rows: list[tuple[str, ...]] = []
    for number, reader in enumerate(found.spec.consumers):
        even = [way.errors[number].even for way in found.ways]
        worst = [way.errors[number].worst.max() for way in found.ways]
        if reader.intervals <= MOST_INTERVALS_SHOWN and len(found.spec.consumers) <= MOST_CONSUMERS_IN_FULL:
            told = [
                (_interval(reader.edges, place), *map(_error, numbers))
                for place, numbers in enumerate(zip(*even, strict=True))
            ]
        else:
            told = _summary(even)
        told.append(("at worst", *map(_error, worst)))
        rows += [(reader.name if place == 0 else "", *row) for place, row in enumerate(told)]
    return rows


def _summary(even: list[NDArray[np.float64]]) -> list[tuple[str, ...]]:
    """The least, the median and the largest of each way's errors; one row where they are alike."""
    of_three = np.quantile(even, [0, 0.5, 1], axis=1, method="lower")
    least, median, largest = (tuple(map(_error, numbers)) for numbers in of_three)
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

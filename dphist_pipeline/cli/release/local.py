"""The commands `dphist local …`: a collection under local privacy.

`check` and `plan` come before anybody is asked, `encode` is the contributors' side, `publish` the curator's.
"""

from __future__ import annotations

import sys
import textwrap
import uuid
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, StoreOption
from dphist_pipeline.cli.terminal import out, print_facts, print_json, print_table, progress
from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.local.costs import (
    NOT_COVERED,
    Plan,
    QuestionDesign,
    collection_facts,
    plan_of,
    remarks,
    spending,
    write_question,
)
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.question import LONGEST_QUESTION, Question, question_invalid
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.collection import CollectionSpec, load_collection
from dphist_pipeline.spec.fields import digits, exact

if TYPE_CHECKING:
    from dphist_pipeline.local.publication import CountedReports
    from dphist_pipeline.releasing.releases import Release


WIDTH = 80
STANDARD_INPUT = Path("-")
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
        print_json({**collection_facts(checked, question), "remarks": remarks(checked)})
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
    forecast = plan_of(load_collection(spec), contributors)
    new = write_question(forecast.asked.question, question) if question is not None else False
    if as_json:
        print_json({**forecast.facts(), **({"question_file": str(question)} if question is not None else {})})
        return
    _print_plan(forecast)
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


def _print_plan(forecast: Plan) -> None:
    _print_what(forecast.spec, forecast.asked.question)
    out.print("\n[bold]What a contributor sends[/]")
    sent: list[tuple[str, ...]] = []
    for way in forecast.ways:
        intervals = sum(part.intervals for part in way.question.parts)
        bits, size = way.question.contributor_bits, way.question.contributor_bytes
        sizes = (f"{intervals:,}", f"{bits:,}", f"{size:,}", as_text(way.question.epsilon))
        declared = "as declared" if way.question == forecast.asked.question else ""
        sent.append((way.protocol, way.encodings, *sizes, declared))
    print_table(["protocol", "encoding", "intervals", "bits", "bytes", "epsilon", ""], sent)
    heading = f"Standard errors of counts, with {forecast.contributors:,} contributors"
    for protocol in dict.fromkeys(way.protocol for way in forecast.ways):
        ways = [way for way in forecast.ways if way.protocol == protocol]
        out.print(f"\n[bold]{heading}, by {protocol}[/]")
        out.print("Values spread evenly; `at worst`: none or all of them in the interval.")
        header = [way.encodings if "," not in way.encodings else "auto" for way in ways]
        print_table(["consumer", "interval", *header], _errors(forecast, ways))
    out.print()
    _print_sentences([*remarks(forecast.spec), *NOT_COVERED])


def _errors(forecast: Plan, ways: list[QuestionDesign]) -> list[tuple[str, ...]]:
    """Rows of errors: each interval of a consumer with few, else three of them, and the largest that is possible."""
    rows: list[tuple[str, ...]] = []
    for number, reader in enumerate(forecast.spec.consumers):
        even = np.array([way.errors[number].even for way in ways])
        if reader.intervals <= MOST_INTERVALS_SHOWN and len(forecast.spec.consumers) <= MOST_CONSUMERS_IN_FULL:
            lines = [(_interval(reader.edges, place), *map(_error, column)) for place, column in enumerate(even.T)]
        else:
            lines = _summary(even)
        lines.append(("at worst", *(_error(way.errors[number].worst.max()) for way in ways)))
        rows += [(reader.name if place == 0 else "", *row) for place, row in enumerate(lines)]
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


def output_refused(path: Path, problem: str) -> Refused:
    """No file of reports can be made at the output's path."""
    return Refused(f"{path} {problem}: name another --output. Nothing was answered.", code="output_refused")


@local_app.command()
def encode(
    question: Annotated[
        Path, typer.Argument(metavar="QUESTION", help="What is asked: the JSON file of a curator, or the spec itself.")
    ],
    values: Annotated[Path, typer.Argument(metavar="VALUES", help="Parquet or CSV with the contributors' values.")],
    column: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the values.")],
    contributor: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Whose they are; `row`: each row is somebody else, known by its place."),
    ],
    record: Annotated[Path, typer.Option(metavar="DIR", help="Who answered what, kept on the contributors' side.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="A new Parquet file with the reports to send.")],
    limit: Annotated[
        str | None,
        typer.Option(metavar="EPSILON", help="The most that a contributor ever spends; fixed by the first answer."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turns values into reports that can be sent to anybody.

    Contributors who answered this question before get the same reports
    again, never fresh ones. Values that lie in no interval, or are no
    numbers, are reported as well, and their number is shown nowhere.
    """
    from dphist_pipeline.local.record_folder import RecordFolder
    from dphist_pipeline.local.reports import report_file
    from dphist_pipeline.local.value_files import read_values

    _refuse_output(output, record)
    question_asked = _read_question(question)
    names, numbers = read_values(values, column, contributor)
    records = RecordFolder.open(record, _limit(limit))
    if contributor == "row":
        records.refuse_changed_rows(values.name, len(names))
    answers = records.answer(question_asked, names, numbers)
    draft = output.with_name(f".{uuid.uuid4().hex}.draft")
    try:
        with report_file(question_asked, draft) as add:
            add(answers.ids, answers.bodies)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        sizes = {
            "reports": len(answers.ids),
            "bytes_per_report": question_asked.report_bytes,
            "epsilon": str(question_asked.epsilon),
        }
        people = {"contributors": answers.contributors, "exhausted": answers.exhausted}
        print_json({"question": question_asked.digest, **sizes, **people, "path": str(output)})
        return
    out.print(
        f"[green]✓[/] {answers.contributors:,} contributors answer with {len(answers.ids):,} reports, "
        f"{question_asked.report_bytes:,} bytes each: {escape(str(output))}"
    )
    out.print(f"Each has spent epsilon {as_text(question_asked.epsilon)} on this question, once and for all.")
    if answers.exhausted:
        out.print(f"{answers.exhausted:,} had too little left of their limit, and did not answer.")


def _refuse_output(output: Path, record: Path) -> None:
    """Refuses, before anybody answers, to overwrite a file or to write reports among the records."""
    problems = {
        "is there already, and is left as it is": output.exists(),
        "lies in no folder that is there": not output.parent.is_dir(),
        "lies among the records of contributors, which are theirs alone": output.resolve().parent == record.resolve(),
    }
    for problem, applies in problems.items():
        if applies:
            raise output_refused(output, problem)


def _read_question(path: Path) -> Question:
    """The question in a curator's file; a spec asks one, too."""
    if path.suffix.casefold() in (".csv", ".parquet"):
        raise question_invalid(f"{path} is a table of values; QUESTION comes first, then VALUES")
    if path.suffix.casefold() != ".json":
        return question_of(load_collection(path))
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_QUESTION + 1)
    except OSError as error:
        raise question_invalid(f"{path} cannot be read: {error.strerror}") from None
    return Question.from_json(content)


def _limit(text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        limit = exact(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--limit") from None
    if limit <= 0:
        raise typer.BadParameter("must be above 0", param_hint="--limit")
    return limit


@local_app.command()
def publish(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The collection's YAML file.")],
    reports: Annotated[
        list[Path] | None,
        typer.Argument(metavar="REPORTS", help="Parquet files of reports; - for lines on standard input."),
    ] = None,
    store: StoreOption = None,
    revise: Annotated[bool, typer.Option("--revise", help="Publish anew, at no cost; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, such as: late reports.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Counts reports and publishes every consumer's histogram.

    Reports that are malformed, of another question or there twice are
    refused and counted. Run it again: it gives back what was published.
    """
    from dphist_pipeline.local.publication import publish_collection

    if revise != bool(reason.strip()):
        raise typer.BadParameter("give --revise and --reason TEXT together")
    checked = load_collection(spec)
    opened_store = Store.open_named(store)
    with progress(as_json) as step:
        step("counting reports")
        counted = _count_files(checked, opened_store, reports or [])
        releases = publish_collection(checked, opened_store, counted, reason=reason.strip(), progress=step)
    if as_json:
        print_json(_as_json(counted, releases))
    else:
        _print(counted, releases)


def _count_files(spec: CollectionSpec, store: Store, files: list[Path]) -> CountedReports:
    from dphist_pipeline.local.publication import count_reports, report_files
    from dphist_pipeline.local.reports import keep_lines

    files = files or report_files(spec)
    if STANDARD_INPUT not in files:
        return count_reports(spec, files)
    with store.run(Key(spec.release_of(spec.consumers[0]), spec.round, 1)) as scratch:
        file = scratch / "reports.parquet"
        left_out = keep_lines(question_of(spec), sys.stdin.buffer, file)
        return count_reports(spec, [file, *(path for path in files if path != STANDARD_INPUT)], left_out)


def _as_json(counted: CountedReports, publications: list[Release]) -> dict[str, object]:
    releases = [
        {name: release.audit[name] for name in ("release", "period", "revision")}
        | {"replayed": release.replayed, "path": str(release.path)}
        for release in publications
    ]
    epsilon = str(counted.tally.question.epsilon)
    return {"accepted": counted.tally.reports, "refused": counted.refused, "epsilon": epsilon, "releases": releases}


def _print(counted: CountedReports, publications: list[Release]) -> None:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counted.refused.items() if number)
    out.print(f"{counted.tally.reports:,} reports counted; refused: {reasons or 'none'}")
    rows: list[tuple[str, ...]] = []
    for release in publications:
        names = (str(release.audit[name]) for name in ("release", "period", "revision"))
        rows.append(("already published" if release.replayed else "published", *names, f"{release.audit['cells']:,}"))
    print_table(["", "release", "period", "revision", "cells"], rows)
    spent = as_text(counted.tally.question.epsilon)
    out.print(f"Each contributor has spent epsilon {spent} by answering; publishing spends nothing more.")
    out.print(f"\nAsk it:  dphist answer {escape(str(publications[0].audit['release']))}")

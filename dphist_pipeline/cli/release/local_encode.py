"""`dphist local encode`: the contributors' side of a collection, for a file of them."""

from __future__ import annotations

import uuid
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption
from dphist_pipeline.cli.terminal import out, print_json
from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.local.collection import load_collection
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.question import LONGEST_QUESTION, Question, question_invalid
from dphist_pipeline.spec.fields import exact


def output_refused(path: Path, problem: str) -> Refused:
    """No file of reports can be made at the output's path."""
    return Refused(f"{path} {problem}: name another --output. Nothing was answered.", code="output_refused")


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
    asked = _read_question(question)
    names, found = read_values(values, column, contributor)
    records = RecordFolder.open(record, _limit(limit))
    if contributor == "row":
        records.refuse_changed_rows(values.name, len(names))
    answers = records.answer(asked, names, found)
    draft = output.with_name(f".{uuid.uuid4().hex}.draft")
    try:
        with report_file(asked, draft) as add:
            add(answers.ids, answers.bodies)
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        sizes = {"reports": len(answers.ids), "bytes_per_report": asked.report_bytes, "epsilon": str(asked.epsilon)}
        people = {"contributors": answers.contributors, "exhausted": answers.exhausted}
        print_json({"question": asked.digest, **sizes, **people, "path": str(output)})
        return
    out.print(
        f"[green]✓[/] {answers.contributors:,} contributors answer with {len(answers.ids):,} reports, "
        f"{asked.report_bytes:,} bytes each: {escape(str(output))}"
    )
    out.print(f"Each has spent epsilon {as_text(asked.epsilon)} on this question, once and for all.")
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

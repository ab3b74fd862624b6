"""Rehearses a release: publishes invented records in a temporary store, to show the files and the duration.

Records are invented from the declarations of a spec: cells are drawn evenly along every axis. Some values are null or
undeclared, some rows lie in the periods before and after, and some units have more rows than the spec counts.
"""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base.csv_text import sign_of
from dphist_pipeline.base.domain import (
    SECONDS,
    AmountAxis,
    Axis,
    BandedAxis,
    BinnedAxis,
    ByText,
    CalendarAxis,
    CategoricalAxis,
    day_of,
)
from dphist_pipeline.base.engine_versions import untested_engines
from dphist_pipeline.base.reading import QUOTE_ALL
from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.ledger.signing import KEY, Operator
from dphist_pipeline.ledger.witness_file import WITNESS
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import EVERY_ROW, Source

MARK = "REHEARSAL.txt"
NOTE = "every number is invented: the source was not opened, no store and no ledger of yours was touched"
FIRST_ROWS = 3
OWN_LEDGER = "DPHIST_LEDGER"
SEED = 20_260_105
UNDECLARED_SHARE = 0.05
NULL_SHARE = 0.02
OUTSIDE_SHARE = 0.1
MOST_ROWS_OF_A_UNIT = 50
PARTS = 7
Value = float | int | str | date | datetime | timedelta | None
Values = list[Value]
Draw = Callable[[], Values]


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal.

    Attributes:
        seconds: duration by step, in order.
        folder: of the publication, below a store's public folder.
        files: bytes by name of file below the public folder.
        columns: type by name of column of histogram.parquet.
        first_rows: values of the first rows by name of column.
        answers: where, estimate, ci_lower and ci_upper of each question; both ends are None if there is no interval.
        remarks: steps that a rehearsal leaves out, and suspicious declarations.
        kept: the folder that holds records and store; None if it was deleted.
    """

    period: str
    records: int
    cells: int
    seconds: dict[str, float]
    folder: str
    files: dict[str, int]
    columns: dict[str, str]
    first_rows: dict[str, list[object]]
    answers: list[dict[str, Any]]
    remarks: list[str]
    kept: str | None
    note: str = NOTE


def rehearse(
    spec: ReleaseSpec,
    rows: int,
    period: str | None = None,
    keep: Path | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Rehearsal:
    """Runs a whole release on invented records, in a store of its own.

    Args:
        period: key of the period; None for the latest finished one.
        keep: a new folder for records and store; None to delete them.

    Raises:
        Refused: the folder to keep is not empty.
        DphistError: the release would be refused for the same reason.
    """
    rehearsed_period = spec.latest_period(datetime.now(UTC)) if period is None else spec.period_named(period)
    with _folder(keep) as folder, _separate_environment(folder):
        return _rehearse(spec, rows, rehearsed_period, folder, keep, progress)


def _rehearse(
    spec: ReleaseSpec, rows: int, period: Period, folder: Path, keep: Path | None, progress: Callable[[str], None]
) -> Rehearsal:
    steps: list[tuple[str, float]] = []

    def step(name: str) -> None:
        steps.append((name, time.perf_counter()))
        progress(name)

    step("inventing records")
    invented = invent(spec, period, rows)
    records = write_records(invented, spec, folder)
    store = Store.create(folder / "store")
    elsewhere = {
        "derive": (),
        "keep": (),
        "source_sql": None,
        "trusted_sql": False,
        "source_table": None,
        "hive": False,
    }
    upstream = {"deps": (), "required_checks": (), "require": None}
    source = Source(glob.escape(str(records)))
    rehearsed = spec.model_copy(update={"source": source, **elsewhere, **upstream, "publish": "automatic"})
    account = Account(spec.account, str(spec.privacy_unit), spec.neighbours, spec.epsilon, None, store.id)
    ledger = store.ledger()
    ledger.open_account(account, Operator.load(), rehearsed.reading)
    for version in untested_engines():
        ledger.allow(EVERYWHERE, {"version": {"name": version}}, Operator.load(), "these records are invented")
    step("asking the ledger")
    publication = release.release(rehearsed, store, period.key, now=_release_time(spec, period), progress=step)
    step("answering")
    publication = publication.first_table
    answers = list(_answers(publication))
    ends = [start for _, start in steps[1:]] + [time.perf_counter()]
    table = pq.ParquetFile(publication.path / "histogram.parquet").read()
    first_rows = table.slice(0, FIRST_ROWS).to_pydict()
    files = sorted(path for path in store.public.rglob("*") if path.is_file())
    return Rehearsal(
        period=period.key,
        records=rows,
        cells=spec.cells,
        seconds={name: end - start for (name, start), end in zip(steps, ends, strict=True)},
        folder=str(publication.path.relative_to(store.public)),
        files={str(path.relative_to(store.public)): path.stat().st_size for path in files},
        columns={field.name: str(field.type) for field in table.schema},
        first_rows={
            name: [value.isoformat() if isinstance(value, date) else value for value in values]
            for name, values in first_rows.items()
        },
        answers=answers,
        remarks=[*invented.remarks, *_remarks(spec)],
        kept=None if keep is None else str(keep),
    )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="dphist_rehearsal_") as name:
            yield Path(name)
        return
    try:
        keep.mkdir(exist_ok=True)
        problem = "holds something already; name a new folder" if any(keep.iterdir()) else ""
    except (OSError, ValueError) as error:
        problem = f"cannot be made: {getattr(error, 'strerror', None) or 'its name is not valid'}"
    if problem:
        raise rehearsal_refused(f"{keep} {problem}")
    (keep / MARK).write_text(f"A rehearsal: {NOTE}.\n", encoding="utf-8")
    yield keep.absolute()


@contextmanager
def _separate_environment(folder: Path) -> Iterator[None]:
    """Replaces the ledger, the operator's key and the witness that the environment may name."""
    environment = dict(os.environ)
    os.environ.pop(OWN_LEDGER, None)
    os.environ |= {WITNESS: str(folder / "witness.sqlite"), KEY: str(folder / "operator.key")}
    try:
        yield
    finally:
        for name in (OWN_LEDGER, WITNESS, KEY):
            os.environ.pop(name, None)
            if name in environment:
                os.environ[name] = environment[name]


def _release_time(spec: ReleaseSpec, period: Period) -> datetime:
    """A time at which the period may be released."""
    now = datetime.now(UTC)
    if period.end is None:
        return now
    ready = datetime.combine(period.end.date() + timedelta(days=spec.release_delay_days + 2), clock(), tzinfo=UTC)
    return max(now, ready)


def _answers(publication: Release) -> Iterator[dict[str, Any]]:
    """The counts of the whole table, and of the first category or bin of its first axis."""
    axis = domain_of(publication.audit["axes"]).of_rows.axes[0]
    questions: list[tuple[str, dict[str, Any]]] = [("all cells", {})]
    if isinstance(axis, CategoricalAxis):
        questions.append((f"{axis.name} = {axis.values[0]}", {axis.name: axis.values[0]}))
    elif isinstance(axis, BinnedAxis):
        ends = tuple(map(day_of, axis.edges[:2])) if isinstance(axis, CalendarAxis) else axis.edges[:2]
        questions.append((f"the first bin of {axis.name}", {axis.name: ends}))
    for description, box in questions:
        answer = publication.answer(**box)
        low, high = (None, None) if answer.basis == "noise_only" else (answer.ci_lower, answer.ci_upper)
        yield {"where": description, "estimate": answer.estimate, "ci_lower": low, "ci_upper": high}


def _remarks(spec: ReleaseSpec) -> Iterator[str]:
    for axis in spec.read_axes:
        if axis.reads == "days" and spec.text_format and axis.column == spec.period_column:
            yield f"Odd: {axis.name} reads text only as in 2026-03-02, and `period_format` names another format"
    if spec.derive or spec.keep:
        yield "Not rehearsed: `derive` and `keep`; the records were invented with the derived columns, and all are kept"
    if spec.source_sql is not None:
        yield f"Not rehearsed: the query in {spec.source_sql}; the records were invented with the columns of its result"
    for version in untested_engines():
        if version.startswith("polars="):
            yield f"Not rehearsed: the tests passed with another Polars than {version}; a release is refused with it"
            continue
        allow = f"dphist ledger allow --engine {version} --reason TEXT"
        yield f"Not rehearsed: the tests passed with another minor version; a release needs a decision: {allow}"
    if spec.publish != "automatic":
        yield "Not rehearsed: the approval; the release was published at once"
    if spec.source_format not in ("parquet", "csv"):
        yield "Not rehearsed: reading a database or a frame; the records were in a Parquet file"
    if spec.source_pattern.lower().endswith((".gz", ".zst")) or spec.hive:
        yield "Not rehearsed: unpacking archives and reading names of folders; the records were in one plain file"
    yield "Not rehearsed: names and types of the source's columns; only a release opens it"


def rehearsal_refused(problem: str) -> Refused:
    """The release of a spec cannot be rehearsed."""
    return Refused(f"no rehearsal: {problem}", code="rehearsal_refused")


@dataclass(frozen=True, eq=False)
class InventedRecords:
    """Invented records.

    Attributes:
        columns: values by name of column, shape (rows,) each.
        remarks: values that these records, like real ones, cannot have.
    """

    columns: dict[str, Values]
    remarks: tuple[str, ...] = ()


def invent(spec: ReleaseSpec, period: Period, rows: int) -> InventedRecords:
    """Records with the columns that a spec reads, most of them in the period; always the same ones.

    Raises:
        Refused: the name of a column cannot be written to the CSV file that the spec declares.
    """
    draws = np.random.Generator(np.random.PCG64(SEED))
    uses = list(_uses(spec, period, rows, draws))
    # Dates of which no field says how text writes them may not be text.
    dates = {*spec.undeclared_dates} - {axis.column for axis in spec.read_axes if axis.reads != "days"}
    several = {column for column, _ in uses if sum(other == column for other, _ in uses) > 1} - dates
    columns: dict[str, Values] = {}
    for column, draw in uses:
        if column not in columns:
            values = draw()
            # A column that is used several times is text, which every use accepts; dates alone stay dates.
            columns[column] = [_text(value) for value in values] if column in several else values
    if spec.source_format == "csv":
        return _as_csv(spec, columns)
    return InventedRecords(columns)


def write_records(invented: InventedRecords, spec: ReleaseSpec, folder: Path) -> Path:
    """Writes the records, in the format of the spec's source, or in Parquet if that is a database; gives the path."""
    if spec.source_format != "csv":
        import pyarrow as pa
        from pyarrow import parquet

        path = folder / "records.parquet"
        parquet.write_table(pa.table(invented.columns), path)
        return path
    path = folder / "records.csv"
    quote = sign_of(spec.csv_quote)

    def field(value: Value) -> str:
        text = "" if value is None else str(value)
        special = spec.csv_quote == QUOTE_ALL or any(sign in text for sign in (spec.csv_delimiter, quote))
        return f"{quote}{text.replace(quote, quote * 2)}{quote}" if spec.csv_quote and special else text

    # A category that the encoding has no letters for stands in no such file, either.
    with path.open("w", encoding=spec.csv_encoding, errors="replace", newline="\n") as file:
        file.write(spec.csv_delimiter.join(map(field, invented.columns)) + "\n")
        for row in zip(*invented.columns.values(), strict=True):
            file.write(spec.csv_delimiter.join(map(field, row)) + "\n")
    return path


def _uses(spec: ReleaseSpec, period: Period, rows: int, draws: np.random.Generator) -> Iterable[tuple[str, Draw]]:
    """Columns with the function that draws their values; the first use of a column applies."""
    if spec.period_column is not None:
        yield spec.period_column, lambda: _moments(spec, period, rows, draws)
    if spec.privacy_unit != EVERY_ROW:
        numbers = _unit_numbers(spec, rows, draws)
        for place, column in enumerate(spec.privacy_unit.columns):
            yield column, lambda place=place: _unit_part(spec, numbers, place)  # type: ignore[misc]
    for axis in spec.read_axes:
        yield axis.column, lambda axis=axis: _axis_values(axis, rows, draws)  # type: ignore[misc]


def _moments(spec: ReleaseSpec, period: Period, rows: int, draws: np.random.Generator) -> Values:
    """Local times: most in the period, some in the periods before and after, some null."""
    if period.start is None or period.end is None:
        return [None] * rows
    start, end = period.start.replace(tzinfo=None), period.end.replace(tzinfo=None)
    positions = draws.random(rows) + draws.choice(
        [-1, 0, 1], size=rows, p=[OUTSIDE_SHARE, 1 - 2 * OUTSIDE_SHARE, OUTSIDE_SHARE]
    )
    moments = [start + timedelta(seconds=round((end - start).total_seconds() * place)) for place in positions.tolist()]
    empty = draws.random(rows) < NULL_SHARE
    pattern = spec.text_format
    times: Values = [moment.strftime(pattern) for moment in moments] if pattern else [*moments]
    return [None if lacks else value for value, lacks in zip(times, empty.tolist(), strict=True)]


def _unit_numbers(spec: ReleaseSpec, rows: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """The number of each row's privacy unit, -1 for null; some units have more rows than the spec counts."""
    mean = max(1.5, min(spec.max_rows_per_unit, MOST_ROWS_OF_A_UNIT) * 0.75)
    units = max(1, round(rows / mean))
    numbers = (units * draws.random(rows) ** 1.5).astype(np.int64)
    numbers[draws.random(rows) < NULL_SHARE] = -1
    return numbers


def _unit_part(spec: ReleaseSpec, numbers: NDArray[np.int64], place: int) -> Values:
    """The values of one of the columns that identify a privacy unit."""
    many = len(spec.privacy_unit.columns)
    parts = numbers // PARTS ** (many - 1 - place)
    if place > 0:
        parts = parts % PARTS
    return [None if number < 0 else f"u{part}" for number, part in zip(numbers, parts.tolist(), strict=True)]


def _axis_values(axis: Axis, rows: int, draws: np.random.Generator) -> Values:
    cells = draws.integers(0, axis.size, rows)
    undeclared = draws.random(rows) < UNDECLARED_SHARE
    if isinstance(axis, CategoricalAxis):
        return _categories(axis.values, cells, undeclared)
    if isinstance(axis, BandedAxis):
        first = {cell: text for text, cell in reversed([*axis.bands.items()])}
        return _categories([first[cell] for cell in sorted(first)], cells, undeclared)
    if isinstance(axis, AmountAxis):  # a few of which lie beyond the ends, as in real files
        shares = draws.uniform(0, 1, rows) + undeclared
        return list((axis.low + (axis.high - axis.low) * shares).tolist())
    return _numbers(axis, cells, undeclared, draws.uniform(0.05, 0.95, rows))


def _categories(texts: Sequence[str], cells: NDArray[np.int64], undeclared: NDArray[np.bool_]) -> Values:
    stranger = "not declared"
    while stranger in texts:
        stranger += "_"
    texts_and_other: list[str | None] = [*texts, None]
    return [
        stranger if is_undeclared else texts_and_other[cell]
        for cell, is_undeclared in zip(cells.tolist(), undeclared.tolist(), strict=True)
    ]


def _numbers(
    axis: BinnedAxis, cells: NDArray[np.int64], undeclared: NDArray[np.bool_], shares: NDArray[np.float64]
) -> Values:
    """Numbers inside the drawn bins; days on a calendar axis."""
    lower, upper = (bounds.copy() for bounds in axis.bounds)
    first, last = axis.edges[1] - axis.edges[0], axis.edges[-1] - axis.edges[-2]
    lower[np.isneginf(lower)] = axis.edges[0] - first
    upper[np.isposinf(upper)] = axis.edges[-1] + last
    numbers = lower[cells] + (upper - lower)[cells] * shares
    numbers[undeclared] = axis.edges[-1] + last * (1 + shares[undeclared])
    if axis.unit is not None:
        size = float(SECONDS[axis.unit])
        return [None if number != number else timedelta(seconds=number * size) for number in numbers.tolist()]
    if not isinstance(axis, CalendarAxis):
        return [None if number != number else number for number in numbers.tolist()]
    return [None if number != number else day_of(np.floor(number)) for number in numbers.tolist()]


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _as_csv(spec: ReleaseSpec, columns: dict[str, Values]) -> InventedRecords:
    """The same records as text; values that a CSV file without quotes cannot hold are empty, as in real files."""
    lines: dict[str, Values] = {name: [_csv_text(spec, value) for value in values] for name, values in columns.items()}
    if spec.csv_quote:
        return InventedRecords(lines)
    parting = spec.csv_delimiter
    for name in columns:
        if parting in name:
            raise rehearsal_refused(f"column {name!r} contains the delimiter; declare `csv_quote: rfc`")
    remarks = [
        f"Odd: no row can have the categories of {axis.name} that hold {parting!r}; declare `csv_quote: rfc`"
        for axis in spec.read_axes
        if isinstance(axis, ByText) and any(parting in text for text in axis.texts)
    ]
    texts: dict[str, Values] = {
        name: [None if isinstance(value, str) and parting in value else value for value in values]
        for name, values in lines.items()
    }
    return InventedRecords(texts, tuple(remarks))


def _csv_text(spec: ReleaseSpec, value: Value) -> str | None:
    text = _text(value)
    return text.replace(".", ",") if spec.decimal_comma and isinstance(value, float) and text else text

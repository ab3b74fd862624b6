"""Rehearses a release: publishes invented records in a temporary store, to show the files and the duration."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.domain import CalendarAxis, CategoricalAxis, day_of
from dphist_pipeline.engine_versions import untested
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.ledger.signing import KEY, Operator
from dphist_pipeline.ledger.witness_file import WITNESS
from dphist_pipeline.planning._invented_records import invent, rehearsal_refused, write_records
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import Source

MARK = "REHEARSAL.txt"
NOTE = "every number is invented: the source was not opened, no store and no ledger of yours was touched"
FIRST_ROWS = 3
OWN_LEDGER = "DPHIST_LEDGER"


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal.

    Attributes:
        period: key of the period.
        records: number of invented records in all periods.
        cells: number of cells of the declared grid.
        seconds: duration by step, in order.
        folder: of the publication, below a store's public folder.
        files: bytes by name of file below the public folder.
        columns: type by name of column of histogram.parquet.
        first_rows: values of the first rows by name of column.
        answers: where, estimate, ci_lower and ci_upper of each question; both ends are None if there is no interval.
        remarks: steps that a rehearsal leaves out, and suspicious declarations.
        kept: the folder that holds records and store; None if it was deleted.
        note: states that every number is invented.
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
        rows: number of records to invent.
        period: key of the period; None for the latest finished one.
        keep: a new folder for records and store; None to delete them.
        progress: called with the name of each step.

    Raises:
        Refused: the folder to keep is not empty.
        DphistError: the release would be refused for the same reason.
    """
    chosen = spec.latest_period(datetime.now(UTC)) if period is None else spec.period_named(period)
    with _folder(keep) as folder, _separate_environment(folder):
        return _rehearsed(spec, rows, chosen, folder, keep, progress)


def _rehearsed(
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
    rehearsed = _with_source(spec, records)
    account = Account(spec.account, str(spec.privacy_unit), spec.neighbours, spec.epsilon, None, store.id)
    ledger, version = store.ledger(), untested()
    ledger.open_account(account, Operator.load(), rehearsed.reading)
    if version is not None:
        ledger.allow(EVERYWHERE, {"version": {"name": version}}, Operator.load(), "these records are invented")
    step("asking the ledger")
    made = release.release(rehearsed, store, period.key, now=_release_time(spec, period), progress=step)
    step("answering")
    made = made.first_table
    answers = list(_answers(made))
    ends = [start for _, start in steps[1:]] + [time.perf_counter()]
    table = pq.ParquetFile(made.path / "histogram.parquet").read()
    first_rows = table.slice(0, FIRST_ROWS).to_pydict()
    files = sorted(path for path in store.public.rglob("*") if path.is_file())
    return Rehearsal(
        period=period.key,
        records=rows,
        cells=spec.cells,
        seconds={name: end - start for (name, start), end in zip(steps, ends, strict=True)},
        folder=str(made.path.relative_to(store.public)),
        files={str(path.relative_to(store.public)): path.stat().st_size for path in files},
        columns={field.name: str(field.type) for field in table.schema},
        first_rows={name: list(map(_as_json, values)) for name, values in first_rows.items()},
        answers=answers,
        remarks=[*invented.remarks, *_remarks(spec)],
        kept=None if keep is None else str(keep),
    )


def _as_json(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="dphist_rehearsal_") as made:
            yield Path(made)
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
    before = dict(os.environ)
    os.environ.pop(OWN_LEDGER, None)
    os.environ |= {WITNESS: str(folder / "witness.sqlite"), KEY: str(folder / "operator.key")}
    try:
        yield
    finally:
        for name in (OWN_LEDGER, WITNESS, KEY):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def _with_source(spec: ReleaseSpec, records: Path) -> ReleaseSpec:
    """The same spec with the invented records as its source, instead of files, a query or a database."""
    elsewhere = {"source_sql": None, "trusted_sql": False, "source_table": None, "hive": False}
    source, upstream = Source(glob.escape(str(records))), {"deps": (), "required_checks": (), "require": None}
    return spec.model_copy(update={"source": source, **elsewhere, **upstream, "publish": "automatic"})


def _release_time(spec: ReleaseSpec, period: Period) -> datetime:
    """A time at which the period may be released."""
    now = datetime.now(UTC)
    if period.end is None:
        return now
    ready = datetime.combine(period.end.date() + timedelta(days=spec.release_delay_days + 2), clock(), tzinfo=UTC)
    return max(now, ready)


def _answers(made: Release) -> Iterator[dict[str, Any]]:
    """The counts of the whole table, and of the first category or bin of its first axis."""
    axis = domain_of(made.audit["axes"]).axes[0]
    asked: list[tuple[str, dict[str, Any]]] = [("all cells", {})]
    if isinstance(axis, CategoricalAxis):
        asked.append((f"{axis.name} = {axis.values[0]}", {axis.name: axis.values[0]}))
    else:
        ends = tuple(map(day_of, axis.edges[:2])) if isinstance(axis, CalendarAxis) else axis.edges[:2]
        asked.append((f"the first bin of {axis.name}", {axis.name: ends}))
    for where, box in asked:
        answer = made.answer(**box)
        low, high = (None, None) if answer.basis == "noise_only" else (answer.ci_lower, answer.ci_upper)
        yield {"where": where, "estimate": answer.estimate, "ci_lower": low, "ci_upper": high}


def _remarks(spec: ReleaseSpec) -> Iterator[str]:
    for axis in spec.domain.axes:
        if isinstance(axis, CalendarAxis) and spec.text_format and axis.column == spec.period_column:
            yield f"Odd: {axis.name} reads text only as in 2026-03-02, and `period_format` names another format"
    if spec.source_sql is not None:
        yield f"Not rehearsed: the query in {spec.source_sql}; the records were invented with the columns of its result"
    if untested() is not None:
        allow = f"dphist ledger allow --engine {untested()} --reason TEXT"
        yield f"Not rehearsed: the tests passed with another minor version; a release needs a decision: {allow}"
    if spec.publish != "automatic":
        yield "Not rehearsed: the approval; the release was published at once"
    if spec.source_format not in ("parquet", "csv"):
        yield "Not rehearsed: reading a database or a frame; the records were in a Parquet file"
    if spec.source_pattern.lower().endswith((".gz", ".zst")) or spec.hive:
        yield "Not rehearsed: unpacking archives and reading names of folders; the records were in one plain file"
    yield "Not rehearsed: names and types of the source's columns; only a release opens it"

"""A release of invented records in a store of its own: what would be published, and how long it takes."""

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

from dphist_pipeline.domain import CalendarAxis, CategoricalAxis, day_of
from dphist_pipeline.ledger.ledger import Account
from dphist_pipeline.ledger.signing import KEY, Operator
from dphist_pipeline.ledger.witness_file import WITNESS
from dphist_pipeline.planning.invented_records import NotRehearsed, invent, write_records
from dphist_pipeline.releasing import pipeline
from dphist_pipeline.releasing.plans import reading_of
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import Source

MARK = "REHEARSAL.txt"
NOTE = "every number is invented: the source was not opened, no store and no ledger of yours was touched"
FIRST_ROWS = 3
OWN_LEDGER = "DPHIST_LEDGER"


@dataclass(frozen=True)
class Rehearsed:
    """What a release would look like.

    Attributes:
        period: its key.
        records: how many were invented, in all periods.
        cells: of the declared grid.
        seconds: by step, in order.
        folder: where below a store's public folder it would be published.
        files: (name below the public folder, bytes).
        columns: (name, type, the first rows' values) of histogram.parquet.
        answers: (question, estimate, lower, upper); bars are None where the mechanism pays for none.
        remarks: what a rehearsal does not show, and what it found odd.
        kept: the folder, if it was kept; `store` lies in it.
    """

    period: str
    records: int
    cells: int
    seconds: tuple[tuple[str, float], ...]
    folder: str
    files: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, str, tuple[object, ...]], ...]
    answers: tuple[tuple[str, float, float | None, float | None], ...]
    remarks: tuple[str, ...]
    kept: Path | None

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "note": NOTE,
            "period": self.period,
            "records": self.records,
            "cells": self.cells,
            "seconds": dict(self.seconds),
            "folder": self.folder,
            "files": dict(self.files),
            "columns": {name: kind for name, kind, _ in self.columns},
            "first_rows": {name: [_plain(value) for value in values] for name, _, values in self.columns},
            "answers": [dict(zip(("where", "estimate", "lower", "upper"), told, strict=True)) for told in self.answers],
            "remarks": list(self.remarks),
            "kept": None if self.kept is None else str(self.kept),
        }


def rehearse(
    spec: ReleaseSpec,
    rows: int,
    period: str | None = None,
    keep: Path | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Rehearsed:
    """Runs the whole path on invented records, and deletes all of it unless it is to be kept.

    Raises:
        NotRehearsed: where the folder to keep holds something.
        DphistError: as a release would be refused.
    """
    chosen = spec.latest_period(datetime.now(UTC)) if period is None else spec.period_named(period)
    with _folder(keep) as folder, _apart_from_the_office(folder):
        return _rehearsed(spec, rows, chosen, folder, keep, progress)


def _rehearsed(
    spec: ReleaseSpec, rows: int, period: Period, folder: Path, keep: Path | None, progress: Callable[[str], None]
) -> Rehearsed:
    steps: list[tuple[str, float]] = []

    def step(name: str) -> None:
        steps.append((name, time.perf_counter()))
        progress(name)

    step("inventing records")
    invented = invent(spec, period, rows)
    records = write_records(invented, spec, folder)
    store = Store.create(folder / "store")
    rehearsed = _over(spec, records)
    account = Account(spec.account, str(spec.privacy_unit), spec.neighbours, spec.epsilon, None, store.id)
    store.ledger().open_account(account, Operator.load(), reading_of(rehearsed))
    step("asking the ledger")
    made = pipeline.release(rehearsed, store, period.key, now=_after(spec, period), progress=step)
    step("answering")
    answers = tuple(_answers(spec, made))
    ends = [start for _, start in steps[1:]] + [time.perf_counter()]
    return Rehearsed(
        period=period.key,
        records=rows,
        cells=spec.domain.cells,
        seconds=tuple((name, end - start) for (name, start), end in zip(steps, ends, strict=True)),
        folder=str(made.path.relative_to(store.public)),
        files=_files(store.public),
        columns=_columns(made.path / "histogram.parquet"),
        answers=answers,
        remarks=(*invented.remarks, *_remarks(spec)),
        kept=keep,
    )


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
        raise NotRehearsed(f"{keep} {problem}")
    (keep / MARK).write_text(f"A rehearsal: {NOTE}.\n", encoding="utf-8")
    yield keep.absolute()


@contextmanager
def _apart_from_the_office(folder: Path) -> Iterator[None]:
    """Hides the office's own ledger, which the environment may name, its operator's key and its witness."""
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


def _over(spec: ReleaseSpec, records: Path) -> ReleaseSpec:
    """The same spec over invented records, which have the columns that its query gives."""
    elsewhere = {"source_sql": None, "trusted_sql": False, "source_table": None, "hive": False}
    source = Source(glob.escape(str(records)))
    return spec.model_copy(update={"source": source, **elsewhere, "publish": "automatic"})


def _after(spec: ReleaseSpec, period: Period) -> datetime:
    """A moment at which the period may be released."""
    now = datetime.now(UTC)
    if period.end is None:
        return now
    ready = datetime.combine(period.end.date() + timedelta(days=spec.release_delay_days + 2), clock(), tzinfo=UTC)
    return max(now, ready)


def _answers(spec: ReleaseSpec, made: Release) -> Iterator[tuple[str, float, float | None, float | None]]:
    """The whole table, and the first declared part of its first axis."""
    axis = spec.domain.axes[0]
    asked: list[tuple[str, dict[str, Any]]] = [("all cells", {})]
    if isinstance(axis, CategoricalAxis):
        asked.append((f"{axis.name} = {axis.values[0]}", {axis.name: axis.values[0]}))
    else:
        ends = tuple(map(day_of, axis.edges[:2])) if isinstance(axis, CalendarAxis) else axis.edges[:2]
        asked.append((f"the first bin of {axis.name}", {axis.name: ends}))
    for where, box in asked:
        answer = made.answer(**box)
        bars = (None, None) if answer.basis == "noise_only" else (answer.lower, answer.upper)
        yield where, answer.estimate, *bars


def _files(public: Path) -> tuple[tuple[str, int], ...]:
    found = sorted(path for path in public.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(public)), path.stat().st_size) for path in found)


def _columns(histogram: Path) -> tuple[tuple[str, str, tuple[object, ...]], ...]:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(histogram).read()
    rows = table.slice(0, FIRST_ROWS).to_pydict()
    return tuple((field.name, str(field.type), tuple(rows[field.name])) for field in table.schema)


def _remarks(spec: ReleaseSpec) -> Iterator[str]:
    for axis in spec.domain.axes:
        if isinstance(axis, CalendarAxis) and spec.period_format and axis.column == spec.period_column:
            yield f"Odd: {axis.name} reads text only as in 2026-03-02, and `period_format` names another form"
    if spec.source_sql is not None:
        yield f"Not rehearsed: the query in {spec.source_sql}; records were invented with the columns that it gives"
    if spec.publish == "manual":
        yield "Not rehearsed: waiting for an approval; the release was published at once"
    if spec.source_format not in ("parquet", "csv"):
        yield "Not rehearsed: reading a database; the records lay in a Parquet file"
    if spec.source_pattern.lower().endswith((".gz", ".zst")) or spec.hive:
        yield "Not rehearsed: unpacking archives and reading folders' names; the records lay in one plain file"
    yield "Not rehearsed: names and types of the source's columns; only a release opens it"


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date | datetime) else value

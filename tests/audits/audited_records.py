"""From records to published files: two releases of neighbouring tables, the second with the first one's answers.

All randomness is kept: what measurements answered, and the key that orders a unit's rows. The clock stands still.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from grey_box import ROW_MEASUREMENTS, Counts, Log, LoggedCounts, losses
from office import AGE, WARD, Office
from one_engine import one_engine

from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.measurements import PrivateRows
from dphist_pipeline.ledger import opened
from dphist_pipeline.releasing import quality_queries, sanitizing
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import Run

SCHEMA = pa.schema(
    [
        ("patient", pa.string()),
        ("age", pa.float64()),
        ("ward", pa.string()),
        ("born", pa.string()),
        ("seen", pa.string()),
    ]
)
KINDS = ["a unit more", "a unit less", "another unit", "rows without a unit"]
AGES = [None, float("nan"), -3.0, 0.0, 24.999, 25.0, 50.0, 99.0, 120.0, float("inf")]
WARDS = [None, "surgery", "medicine", "x", "", "SURGERY"]
BORN = [None, "1980-02-29", "1940", "2026-03-02", "0001-01-01", "infinity", "294247-01-10", "1.2.1980", "no day"]
SEEN = [None, "02.03.2026", "29.02.1980", "31.12.9999", "31.02.2026", "2026-03-02", ""]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Tables:
    """Two tables of records that one privacy unit tells apart, in any order of rows."""

    kind: str
    here: pa.Table
    there: pa.Table

    @property
    def neighbours(self) -> str:
        """Under which notion they are neighbours."""
        return "substitute" if self.kind == "another unit" else "add_remove"


def tables(seed: int, kind: str) -> Tables:
    """Invented records: some rows hold nothing that is declared, some name no unit, some units have many rows."""
    choice = np.random.default_rng([seed, KINDS.index(kind)])
    people = {f"p{number}": _rows(choice, f"p{number}", 6) for number in range(7)}
    people["nobody"] = _rows(choice, None, 3)
    more = dict(people)
    if kind in ("a unit less", "another unit"):
        more.pop("p3")
    if kind in ("a unit more", "another unit"):
        more = {"new": _rows(choice, "new", 9), **more}
    if kind == "rows without a unit":
        more = {"none": _rows(choice, None, 9), **more}
    return Tables(kind, _table(choice, people), _table(choice, more))


def _rows(choice: np.random.Generator, unit: str | None, most: int) -> list[Row]:
    many = int(choice.integers(1, most + 1))
    return [(unit, *(some[choice.integers(len(some))] for some in (AGES, WARDS, BORN, SEEN))) for _ in range(many)]


def _table(choice: np.random.Generator, people: Mapping[str, list[Row]]) -> pa.Table:
    rows = [row for some in people.values() for row in some]
    shuffled = [rows[number] for number in choice.permutation(len(rows))]
    return pa.table([list(column) for column in zip(*shuffled, strict=True)], schema=SCHEMA)


class JournalLog(Log):
    """The log of a release, whose answers also go to its journal."""

    def __init__(self, frozen: Mapping[str, Counts] | None = None) -> None:
        super().__init__(frozen)
        self.journal: Journal | None = None
        self.exact = np.zeros(0, dtype=np.int64)

    def answer(self, step: str, question: Mapping[str, str], draw: Callable[[], Counts]) -> Counts:
        answered = super().answer(step, question, draw)
        assert self.journal is not None
        return self.journal.answer(step, question, lambda: answered)


@dataclass(frozen=True)
class Released:
    """What came of one release: all that the world sees, and what the measurements did."""

    code: int
    said: str
    files: dict[str, bytes]
    log: JournalLog


@contextmanager
def _watched(log: JournalLog, key: bytes) -> Iterator[None]:
    def private_counts(domain: Any, sensitivity: int, load: Any, journal: Journal, parts: int) -> LoggedCounts:
        def kept() -> Counts:
            log.exact = load()
            return log.exact

        log.journal = journal
        return LoggedCounts(domain, sensitivity, kept, log, parts)

    def private_rows(limits: Any, load: Any, journal: Journal) -> PrivateRows:
        return PrivateRows(limits, load, log)

    with ExitStack() as stack:
        stack.enter_context(one_engine())
        stack.enter_context(patch.object(sanitizing, "PrivateCounts", private_counts))
        stack.enter_context(patch.object(quality_queries, "PrivateRows", private_rows))
        stack.enter_context(patch.object(Run, "refresh_catalogue", lambda run: None))
        stack.enter_context(patch.object(cube, "secrets", SimpleNamespace(token_bytes=lambda size: key[:size])))
        stack.enter_context(patch.object(opened, "utc_now", lambda: "2026-11-02T06:00:00Z"))
        stack.enter_context(patch("secrets.token_hex", lambda size: "00" * size))
        stack.enter_context(patch.object(os, "fsync", lambda handle: None))  # nothing crashes here
        stack.enter_context(log.listening())
        yield


class Bureau:
    """An office that releases table after table from the same empty store."""

    def __init__(self, office: Office, neighbours: str = "add_remove", **spec: Any) -> None:
        self.office = office.opened()
        if neighbours == "substitute":
            shutil.rmtree(office.store)
            opened = ["open", "health", "--privacy-unit", "patient", "--neighbours", neighbours, "--total", "10"]
            for words in (["init"], ["ledger", *opened]):
                assert office.run(*words, "--store", office.store).code == 0
        self.office.write_spec(neighbours=neighbours, **{"axes": [AGE, WARD], **spec})
        self.start, self.witness = office.folder.with_name("start"), office.witness.read_bytes()
        self.accepted = 0
        shutil.copytree(office.store, self.start)

    def release(self, table: pa.Table, log: JournalLog, key: bytes = bytes(range(32))) -> Released:
        """One release, from scratch."""
        shutil.rmtree(self.office.store)
        shutil.copytree(self.start, self.office.store)
        self.office.witness.write_bytes(self.witness)
        self.office.write_records(table)
        with _watched(log, key):
            ran = self.office.release()
        public = self.office.store / "public"
        files = {str(path.relative_to(public)): path.read_bytes() for path in public.rglob("*") if path.is_file()}
        return Released(ran.code, ran.out + ran.err, files, log)

    def all_findings(self, pairs: Iterable[Tables]) -> list[str]:
        """What is wrong between releases of any of these neighbours; that all were refused is wrong, too."""
        found = [finding for pair in pairs for finding in self.findings(pair)]
        return found if self.accepted else [*found, "no release was accepted, so nothing was compared"]

    def findings(self, pair: Tables) -> list[str]:
        """What is wrong between releases of two neighbours; nothing, for a private release."""
        first = self.release(pair.here, JournalLog())
        second = self.release(pair.there, JournalLog(first.log.answers))
        if (first.code, first.said) != (second.code, second.said):
            return ["a neighbour makes a release end otherwise, or say something else"]
        if [asked.shape() for asked in first.log.asked] != [asked.shape() for asked in second.log.asked]:
            return ["asks its measurements something else on a neighbour"]
        found = [] if first.files == second.files else ["the same answers were published in other bytes"]
        if "unexpected" in first.said:
            return [first.said]
        if first.code:
            return found  # both were refused before their counts were read
        self.accepted += 1
        spec = ReleaseSpec.load(self.office.folder / "spec.yaml")
        asked = first.log.asked, second.log.asked
        if spec.family is None:
            moved = (second.log.exact - first.log.exact).reshape(spec.domain.shape)
        else:
            # The grid of a family is never counted: its marginals, all of the same rows, tell how far it moved.
            changes = [
                there.computed - here.computed
                for here, there in zip(*asked, strict=True)
                if here.measurement not in ROW_MEASUREMENTS
            ]
            if len({int(change.sum()) for change in changes}) > 1:
                found.append("tables count different rows")
            moved = np.array([max(int(np.abs(change).sum()) for change in changes)])
        return found + losses(*asked, moved, self.allowed, spec.epsilon).findings

    @property
    def allowed(self) -> int:
        """The sensitivity that was declared and that noise was bought for."""
        return ReleaseSpec.load(self.office.folder / "spec.yaml").sensitivity

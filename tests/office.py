"""A small statistical office in one folder: a project with records, a store, and the command line in this process."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering import building
from dphist_pipeline.cli import app as cli
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing.pictures import Picture
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store

AGE = {"column": "age", "start": 0, "stop": 100, "width": 25, "below": True, "above": True, "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
SPEC: dict[str, Any] = {
    "release": "wards",
    "source": "data/admissions.parquet",
    "privacy_unit": "patient",
    "max_rows_per_unit": 2,
    "neighbours": "add_remove",
    "epsilon": "1/2",
    "account": "health",
    "mechanism": "geometric",
    "axes": [AGE, WARD],
}
RECORDS: dict[str, list[Any]] = {
    "patient": ["ann", "bob", "bob", "cid"],
    "age": [3.0, 30.0, 99.5, 120.0],
    "ward": ["surgery", "medicine", "surgery", None],
}
FILES = ["audit.json", "audit.parquet", "card.html", "deployment.yaml", "groups.parquet", "histogram.parquet"]
# Public files that are made from the published ones.
DERIVED = ("catalog.duckdb", "current.json", "cells.parquet", "cells.csv", "cells.xlsx", "index.html")
DERIVED += ("script.js", "release.js", "cells.js")
OPEN_HEALTH = ["open", "health", "--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "10"]
# The commands that make a store of each state.
WAYS = {"undecided": (["init"],), "opened": (["init"], ["ledger", *OPEN_HEALTH])}


def left_by_older_version(store: Path, release: str, period: str, revision: int, run: str) -> Path:
    """The cube that a killed run by version 0.2 leaves under Dagster, beside the mark that it is kept."""
    folder = store / "confidential" / "runs" / release / period / str(revision) / run
    folder.mkdir(parents=True, exist_ok=True)
    folder.with_name(f"{run}.kept").touch()
    (folder / "cube.npy").write_bytes(b"exact")
    return folder / "cube.npy"


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What a script would read."""
        return json.loads(self.out)


def ran(*words: str | Path) -> Ran:
    """Runs `dphist` with these words in this process, as the installed command does."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["dphist", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        return Ran(int(end.code or 0), out.getvalue(), err.getvalue())
    finally:
        sys.argv = before
    raise AssertionError("the command line always says how it ended")


class Office:
    """The project folder `folder`; `spec.yaml`, `data/` and `store/` lie in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "store"
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").touch()
        self.witness = folder.with_name(f"{folder.name}.witness.sqlite")
        self._allowed: tuple[str, object] | None = None  # what was, and the ledger then

    def run(self, *words: str | Path) -> Ran:
        """Runs `dphist` with these words, as the installed command does."""
        with self.witnessed():
            return ran(*words)

    @contextlib.contextmanager
    def witnessed(self) -> Iterator[None]:
        """Has this office its own witness, so that it can be copied, witness and all."""
        with mock.patch.dict(os.environ, {"DPHIST_WITNESS": str(self.witness)}):
            yield

    def opened(self) -> Office:
        """The office with a store, an account, records and a spec, whose source is allowed.

        Its store and witness are a copy of those that this process made first, with the same ids; see `of_its_own`.
        """
        self._made("opened")
        self.write_records()
        self.write_spec()
        return self

    def with_release(self, records: Mapping[str, list[Any]] = RECORDS, **changes: Any) -> Office:
        """As `opened`, then a release of these records by a spec with these changes; see `prepared`."""
        return self.prepared(_Releasing(json.dumps(records), json.dumps(changes)))

    def prepared(self, prepare: Callable[[Office], object]) -> Office:
        """As `opened` and then `prepare`, which is done once in this process: the office is a copy of that one."""
        operator, made_by = Operator.load_or_make().public, (Picture.svg, building.build_apart)
        return _prepared_once(prepare, operator, *made_by).copied_to(self.folder)

    def undecided(self) -> Office:
        """The office with a store in which nothing is decided: no account, no source; a copy, as in `opened`."""
        self._made("undecided")
        return self

    def _made(self, state: str) -> None:
        if os.environ.get("DPHIST_LEDGER"):  # on a server
            for words in WAYS[state]:
                self._done(*words)
        else:
            self._copy(made_once(Operator.load_or_make().public)[state])

    def _copy(self, made: Office) -> None:
        shutil.copytree(made.store, self.store)
        shutil.copy2(made.witness, self.witness)

    def of_its_own(self) -> Office:
        """The office with a store of its own, and an account."""
        for words in WAYS["opened"]:
            self._done(*words)
        return self

    def _done(self, *words: str) -> None:
        ran = self.run(*words, "--store", self.store)
        assert ran.code == 0, ran.err

    def release(self, *more: str) -> Ran:
        """Runs `dphist release spec.yaml`."""
        return self.run("release", self.folder / "spec.yaml", *more)

    def released(self, *more: str) -> Ran:
        """As `release`, and it must succeed."""
        ran = self.release(*more)
        assert ran.code == 0, ran.err
        return ran

    def write_spec(self, **changes: Any) -> None:
        """Writes the spec with some fields changed; `...` leaves a field out. JSON is YAML."""
        fields = {name: value for name, value in {**SPEC, **changes}.items() if value is not ...}
        self.write_attributes(json.dumps(fields, ensure_ascii=False))

    def write_attributes_alone(self, **changes: Any) -> None:
        """Writes the spec with some fields changed, and decides nothing."""
        yaml = json.dumps({**SPEC, **changes}, ensure_ascii=False)
        (self.folder / "spec.yaml").write_text(f"type: dphist_pipeline.HistogramRelease\nattributes: {yaml}\n")

    def write_attributes(self, yaml: str) -> None:
        """Writes a spec whose attributes are this YAML."""
        (self.folder / "spec.yaml").write_text(f"type: dphist_pipeline.HistogramRelease\nattributes: {yaml}\n")
        if (self.store / "ledger.sqlite").exists():
            self.allow()

    def allow(self, name: str = "spec.yaml") -> None:
        """Decides, as an operator would, that a spec may read what it asks for; not where the spec is wrong."""
        with contextlib.suppress(DphistError), self.witnessed():
            spec = load_spec(self.folder / name, self.store)
            asked: list[tuple[dict[str, Any], str]] = [({"source": spec.reading.facts()}, "")]
            if spec.source_sql is not None:
                query = {"sha256": spec.source_sql.query.sha256, "name": str(spec.source_sql), "tries": True}
                asked.append(({"query": query}, "for a test"))
            wanted = repr((spec.account, spec.privacy_unit, asked))
            if self._allowed == (wanted, self._ledger_as_it_is()):  # what is allowed again changes nothing
                return
            ledger = Store.open(self.store).ledger()
            if ledger.account(spec.account).privacy_unit == str(spec.privacy_unit):
                for what, reason in asked:
                    ledger.allow(spec.account, what, Operator.load(), reason)
            self._allowed = wanted, self._ledger_as_it_is()

    def _ledger_as_it_is(self) -> object:
        """What tells whether its file was written to; never equal for a ledger elsewhere."""
        file = self.store / "ledger.sqlite"
        return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else object()

    def write_records(self, records: Any = RECORDS, name: str = "data/admissions.parquet", **options: Any) -> None:
        """Writes records as Parquet: a table, or what makes one."""
        pq.write_table(pa.table(records), self.folder / name, **options)

    def published(self, release: str = "wards", period: str = "all", revision: int = 1) -> Path:
        """The folder of a published release."""
        return self.store / "public" / release / f"period={period}" / f"revision={revision}"

    def entries(self) -> list[tuple[Any, ...]]:
        """Every row of the ledger, read without our own code."""
        with closing(sqlite3.connect(self.store / "ledger.sqlite")) as connection:
            return connection.execute("SELECT * FROM ledger_entry ORDER BY number").fetchall()

    def state(self) -> dict[str, object]:
        """All that a refusal must leave as it is: every path in the project with its content, and the ledger's age."""
        found: dict[str, object] = {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            for path in sorted(self.folder.rglob("*"))
        }
        ledger = self.store / "ledger.sqlite"
        return {**found, "changed at": ledger.stat().st_mtime_ns if ledger.exists() else None}

    def copied_to(self, folder: Path) -> Office:
        """The same office elsewhere, store, witness and all."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        copy = Office(folder)
        if self.witness.exists():
            shutil.copy(self.witness, copy.witness)
            copy.allow()  # the records lie elsewhere now
        return copy


@dataclass(frozen=True)
class _Releasing:
    """Writes records and a spec, and releases; both as JSON, so that equal ones are known."""

    records: str
    changes: str

    def __call__(self, office: Office) -> None:
        office.write_records(json.loads(self.records))
        office.write_spec(**json.loads(self.changes))
        office.released()


@cache
def _prepared_once(prepare: Callable[[Office], object], operator: str, *stand_ins: object) -> Office:
    """An office of this operator, to be copied; another one where a module draws charts or builds otherwise."""
    from recorded_draws import drawn_from  # pytest rewrites it, after it imported this

    folder = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Office(folder / "office").opened()
    with drawn_from("prepared once"), contextlib.chdir(made.folder):  # whichever test asks first
        prepare(made)
    return made


@cache
def made_once(operator: str) -> dict[str, Office]:
    """Offices of this operator to be copied, without and with an account: to make them takes a third of a second."""
    folder = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    undecided, opened = Office(folder / "undecided"), Office(folder / "opened")
    # Whichever module asks first, they are the same: nothing stands in for the catalogue and the pages beside it.
    with mock.patch.object(building, "build_apart", building.build):
        undecided._done("init")
        opened._copy(undecided)
        for words in WAYS["opened"][1:]:
            opened._done(*words)
    return {"undecided": undecided, "opened": opened}

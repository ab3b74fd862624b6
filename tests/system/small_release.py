"""A small release, whole from spec to store, and children that run it: many at once, or killed on their way.

Children come from a fork server that has loaded the package and run none of it, so each starts warm and none
inherits the threads of Polars or DuckDB.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import quick_catalogue
import sqlalchemy as sa
from database_server import Server
from fork_server import PROCESSES
from office import DERIVED
from quick_pictures import UNDRAWN

from dphist_pipeline.answering import building, catalogue
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Account, Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing import _index_pages as index_pages
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store

NAME, ACCOUNT, EPSILON = "small_release", "health", Fraction(1, 10)
WEEKS = [(date(2024, 1, 1) + timedelta(weeks=week)).isoformat() for week in range(20)]
WEEK = WEEKS[0]
FILES = {"histogram.parquet", "groups.parquet", "audit.parquet", "card.html", "deployment.yaml", "audit.json"}
SPEC: dict[str, Any] = {
    "release": NAME,
    "source": "patients.parquet",
    "privacy_unit": "patient_id",
    "max_rows_per_unit": 2,
    "neighbours": "add_remove",
    "epsilon": "1/10",  # so noisy that two draws of 20 cells never agree
    "account": ACCOUNT,
    "mechanism": "geometric",
    "axes": [
        {"column": "age", "start": 0, "stop": 50, "width": 10},
        {"column": "ward", "values": ["surgery", "medicine", "maternity"], "other": True},
    ],
    "period": "week",
    "period_column": "admitted_on",
    "period_format": "iso",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.chmod"}


@dataclass(frozen=True)
class Outcome:
    """What a child said at its end; one that was killed says nothing."""

    killed: bool = False
    refusal: str = ""
    replayed: bool = False
    revision: int = 0
    files: tuple[tuple[str, str], ...] = ()  # of the release, as it saw them, with their digests
    boundaries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Project:
    """A folder with a spec, a source and a store, whose ledger and witness lie beside it or on a server.

    `first`: the project that another host of the same store works on, which has the ledger and the witness.
    `catalogued`: whether children build its catalogue, which takes longer than all the rest.
    """

    folder: Path
    server: Server | None = None
    first: Project | None = None
    catalogued: bool = False

    @classmethod
    def make(
        cls,
        folder: Path,
        total: Fraction = Fraction(10),
        server: Server | None = None,
        catalogued: bool = False,
        rows: dict[str, list[Any]] | None = None,
        terms: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Project:
        """Writes the spec and the source, makes the store and opens the account, with other rows and terms if given."""
        made = cls(folder, server, catalogued=catalogued)
        if server is not None:
            for what in ("ledger", "witness"):
                server.psql("postgres", f"CREATE DATABASE {made.database(what)}")
        folder.mkdir(parents=True)
        made.write_spec(**changes)
        days = [date.fromisoformat(week) + timedelta(days=day) for week in WEEKS for day in range(5)]
        rows = rows or {
            "patient_id": [f"patient-{number % 33}" for number in range(len(days))],
            "age": [number * 7 % 50 for number in range(len(days))],
            "ward": [("surgery", "medicine", "unheard of")[number % 3] for number in range(len(days))],
            "admitted_on": days,
        }
        pq.write_table(pa.table(rows), made.source)
        with made.witnessed():
            store = Store.create(made.root)
            quick_catalogue.place(store.public)
        account = Account(ACCOUNT, str(SPEC["privacy_unit"]), str(SPEC["neighbours"]), total, None, store.id)
        reading = ReleaseSpec.load(made.spec).reading
        if terms is not None:
            account, reading = replace(account, **terms), replace(reading, unit_kinds=("text",))
        made.store().ledger().open_account(account, Operator.load(), reading)
        return made

    @contextmanager
    def witnessed(self) -> Iterator[None]:
        """Has this project its own witness, so that it can be copied, witness and all."""
        with mock.patch.dict(os.environ, self.environment()):
            yield

    def environment(self) -> dict[str, str]:
        """Where this project's witness is, and its ledger where that is not in its store."""
        if self.first is not None:
            file = {"DPHIST_LEDGER": f"sqlite:///{self.first.root}/ledger.sqlite"}
            return file | self.first.environment()
        if self.server is None:
            return {"DPHIST_WITNESS": str(self.folder / "witness.sqlite")}
        names = {f"DPHIST_{what.upper()}": self.database(what) for what in ("ledger", "witness")}
        return {name: self.server.address(database) for name, database in names.items()}

    def database(self, what: str) -> str:
        """The name of this project's database on the server."""
        return f"{what}_{hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]}"

    def store(self) -> Store:
        """The store, whatever this process's environment says."""
        places = self.environment()
        return Store.open(self.root, places.get("DPHIST_LEDGER"), places["DPHIST_WITNESS"])

    def copy(self, folder: Path) -> Project:
        """The same project, store, witness and all, somewhere else."""
        shutil.copytree(self.folder, folder)
        copy = replace(self, folder=folder)
        for what in ("ledger", "witness") if self.server else ():
            self.server.psql("postgres", f"CREATE DATABASE {copy.database(what)} TEMPLATE {self.database(what)}")
        copy.allow()
        return copy

    def another_host(self, folder: Path) -> Project:
        """Another host of the same store, with a spec and a source of its own."""
        made = Project(folder, self.server, self)
        folder.mkdir()
        for file in (self.spec, self.source):
            shutil.copy(file, folder)
        with made.witnessed():
            quick_catalogue.place(Store.join(made.root).public)
        made.allow()
        return made

    def allow(self) -> None:
        """Decides that the spec may read its source where it lies now."""
        reading = ReleaseSpec.load(self.spec).reading
        self.store().ledger().allow(ACCOUNT, {"source": reading.facts()}, Operator.load())

    def write_spec(self, **changes: Any) -> None:
        """Writes the spec with some attributes changed."""
        document = {"type": "dphist_pipeline.HistogramRelease", "attributes": {**SPEC, **changes}}
        self.spec.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML

    @property
    def spec(self) -> Path:
        return self.folder / "spec.yaml"

    @property
    def source(self) -> Path:
        return self.folder / "patients.parquet"

    @property
    def root(self) -> Path:
        return self.folder / "store"

    def published(self, period: str = WEEK, revision: int = 1) -> Path:
        return Store.open(self.root).published(Key(NAME, period, revision))

    def release(
        self, period: str = WEEK, reason: str = "", progress: Callable[[str], None] = lambda step: None
    ) -> Release:
        """Releases in this process."""
        with self.witnessed():
            return release.release(ReleaseSpec.load(self.spec), self.root, period, reason=reason, progress=progress)

    def ledger(self) -> Ledger:
        """The ledger, whole and in agreement with every audit."""
        ledger = self.store().ledger()
        ledger.verify()
        return ledger

    def spent(self) -> Fraction:
        ledger = self.ledger()
        return Statement.of(ledger, ACCOUNT).spent

    def files(self, below: str = "") -> dict[str, str]:
        """Every file in a folder of the store, with its digest, but those that are made from others."""
        top = self.root / below
        files = sorted(path for path in top.rglob("*") if path.is_file() and path.name not in DERIVED)
        return {str(path.relative_to(top)): _digest(path) for path in files}

    def forget(self, below: str) -> None:
        """Deletes what lies in a folder of the store."""
        for path in (self.root / below).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def charges(project: Project, period: str = WEEK) -> list[int]:
    """The revisions that were charged for a period."""
    return [charge.revision for charge in project.ledger().charges(NAME, period)]


def assert_whole(published: Path) -> None:
    """All files are there, and are those that the audit names."""
    assert {path.name for path in published.iterdir()} == FILES
    audit = json.loads((published / "audit.json").read_bytes())
    for name, digest in audit["files"].items():
        assert _digest(published / name) == digest, name


def start(
    project: Project,
    period: str = WEEK,
    reason: str = "",
    *,
    kill_at: int = 0,
    wait: Any = None,
    reject: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Outcome:
    """Releases (or rejects) in a child and waits for it; it kills itself right before boundary `kill_at`, from 1.

    `prepare`: what the child calls before, a function of a module or a `partial` of one.
    """
    ours, theirs = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=_child, args=(project, period, reason, kill_at, wait, reject, prepare, theirs))
    child.start()
    theirs.close()
    with ours:
        # Not its exit code: threads that wait for children take those from each other.
        try:
            outcome = Outcome(**ours.recv())
        except EOFError:
            outcome = Outcome(killed=True)
    child.join()
    return outcome


def at_once(calls: list[tuple[Project, str, str]]) -> list[Outcome]:
    """Releases in as many children as there are calls, all let loose at the same moment."""
    barrier = PROCESSES.Barrier(len(calls))
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: start(*call, wait=barrier), calls))


def _child(
    project: Project,
    period: str,
    reason: str,
    kill_at: int,
    wait: Any,
    reject: bool,
    prepare: Callable[[], None] | None,
    said: Connection,
) -> None:
    if prepare is not None:
        prepare()
    boundaries = prepared(project, kill_at)
    if wait is not None:
        wait.wait(300)
    try:
        outcome = _rejected(project, period, reason) if reject else _released(project, period, reason)
    except Exception as error:
        outcome = {"refusal": error.code if isinstance(error, DphistError) else repr(error)}
    said.send({**outcome, "boundaries": tuple(boundaries)})


def prepared(project: Project, kill_at: int) -> list[str]:
    """Makes this process a child of a test; notes its boundaries, and kills it right before `kill_at`, from 1."""
    if project.catalogued:
        building.build_apart = building.build  # spares a new process, and has its boundaries here
    else:  # as in conftest.py
        building.build_apart = lambda public, scratch, anew=False: None
        catalogue.Catalogue.is_up_to_date = lambda self, folder: True
        index_pages.shows = lambda public, folder: True
    for undrawn in UNDRAWN:
        setattr(*undrawn)
    os.environ |= {**project.environment(), "DPHIST_STORE": str(project.root)}
    return _watch(project.root, kill_at)


def _released(project: Project, period: str, reason: str) -> dict[str, Any]:
    made = project.release(period, reason)
    files = tuple(sorted((path.name, _digest(path)) for path in made.path.iterdir()))
    return {"replayed": made.replayed, "revision": made.audit["revision"], "files": files}


def _rejected(project: Project, period: str, reason: str) -> dict[str, Any]:
    return {"revision": approvals.reject(Store.open(project.root), NAME, period, reason).revision}


def _watch(root: Path, kill_at: int) -> list[str]:
    """Notes every operation that makes something durable or visible, and dies right before the one asked for.

    What lies between two of them leaves no trace, so right before one is right after the one before it.
    """
    seen: list[str] = []

    def boundary(name: str) -> None:
        seen.append(name)
        if len(seen) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and arguments[2] & _WRITING and _lies_in(root, arguments[0])):
            boundary(event)

    def before(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            boundary(name)
            return operation(*arguments)

        return wrapped

    sys.dont_write_bytecode = True
    sys.addaudithook(hook)
    os.fsync = before("os.fsync", os.fsync)
    sa.event.listen(sa.Engine, "begin", lambda connection: boundary("begin"))
    sa.event.listen(sa.Engine, "commit", lambda connection: boundary("commit"))
    return seen


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lies_in(root: Path, path: object) -> bool:
    return isinstance(path, str | Path) and Path(path).is_relative_to(root)

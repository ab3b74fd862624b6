"""The ledger's table, what every database that holds it must do, and the SQLite file; `postgresql` is the other one."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import ClassVar, Literal, Self

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dphist_pipeline.base.files import network_disk, sync_folder
from dphist_pipeline.ledger import errors as errors

Intent = Literal["read", "write", "rehearse"]
_opening: ContextVar[Path] = ContextVar("_opening")  # the file that this thread connects to
BUSY_SECONDS = 60.0

ENTRIES = sa.Table(
    "ledger_entry",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("account", sa.Text),
    sa.Column("release", sa.Text),
    sa.Column("period", sa.Text),
    sa.Column("revision", sa.Integer),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("previous_hash", sa.Text, sa.ForeignKey("ledger_entry.hash"), unique=True),
    sa.Column("made_at", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    # Kinds are not listed here, so that a later version can add one; reading refuses an unknown kind.
    sa.CheckConstraint("(number = 1) = (previous_hash IS NULL)", name="chained"),
    sa.CheckConstraint("(number = 1) = (kind = 'created')", name="created_first"),
    sa.CheckConstraint("kind = 'created' OR account IS NOT NULL", name="of_an_account"),
    sa.CheckConstraint(
        "kind NOT IN ('charged', 'published') OR (release IS NOT NULL AND period IS NOT NULL AND revision >= 1)",
        name="of_a_release",
    ),
)
_columns = ENTRIES.c


def _once(name: str, kind: str, *columns: sa.Column[object]) -> sa.Index:
    only = _columns.kind == kind
    return sa.Index(name, *columns, unique=True, sqlite_where=only)


_KEY = (_columns.release, _columns.period, _columns.revision)
_once("charged_once", "charged", *_KEY)
_once("published_once", "published", *_KEY)
_once("opened_once", "opened", _columns.account)
sa.Index("by_account", _columns.account)
sa.Index("by_period", _columns.release, _columns.period)

_REFUSAL = "BEGIN SELECT RAISE(ABORT, 'the ledger only grows, entry by entry'); END"
_TRIGGERS = {
    # Without the third, INSERT OR REPLACE would overwrite an entry: it fires no DELETE trigger.
    "never_updated": f"BEFORE UPDATE ON ledger_entry {_REFUSAL}",
    "never_deleted": f"BEFORE DELETE ON ledger_entry {_REFUSAL}",
    "always_next": (
        "BEFORE INSERT ON ledger_entry WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 "
        "FROM ledger_entry) OR NEW.previous_hash IS NOT (SELECT hash FROM ledger_entry ORDER BY number DESC "
        f"LIMIT 1) {_REFUSAL}"
    ),
}
_TRIGGER_SQL = {name: f"CREATE TRIGGER {name} {rule}" for name, rule in _TRIGGERS.items()}


class Database(ABC):
    """A database that holds a ledger: transactions on it, and its errors turned into ours.

    No connection outlives a transaction, so a process may fork between any two calls.
    """

    noun: ClassVar[str] = "ledger"
    tables: ClassVar[sa.MetaData] = ENTRIES.metadata
    engine: ClassVar[str]  # what it is, as entries name it
    where: str  # for people; never holds a password
    url: sa.URL  # its address, without a password
    place: Path | str  # what tells two of them apart: a file's path, a server's address

    @classmethod
    def parse_address(cls, url: str | sa.URL) -> sa.URL:
        """The parts of an address; an error for anything else."""
        with suppress(ArgumentError, ValueError):
            return sa.make_url(url)
        raise cls.address_error("the address is no SQLAlchemy URL")

    @classmethod
    def address_error(cls, problem: str) -> errors.LedgerError:
        """The error for an address where it cannot be kept."""
        return errors.address_refused(cls.noun, problem)

    def missing(self) -> errors.LedgerError:
        """The error where there is none."""
        return errors.LedgerError("ledger_missing", where=self.where)

    def damage_error(self, problem: str) -> errors.LedgerError:
        """The error for a database that does not hold what it should."""
        return errors.LedgerError("ledger_altered", where=self.where, problem=problem)

    def unusable(self, problem: str | None) -> errors.LedgerError:
        """The error for what the file system, the server or the database engine does not let us use."""
        return errors.LedgerError(
            "file_unusable", noun=self.noun, where=self.where, problem=problem or "the file system refused"
        )

    @abstractmethod
    def creation(self) -> AbstractContextManager[Database]:
        """The place to make the tables in; they get their name once they are complete, and replace nothing."""

    @abstractmethod
    def transaction(self, intent: Intent) -> AbstractContextManager[sa.Connection]:
        """One transaction; unless it only reads, it holds the write lock from its first statement.

        'rehearse' writes, or finds out whether that would work, and rolls everything back.
        """

    @abstractmethod
    def create_tables(self, connection: sa.Connection, entries: Sequence[Mapping[str, object]] = ()) -> None:
        """Makes the tables, their indexes and the triggers that keep them append-only.

        `entries`: of a whole ledger, which were judged by reading it; rules for the next entry alone may refuse them.
        """

    @abstractmethod
    def verify_tables(self, connection: sa.Connection) -> None:
        """Refuses a database without our tables, or with other triggers or fewer indexes on them."""

    def lacks_list(self, connection: sa.Connection, unstated: bool, waits: bool) -> bool:
        """Whether the database itself judges charges, and cannot know which decisions wait for a second signature.

        `unstated`: no entry says what waits; `waits`: something does.
        """
        return False

    @abstractmethod
    def discard(self) -> None:
        """Takes away what was made a moment ago, where the store that it was made for cannot be."""

    @abstractmethod
    def require_there(self) -> None:
        """Refuses where there is none, before a transaction would make it."""


class SqliteFile(Database):
    """A SQLite file by its path. While a transaction is open, nothing else in this process may open and close the
    file: that would drop SQLite's locks.
    """

    engine = "sqlite"
    triggers: ClassVar[Mapping[str, str]] = _TRIGGER_SQL

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.where, self.place = str(self.path), self.path
        self.url = sa.URL.create("sqlite", database=self.where)

    @classmethod
    def at(cls, url: str | sa.URL) -> Self:
        """The file that an SQLAlchemy URL names; it need not exist."""
        read = cls.parse_address(url)
        if read.drivername not in ("sqlite", "sqlite+pysqlite"):
            problem = f"'{read.drivername}' is not supported, only SQLite and PostgreSQL are"
        elif not read.database or read.database.startswith((":memory:", "file:")) or "\0" in read.database:
            problem = "the address names no file"
        elif read.query:
            problem = "the address has options after a '?'"
        else:
            return cls(Path(read.database))
        raise cls.address_error(problem)

    def require_there(self) -> None:
        """Refuses when there is no file: SQLite would make one."""
        try:
            problem = None if self.path.is_file() else self.missing()
        except OSError as error:
            problem = self.unusable(error.strerror)
        if problem is not None:
            raise problem

    @contextmanager
    def creation(self) -> Iterator[Self]:
        """A draft of the file, private to its owner, that gets its name once it is complete.

        A link never replaces a file: of two processes that create one file at once, one is refused.
        """
        draft = type(self)(self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new"))
        problem: errors.LedgerError | None = None
        try:
            if os.path.lexists(self.path):
                raise FileExistsError
            os.close(os.open(draft.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield draft
            os.link(draft.path, self.path)
            sync_folder(self.path.parent)
        except FileExistsError:
            problem = errors.FileExists(noun=self.noun, where=self.where)
        except OSError as error:
            problem = self.unusable(error.strerror)
        finally:
            with suppress(OSError):
                draft.path.unlink()
        if problem is not None:
            raise problem from None

    @contextmanager
    def transaction(self, intent: Intent) -> Iterator[sa.Connection]:
        problem: errors.LedgerError | None = None
        kind = network_disk(self.path)
        if kind is not None:
            raise self.unusable(errors.NETWORK_DISK.format(kind=kind))
        try:
            if intent != "read":
                self._refuse_read_only()
            _opening.set(self.path)
            with _ENGINE.connect().execution_options(ledger_intent=intent) as connection:
                yield connection
                if intent == "write":
                    connection.commit()
                elif intent == "rehearse":
                    connection.exec_driver_sql("PRAGMA user_version = 0")
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            problem = self._ledger_error(error)
        if problem is not None:
            raise problem from None

    def create_tables(self, connection: sa.Connection, entries: Sequence[Mapping[str, object]] = ()) -> None:
        self.tables.create_all(connection, checkfirst=False)
        if entries:
            connection.execute(sa.insert(ENTRIES), entries)
        for sql in self.triggers.values():
            connection.exec_driver_sql(sql)

    def verify_tables(self, connection: sa.Connection) -> None:
        rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").all()
        sql_by_kind = {
            kind: {name: sql for of, name, sql in rows if of == kind} for kind in ("table", "index", "trigger")
        }
        tables = self.tables.tables
        if not sql_by_kind["table"].keys() >= tables.keys():
            raise self.damage_error(f"the file holds no {self.noun}")
        indexes = {str(index.name) for table in tables.values() for index in table.indexes}
        if sql_by_kind["trigger"] != self.triggers or not sql_by_kind["index"].keys() >= indexes:
            raise self.damage_error("the rules that guard its table were removed or changed")

    def discard(self) -> None:
        """Deletes the file."""
        self.path.unlink()

    def _refuse_read_only(self) -> None:
        """Refuses a file or folder without write permission for its owner, also for root."""
        self.require_there()
        if not all(place.stat().st_mode & stat.S_IWUSR for place in (self.path, self.path.parent)):
            raise self.unusable(errors.READ_ONLY)

    def _ledger_error(self, error: Exception) -> errors.LedgerError:
        if isinstance(error, OSError):
            return self.unusable(error.strerror)
        name = getattr(getattr(error, "orig", error), "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return errors.LedgerBusy("file_busy", noun=self.noun, where=self.where, seconds=BUSY_SECONDS)
        if name.startswith("SQLITE_CANTOPEN") and not self.path.exists():
            return self.missing()
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return self.unusable(errors.READ_ONLY)
        if name.startswith("SQLITE_NOTADB"):
            return self.damage_error("the file is no database")
        if name.startswith(("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_NOMEM", "SQLITE_PROTOCOL", "SQLITE_INTERRUPT")):
            return self.unusable(f"the database engine reports {name}")
        return self.damage_error(f"the database engine cannot use it ({name or 'unreadable'})")


def _open() -> sqlite3.Connection:
    address = f"{_opening.get().as_uri()}?mode=rw"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        # Not WAL: with it a committed charge can be lost. EXTRA: the journal's removal is durable too.
        for pragma in ("journal_mode=DELETE", "synchronous=EXTRA", "foreign_keys=ON", "trusted_schema=OFF"):
            with closing(connection.execute(f"PRAGMA {pragma}")) as cursor:
                cursor.fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: sa.Connection) -> None:
    """Takes the write lock before the first SELECT: two that read first and then write would both fail."""
    reads = connection.get_execution_options().get("ledger_intent") == "read"
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


# One for all files: an engine takes 3 ms to make, and compiles every statement anew. It makes no file.
_ENGINE = sa.create_engine("sqlite://", creator=_open, poolclass=NullPool)
sa.event.listen(_ENGINE, "begin", _begin)

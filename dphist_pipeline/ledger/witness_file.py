"""The witness's tables, and the databases that they lie in: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import sqlalchemy as sa

from dphist_pipeline.base.files import make_folder, state_folder
from dphist_pipeline.base.sql_files import statement
from dphist_pipeline.ledger.database import ENTRIES, Database, Intent, SqliteFile
from dphist_pipeline.ledger.errors import FileExists, LedgerError, WitnessMissing
from dphist_pipeline.ledger.postgresql import PostgresDatabase, names_server

SCHEMA_VERSION = 1
_TABLES = sa.MetaData()

WITNESS = "DPHIST_WITNESS"


def _number(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, **options)


def _text(name: str, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, **options)


_VERSION = sa.Table("witness", _TABLES, _number("schema_version", primary_key=True, autoincrement=False))

GENERATIONS = sa.Table(
    "generation",
    _TABLES,
    _text("store", primary_key=True),
    _number("generation", primary_key=True),
    _text("started_by"),
    sa.CheckConstraint("generation >= 1", name="from_one"),
)

CHARGES = sa.Table(
    "charge",
    _TABLES,
    _text("store", primary_key=True),
    _number("generation", primary_key=True),
    _number("position", primary_key=True),
    _number("number"),
    _text("hash"),
    _text("account"),
    _text("release"),
    _text("period"),
    _number("revision"),
    _text("epsilon"),
    _number("year"),
    # Per generation: an older ledger that is adopted begins with the charges that it holds.
    sa.UniqueConstraint("store", "generation", "release", "period", "revision"),
    sa.ForeignKeyConstraint(["store", "generation"], ["generation.store", "generation.generation"]),
    sa.Index("charge_by_hash", "store", "hash"),
)

ANSWERS = sa.Table(
    "answer",
    _TABLES,
    # Shared by all generations: an answer that a superseded copy drew counts as drawn.
    _text("store", primary_key=True),
    _text("charge", primary_key=True),
    _text("step", primary_key=True),
    _text("digest"),
)

HEADS = sa.Table(
    "head",
    _TABLES,
    # The latest entry of a ledger, noted again and again: cutting off the ledger's end undoes no decision.
    _text("store", primary_key=True),
    _number("generation", primary_key=True),
    _number("number", primary_key=True),
    _text("hash"),
)

PLACES = sa.Table(
    "place", _TABLES, _text("store", primary_key=True), _number("number", primary_key=True), _text("place")
)

_REFUSAL = "BEGIN SELECT RAISE(ABORT, 'the witness only grows, row by row'); END"


def _triggers(table: sa.Table) -> dict[str, str]:
    """Rules that keep a table append-only; without the third, INSERT OR REPLACE would overwrite a row."""
    unique = [rule for rule in table.constraints if isinstance(rule, sa.PrimaryKeyConstraint | sa.UniqueConstraint)]
    keys = sorted(" AND ".join(f"{column.name} = NEW.{column.name}" for column in rule.columns) for rule in unique)
    exists = f"EXISTS (SELECT 1 FROM {table.name} WHERE {' OR '.join(keys)})"
    rules = {
        "updated": f"BEFORE UPDATE ON {table.name}",
        "deleted": f"BEFORE DELETE ON {table.name}",
        "replaced": f"BEFORE INSERT ON {table.name} WHEN {exists}",
    }
    return {
        f"{table.name}_never_{event}": f"CREATE TRIGGER {table.name}_never_{event} {rule} {_REFUSAL}"
        for event, rule in rules.items()
    }


class _OfWitness(Database):
    """The parts of a witness that are alike in every kind of database."""

    noun = "witness"
    tables = _TABLES

    def missing(self) -> LedgerError:
        """The error for a witness that is not there."""
        return WitnessMissing(self.where)

    def damage_error(self, problem: str) -> LedgerError:
        """The error for a database that holds no witness, or a damaged one."""
        return LedgerError("witness_altered", where=self.where, problem=problem)

    def unusable(self, problem: str | None) -> LedgerError:
        """The error for a place where the witness cannot be read and written; another one may be named instead."""
        return super().unusable(f"{problem or 'the file system refused'}; or set DPHIST_WITNESS to another file")

    @abstractmethod
    def is_free(self) -> bool:
        """Whether nothing is in its place yet; makes the folder for it."""

    def make(self) -> None:
        """Makes it if it is not there; of several that make it at once, one does."""
        if self.is_free():
            with suppress(FileExists), self.creation() as draft, draft.transaction("write") as connection:
                draft.create_tables(connection)

    @contextmanager
    def session(self, intent: Intent) -> Iterator[sa.Connection]:
        """A transaction on a database that was found to hold a witness which this version can use."""
        with self.transaction(intent) as connection:
            self.verify_tables(connection)
            yield connection

    def create_tables(self, connection: sa.Connection, entries: Sequence[Mapping[str, object]] = ()) -> None:
        """Makes the tables with their triggers, and writes down by which version."""
        self._refuse_beside_ledger(connection)
        super().create_tables(connection, entries)  # type: ignore[safe-super]  # that of the file, or of the server's database
        connection.execute(sa.insert(_VERSION).values(schema_version=SCHEMA_VERSION))

    def verify_tables(self, connection: sa.Connection) -> None:
        """Refuses a database with a ledger, of another version, or without our tables and the triggers on them."""
        self._refuse_beside_ledger(connection)
        if sa.inspect(connection).has_table(_VERSION.name):
            version = connection.execute(sa.select(sa.func.max(_VERSION.c.schema_version))).scalar()
            if version != SCHEMA_VERSION:
                problem = f"its schema version is {version}, this dphist-pipeline reads {SCHEMA_VERSION}"
                raise self.damage_error(problem)
        super().verify_tables(connection)  # type: ignore[safe-super]

    def _refuse_beside_ledger(self, connection: sa.Connection) -> None:
        if sa.inspect(connection).has_table(ENTRIES.name):
            raise self.address_error(f"the database at {self.where} holds a ledger")


class WitnessFile(_OfWitness, SqliteFile):
    """A SQLite file that holds a witness."""

    triggers: ClassVar = {name: sql for table in _TABLES.sorted_tables for name, sql in _triggers(table).items()}

    @classmethod
    def at_address(cls, text: str) -> Self:
        """The file at an absolute path or SQLite URL."""
        if "://" in text and not text.startswith("/"):
            cls.at(text)
            text = str(sa.make_url(text).database)
        path = Path(text)
        if "\0" in text or not path.is_absolute() or path.is_dir():
            raise cls.address_error(f"{text!r} is no absolute path of a file")
        return cls(path)

    def is_free(self) -> bool:
        try:
            if os.path.lexists(self.path):
                return False
            make_folder(self.path.parent)
        except OSError as error:
            problem = self.unusable(error.strerror)
        else:
            return True
        raise problem


class WitnessServer(_OfWitness, PostgresDatabase):
    """A PostgreSQL database that holds a witness, and no ledger: both would be put back from one backup."""

    entered_by_runs = (CHARGES.name, ANSWERS.name, HEADS.name, PLACES.name)
    for_new_rows: ClassVar = {name: (statement(f"ledger/witness_{name}"), None) for name in entered_by_runs}

    def is_free(self) -> bool:
        with self.transaction("read") as connection:
            return not sa.inspect(connection).has_table(_VERSION.name)


def witness_database(address: str | Path | None) -> WitnessFile | WitnessServer:
    """Where a witness is; it need not be there. By default at $DPHIST_WITNESS, or else in the user's state folder.

    Raises:
        LedgerError: `address_refused`, it names no file or database, or there is no home folder.
    """
    witness_address, folder = address or os.environ.get(WITNESS), state_folder()
    if not witness_address and folder is None:
        raise WitnessFile.address_error("this user has no home folder to keep it in")
    text = str(witness_address or f"{folder}/witness.sqlite")
    return WitnessServer.at(text) if names_server(text) else WitnessFile.at_address(text)

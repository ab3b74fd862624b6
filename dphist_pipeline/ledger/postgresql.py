"""A ledger, or a witness, in a PostgreSQL database.

Who writes first takes a lock that lasts as long as the transaction, so that writers on any machine append one after
another; constraints and triggers in the database refuse a writer who does not. A connection that is lost raises
before anything is drawn, and the same command finds its charge if it was committed.

Passwords come from the environment (PGPASSWORD), ~/.pgpass or a certificate, never from an address.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar, Self

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from dphist_pipeline.base.sql_files import statement
from dphist_pipeline.errors import how_to_install
from dphist_pipeline.ledger import database
from dphist_pipeline.ledger import errors as errors
from dphist_pipeline.ledger.database import ENTRIES, Database, Intent, SqliteFile
from dphist_pipeline.ledger.letters import BLANKS, DISGUISES, in_brackets

PORT = 5432
_SCHEMES = ("postgresql", "postgresql+psycopg")
_OPTIONS = {"host", "sslmode", "sslrootcert", "sslcert", "sslkey"}
# All writers of a ledger take this lock; it holds in one database only.
WRITERS_LOCK = 7309453190258
_LOCK = sa.text(f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})")
_ROOT_CERTIFICATE = "~/.postgresql/root.crt"
# Said explicitly, so that neither the environment nor the server's settings decide: where names are looked up, that
# a commit is on the server's disk before it is reported, and that a machine that stops does not hold the lock.
_SETTINGS = {
    "search_path": "public,pg_temp",
    "synchronous_commit": "on",
    "idle_in_transaction_session_timeout": "300s",
    "lock_timeout": "{lock}ms",
    # An index serves every question; without statistics, as after a move, the server would read the whole table.
    "enable_seqscan": "off",
    "max_parallel_workers_per_gather": "0",
}
_GROWS = "BEGIN RAISE EXCEPTION 'the table only grows, row by row'; END"
_NEXT = statement("ledger/always_next", disguised=in_brackets(DISGUISES), blank=in_brackets(BLANKS))
# The body of version 0.2 checks only the place in the chain, so one malformed row stops every release.
_FORMER_NEXT = """BEGIN
    IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM ledger_entry)
        OR NEW.previous_hash IS DISTINCT FROM (SELECT hash FROM ledger_entry ORDER BY number DESC LIMIT 1)
    THEN RAISE EXCEPTION 'the ledger only grows, entry by entry'; END IF;
    RETURN NEW;
END"""
# Digests of later bodies, which take what waits for a second signature as decided where no entry says that it waits.
_FORMER = {
    "c7766a2da426c2257aa817d3f5b80aa45c5f34673ba4f4c7045be11777cf2e22",
    "beb6f975dc640d4ff75593ca2fcc04c7bbe965e6644631ff5a3842e689849587",
    "d4fb838bdfda65afea011325ab995073e06ce398ae12a5e8b045098d1dd87789",
    "550fa1f8f38ede53c2ce51aba914d1bcbacac86b29848b6960c4c400012cc8ae",
    "894ae24f5d50224e2844bdb7d0c642198eb0071810ad41492fc4515d5452be78",
}
_RULES = {
    # name: (when, as pg_trigger holds it: 1 per row, 2 before, 4 insert, 8 delete, 16 update, 32 truncate, the body)
    "never_changed": ("BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW", 1 + 2 + 8 + 16, _GROWS),
    "never_emptied": ("BEFORE TRUNCATE ON {table} FOR EACH STATEMENT", 2 + 32, _GROWS),
    "always_next": ("BEFORE INSERT ON {table} FOR EACH ROW", 1 + 2 + 4, ""),
}
_FOUND = """
    SELECT c.relname, t.tgname, t.tgtype, p.prosrc, t.tgenabled = 'O' AND t.tgqual IS NULL AND NOT c.relhasrules
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal AND c.relname = ANY(:names)
"""
_INDEXES = "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND tablename = ANY(:names)"
# What a server says that answers and refuses; it may be a minute from starting, or full of other connections.
_REFUSED = re.compile(
    r"certificate|SSL|FATAL: +(?! |the database system is|sorry, too many|remaining connection|terminating)"
)


def names_server(url: str | sa.URL) -> bool:
    """Whether an address is one of PostgreSQL, by its scheme."""
    return str(url).partition(":")[0] in _SCHEMES


def ledger_database(url: str | sa.URL) -> Database:
    """The database of a ledger, by an SQLAlchemy URL of a SQLite file or a PostgreSQL database; it need not be there.

    Raises:
        LedgerError: `address_refused`, the URL is neither, or holds a password or other options.
    """
    return PostgresDatabase.at(url) if names_server(url) else SqliteFile.at(url)


class PostgresDatabase(Database):
    """A database on a PostgreSQL server. Its tables lie in the schema `public`."""

    engine = "postgresql"
    entered_by_runs: ClassVar[tuple[str, ...]] = (ENTRIES.name,)  # tables into which every release enters something
    # Bodies of the rule for a new row, by table: this version's, then earlier ones'; None where there was no such rule.
    for_new_rows: ClassVar[dict[str, tuple[str | None, ...]]] = {ENTRIES.name: (_NEXT, _FORMER_NEXT)}

    def __init__(self, url: sa.URL, host: str, tls: dict[str, str]) -> None:
        self.url, port = url, url.port or PORT
        port_part = f":{port}" if port != PORT else ""
        socket = f"postgresql://{port_part}/{url.database}?host={host}"
        self.place = self.where = socket if host.startswith("/") else f"postgresql://{host}{port_part}/{url.database}"
        # An empty address of the host: none from the environment, which could lead elsewhere than the host's name.
        self._given = {"dbname": str(url.database), "host": host, "port": port, "hostaddr": "", **tls}
        if url.username is not None:
            self._given["user"] = url.username
        missing = False
        try:
            self._engine = sa.create_engine("postgresql+psycopg://", creator=self._connect, poolclass=NullPool)
        except ModuleNotFoundError:
            missing = True
        if missing:
            raise self.address_error(f"the driver is not installed. To install it: {how_to_install('postgresql')}")

    @classmethod
    def at(cls, url: str | sa.URL) -> Self:
        """The database that a URL names; it need not be there."""
        read = cls.parse_address(url)
        options = {name: value for name, value in read.query.items() if isinstance(value, str)}
        host = options.pop("host", "") or read.host or ""
        problem = _problem(read, host, options)
        if problem:
            raise cls.address_error(problem)
        return cls(read, host, _tls(host, options))

    @contextmanager
    def creation(self) -> Iterator[Self]:
        """The database itself: tables are made in a transaction, and replace none."""
        yield self

    @contextmanager
    def transaction(self, intent: Intent) -> Iterator[sa.Connection]:
        # Writers see what was committed when they got the lock; readers see one state of the database.
        level = "REPEATABLE READ" if intent == "read" else "READ COMMITTED"
        problem: errors.LedgerError | None = None
        try:
            session = self._engine.connect()
            with session.execution_options(isolation_level=level, postgresql_readonly=intent == "read") as connection:
                if intent != "read":
                    connection.execute(_LOCK)
                yield connection
                if intent == "write":
                    connection.commit()
                elif intent == "rehearse":
                    self._refuse_without_right(connection)
        except (SQLAlchemyError, OSError) as error:
            problem = self._ledger_error(error)
        if problem is not None:
            raise problem from None

    def create_tables(self, connection: sa.Connection, entries: Sequence[Mapping[str, object]] = ()) -> None:
        if any(map(sa.inspect(connection).has_table, self.tables.tables)):
            raise errors.FileExists(noun=self.noun, where=self.where)
        if connection.exec_driver_sql("SHOW server_encoding").scalar() != "UTF8":
            raise self.address_error("the database is not encoded in UTF-8")
        for index in [index for table in self.tables.tables.values() for index in table.indexes]:
            # Told here, because telling it with the index loads this dialect for every file of SQLite.
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
        self.tables.create_all(connection, checkfirst=False)
        if entries:
            connection.execute(sa.insert(ENTRIES), entries)
        self._make_rules(connection)

    def has_former_rules(self) -> bool:
        """Whether a row that breaks a rule could be inserted, as with triggers of earlier versions."""
        with self.transaction("read") as connection:
            return self._are_former(connection)

    def lacks_list(self, connection: sa.Connection, unstated: bool, waits: bool) -> bool:
        # Former rules take what waits as decided; those of this version refuse every charge until it is said.
        return waits if self._are_former(connection) else unstated

    def _are_former(self, connection: sa.Connection) -> bool:
        return self._triggers(connection) in self._rules_since(1)

    def _triggers(self, connection: sa.Connection) -> set[tuple[object, ...]]:
        """The triggers on the tables, as `_FOUND` gives them; all former bodies count as the first of them."""
        rows = connection.execute(sa.text(_FOUND), {"names": list(self.tables.tables)})
        return {tuple(_FORMER_NEXT if _is_former(column) else column for column in row) for row in rows}

    def upgrade_rules(self) -> None:
        """Puts the triggers of this version in the place of former ones; the owner of the tables alone may do that."""
        with self.transaction("write") as connection:
            self.verify_tables(connection)
            self._make_rules(connection)

    def _make_rules(self, connection: sa.Connection) -> None:
        for table, name, _, body in self._rules():
            connection.exec_driver_sql(
                f"CREATE OR REPLACE FUNCTION {table}_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SET search_path = public, pg_temp AS $rule${body}$rule$"
            )
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name} ON {table}")
            when = _RULES[name][0].format(table=table)
            connection.exec_driver_sql(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {table}_{name}()")

    def verify_tables(self, connection: sa.Connection) -> None:
        names = {"names": list(self.tables.tables)}
        if not all(map(sa.inspect(connection).has_table, self.tables.tables)):
            raise self.missing()
        indexes = set(connection.execute(sa.text(_INDEXES), names).scalars())
        index_names = {str(index.name) for table in self.tables.tables.values() for index in table.indexes}
        if self._triggers(connection) not in self._rules_since(0) or not indexes >= index_names:
            raise self.damage_error("the rules that guard its table were removed or changed")
        if connection.exec_driver_sql("SHOW fsync").scalar() != "on":
            raise self.unusable("the server runs with fsync off, and could forget a charge when the power fails")

    def require_there(self) -> None:
        """Does nothing: no transaction makes a database."""

    def discard(self) -> None:
        """Drops the tables."""
        with self.transaction("write") as connection:
            self.tables.drop_all(connection)
            for table, name, *_ in self._rules():
                connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {table}_{name}()")

    def _rules(self, version: int = 0) -> Iterator[tuple[str, str, int, str]]:
        """Table, name, kind and body of every trigger that must be there: in this version, or so many before it."""
        for table in self.tables.tables:
            for name, (_, kind, body) in _RULES.items():
                new_row = self.for_new_rows[table][version] if table in self.for_new_rows else None
                if name != "always_next":
                    yield table, name, kind, body
                elif new_row is not None:
                    yield table, name, kind, new_row

    def _rules_since(self, version: int) -> list[set[tuple[object, ...]]]:
        """The triggers of a version, counted back from this one, and of each before it, as `_FOUND` gives them."""
        versions = max(map(len, self.for_new_rows.values()))
        return [{(*rule, True) for rule in self._rules(earlier)} for earlier in range(version, versions)]

    def _refuse_without_right(self, connection: sa.Connection) -> None:
        for table in self.entered_by_runs:
            right = sa.text("SELECT has_table_privilege(:name, 'INSERT')")
            if not connection.execute(right, {"name": table}).scalar():
                raise self.unusable(errors.NO_RIGHT)

    def _connect(self) -> Any:
        """A connection that says by itself whatever the environment must not decide."""
        import psycopg

        lock = int(database.BUSY_SECONDS * 1000)
        options = " ".join(f"-c {name}={value.format(lock=lock)}" for name, value in _SETTINGS.items())
        parameters: dict[str, Any] = {**self._given, "options": options, "application_name": "dphist"}
        # Never a server that only follows another one; and a network that is cut is noticed within a minute.
        parameters |= {"target_session_attrs": "read-write", "connect_timeout": 10, "tcp_user_timeout": 60_000}
        return psycopg.connect(**parameters, prepare_threshold=None)

    def _ledger_error(self, error: Exception) -> errors.LedgerError:
        state = str(getattr(getattr(error, "orig", error), "sqlstate", None) or "")
        if state in ("23505", "DPH01"):  # without the lock, something else came first
            return errors.LedgerBusy("entry_overtaken", noun=self.noun, where=self.where)
        if state in ("55P03", "40P01", "40001"):
            return errors.LedgerBusy("file_busy", noun=self.noun, where=self.where, seconds=database.BUSY_SECONDS)
        if state == "42P01":
            return self.missing()
        if state == "42P07":
            return errors.FileExists(noun=self.noun, where=self.where)
        if state == "42501":
            return self.unusable(errors.NO_RIGHT)
        if state == "22008":
            return self.unusable("this machine's clock is more than a day ahead of the server's")
        if state == "25006":
            return self.unusable("the server is read-only")
        if state == "" or state[:2] in ("08", "57"):
            problem = f"the connection was refused or lost ({_driver_message(error)})"
            if _REFUSED.search(str(error)):
                return self.unusable(problem)
            return errors.LedgerBusy("connection_lost", noun=self.noun, where=self.where, problem=problem)
        if state[:2] in ("53", "58", "XX"):
            return self.unusable(f"the server reports {state}")
        return self.damage_error(f"the database refuses it ({state})")


def _is_former(column: object) -> bool:
    """Whether this is the body of an earlier rule for the next entry."""
    return isinstance(column, str) and hashlib.sha256(column.encode()).hexdigest() in _FORMER


def _problem(read: sa.URL, host: str, options: dict[str, str]) -> str:
    """The mistake in an address, without its secrets; empty if it will do."""
    if read.password is not None:
        return "the address holds a password. Take it out, and keep it in ~/.pgpass or PGPASSWORD"
    if set(read.query) - _OPTIONS:
        return f"the address has other options than {', '.join(sorted(_OPTIONS))}"
    if not read.database or not host or "," in host:
        return "the address must name one host and a database: postgresql://user@host/database"
    if not is_local(host) and options.get("sslmode", "verify-full") != "verify-full":
        return "another machine is reached by TLS with its certificate verified: leave sslmode out"
    return ""


def is_local(host: str) -> bool:
    """Whether a host is this machine: the folder of a socket, `localhost` (no other name is looked up), or loopback."""
    try:
        return host.startswith("/") or host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(host: str, options: dict[str, str]) -> dict[str, str]:
    """The settings of encryption; between machines there always is one, and the server must prove its name."""
    if is_local(host):
        return {"sslmode": "prefer", **options}
    parameters = {"sslmode": "verify-full", "gssencmode": "disable", **options}
    has_certificate = os.environ.get("PGSSLROOTCERT") or Path(_ROOT_CERTIFICATE).expanduser().exists()
    return parameters if has_certificate or "sslrootcert" in parameters else {**parameters, "sslrootcert": "system"}


def _driver_message(error: Exception) -> str:
    """The first line of the driver's message, which names server and user, without the password."""
    lines = str(getattr(error, "orig", error)).strip().splitlines() or ["no reason given"]
    secret = os.environ.get("PGPASSWORD")
    return lines[0][:200] if not secret or secret not in lines[0] else "its reason is not shown"

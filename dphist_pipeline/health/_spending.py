"""Checks of the ledger, of its witness, of who can change them, and of what they say is not finished."""

from __future__ import annotations

import grp
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa

from dphist_pipeline.base.files import may
from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import (
    CheckResult,
    Examined,
    fault,
    finding_of,
    first_names,
    name_of,
    not_looked_at,
    ok,
    shell_word,
    warning,
)
from dphist_pipeline.ledger.clock import refuse_before_build
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.postgresql import PORT, WRITERS_LOCK, PostgresDatabase, is_local
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.ledger.witness_file import WitnessServer, witness_database
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.store import Key, Store

NO_LEDGER = "the ledger could not be opened"
# Longer than any release takes from its charge to its publication, and than people take to approve one.
UNFINISHED_AFTER, FORGOTTEN_AFTER = timedelta(hours=6), timedelta(days=7)
TOLERATED = timedelta(minutes=5)  # between the clocks of two machines that share a ledger
RECENT = 100  # entries that are looked at for a clock that went back
_ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
# In a witness, only who decides starts a generation, and nobody enters another version.
_USER = """
    SELECT current_user, r.rolsuper OR r.rolbypassrls, bool_or(pg_has_role(current_user, c.relowner, 'MEMBER')),
        has_database_privilege('public', current_database(), 'CONNECT'),
        bool_and(has_table_privilege(c.oid, 'INSERT')) FILTER (WHERE c.relname NOT IN ('generation', 'witness'))
    FROM pg_roles r, pg_class c
    WHERE r.rolname = current_user AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    GROUP BY r.rolsuper, r.rolbypassrls
"""
# Database user and process that hold the lock which all writers take first.
_HOLDS_LOCK = f"""
    SELECT a.usename, l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.classid::bigint << 32) + l.objid::bigint = {WRITERS_LOCK}
"""
HELD_LONG = 3.0  # seconds: a writer needs some hundredths of one
_ROLES = {True: "dphist ledger roles", False: "dphist ledger roles --witness"}
# What no rule of a server can refuse, because releases do it; the threat model has the same list.
_RIGHTS = {
    True: (
        "whoever may charge can, by that right, spend what accounts have left, take a revision, reject, withdraw or "
        "state as published what is not published yet, and hold the lock of all writers"
    ),
    False: "whoever may charge can, by that right, plant rows in it, and hold the lock of all writers",
}


def ledger(subject: Examined) -> CheckResult:
    """The ledger: there, intact (it was verified as it was opened), and not older than what was published."""
    if subject.ledger is None:
        error = subject.refused.get("ledger")
        return finding_of("ledger", error) if error else not_looked_at("ledger", "the store could not be opened")
    forgotten = subject.store.unrecorded_publications(subject.ledger) if subject.store is not None else []
    if forgotten:
        return fault(
            "ledger",
            f"published, and the ledger at {subject.ledger.place} does not say so: "
            f"{first_names([charge.title for charge in forgotten])}; its last entries are missing",
            "Put the newer ledger back. If it is lost, release these again, at no cost: dphist release SPEC.",
        )
    generation, number, _ = subject.ledger.head()
    return ok("ledger", f"{subject.ledger.place}: {number} entries, every hash holds; generation {generation}")


def ledger_access(subject: Examined) -> CheckResult:
    """Who can read and change the ledger: file permissions, or the database user and TLS."""
    if subject.ledger is None:
        return not_looked_at("ledger_access", NO_LEDGER)
    place = subject.ledger.place
    if isinstance(place, Path):
        return _file_access("ledger_access", place)
    finding = _access("ledger_access", subject.ledger.url)
    permissions = subject.ledger.books().permissions
    if permissions.lacks_list_of_waiting and finding.state == "ok":
        entries = first_names([f"entry {number}" for number in permissions.waiting_before_lists()]) or "none does"
        problem = (
            f"the server does not know which decisions of an earlier version wait for a second signature: {entries}"
        )
        return warning("ledger_access", problem, "As the owner of its tables: dphist ledger upgrade")
    return finding


def witness(subject: Examined) -> CheckResult:
    """The witness: there, outside of the store and of the ledger's database, and of one mind with the ledger."""
    check = "witness"
    if subject.store is None or subject.ledger is None:
        return not_looked_at(check, NO_LEDGER)
    try:
        witness_beside = _agreeing(subject.store, subject.ledger)
        database = witness_database(subject.store.witness_file)
    except DphistError as error:
        return finding_of(check, error)
    place, beside = database.place, subject.ledger.place
    if isinstance(place, Path) and isinstance(beside, Path) and place.stat().st_dev == beside.stat().st_dev:
        return warning(
            check,
            f"{witness_beside.where} agrees with the ledger, and lies on the same disk: one failure takes both",
            "Stop releases, move it to another disk, and set DPHIST_WITNESS for all who use this store.",
        )
    if isinstance(place, str) and isinstance(beside, str) and _on_one_server(database.url, subject.ledger.url):
        return warning(
            check,
            f"{witness_beside.where} agrees with the ledger, and is on the same server: one backup puts back both",
            "Keep the witness's database on another server, or at least its backups apart.",
        )
    return ok(check, f"{witness_beside.where} agrees with the ledger")


def witness_access(subject: Examined) -> CheckResult:
    """Who can read and change the witness."""
    check = "witness_access"
    if subject.store is None:
        return not_looked_at(check, "the store could not be opened")
    try:
        place = witness_database(subject.store.witness_file)
    except DphistError as error:
        return finding_of(check, error)
    if isinstance(place.place, str):
        return _access(check, place.url, decisive=False)
    if not place.place.exists():
        return not_looked_at(check, f"there is no witness at {place.where}")
    return _file_access(check, place.place)


def clock(subject: Examined) -> CheckResult:
    """The clock: as a charge needs it, which counts years by it; not behind the ledger; and time zones are known."""
    check, now = "clock", f"{subject.now:%Y-%m-%dT%H:%M:%SZ}"
    mend = "Set the clock by the network (timedatectl set-ntp true), then run `dphist doctor` again."
    refuse_before_build(now)
    try:
        ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        return fault(check, "the time zones of specs are not known here", "pip install tzdata")
    if subject.ledger is None:
        return not_looked_at(check, NO_LEDGER)
    entries = subject.ledger.entries()[-RECENT:]
    last = _moment(entries[-1].made_at)
    subject.ledger.books().refuse_wrong_clock(now, None)
    if last - subject.now > TOLERATED:
        is_late = last - subject.now > timedelta(days=1)
        problem = f"the clock says {now}, and the ledger's last entry is of {entries[-1].made_at}"
        return (fault if is_late else warning)(
            check, problem, f"{mend} Was it the entry that was wrong? Wait until then."
        )
    for before, after in pairwise(entries):
        if _moment(before.made_at) - _moment(after.made_at) > TOLERATED:
            seen_back = f"the clock was set back between entries {before.number} and {after.number} of the ledger"
            return warning(check, seen_back, "Keep the clocks of all machines by the network: timedatectl set-ntp true")
    zone = datetime.now().astimezone().tzname()
    return ok(check, f"{now}, after the ledger's last entry; this machine's zone is {zone}, specs name their own")


def runs(subject: Examined) -> CheckResult:
    """What killed runs left, which may hold exact counts, and what was charged and is not published."""
    check = "runs"
    if subject.store is None or subject.ledger is None:
        return not_looked_at(check, NO_LEDGER)
    killed = subject.store.abandoned_runs()
    if killed:
        return warning(
            check,
            f"exact files of {len(killed)} killed run{'s' * (len(killed) > 1)} are still there: {first_names(killed)}",
            "Run a release, such as one that is published already: the next run deletes them, at no cost.",
        )
    withdrawn = [Key(*key) for key, _ in Statement.charges_with_note(subject.ledger, "withdrawn")]
    unmarked = [key for key in withdrawn if _says_nothing(subject.store, key)]
    if unmarked:
        return warning(
            check,
            f"withdrawn, and the files do not say so: {first_names([str(key.public_place) for key in unmarked])}",
            "Run any release of this store, such as one that is published already: it marks them, at no cost.",
        )
    unfinished = [
        charge for charge in _charges(subject.ledger, "unpublished") if _age(subject, charge) > UNFINISHED_AFTER
    ]
    unfinished = [charge for charge in unfinished if not subject.store.is_marked_for_approval(charge)]
    if unfinished:
        names = [charge.title for charge in unfinished]
        period = "" if unfinished[0].period == "all" else f" --period {unfinished[0].period}"
        return warning(
            check,
            f"charged and not published: {first_names(names)}",
            f"Finish it, at no further cost: dphist release SPEC{period}, with the spec of {unfinished[0].release}.",
        )
    hours = f"{UNFINISHED_AFTER / timedelta(hours=1):g}"
    charged = f"all that was charged more than {hours} hours ago is published"
    if not may(subject.confidential, os.R_OK | os.X_OK):
        return ok(check, f"{charged}; files of runs are not this user's to see")
    recent = [
        charge for charge in _charges(subject.ledger, "unpublished") if not subject.store.is_marked_for_approval(charge)
    ]
    under_way = f"; charged since, and not yet published: {first_names([charge.title for charge in recent])}"
    return ok(check, f"no killed run left anything; {charged}, or waits for a person{under_way if recent else ''}")


def approvals(subject: Examined) -> CheckResult:
    """What waits for people: releases that `publish` holds back, and decisions that need a second signature."""
    check = "approvals"
    if subject.ledger is None:
        return not_looked_at(check, NO_LEDGER)
    waiting = _charges(subject.ledger, "waits", "approved")
    if subject.store is not None:  # in doubt, under `publish: if_plausible`
        waiting += [
            charge for charge in _charges(subject.ledger, "unpublished") if subject.store.is_marked_for_approval(charge)
        ]
    forgotten = [charge for charge in waiting if _age(subject, charge) > FORGOTTEN_AFTER]
    if forgotten:
        first = forgotten[0]
        return warning(
            check,
            f"waiting for more than {FORGOTTEN_AFTER.days} days: {first_names([charge.title for charge in forgotten])}",
            f"dphist publish SPEC --approved-by NAME, or dphist reject {first.release} {first.period} --reason TEXT",
        )
    books = subject.ledger.books()
    unsigned = [number for name in (EVERYWHERE, *books.accounts) for number in books.permissions.waiting_of(name)]
    old = [entry for entry in subject.ledger.entries() if entry.number in unsigned]
    old = [entry for entry in old if subject.now - _moment(entry.made_at) > FORGOTTEN_AFTER]
    if old:
        names = [f"entry {entry.number}" for entry in old]
        return warning(
            check,
            f"decisions that nobody signed for more than {FORGOTTEN_AFTER.days} days: {first_names(names)}",
            f"Another operator signs: dphist ledger sign {old[0].number}",
        )
    titles = f" ({first_names([charge.title for charge in waiting])})" if waiting else ""
    summary = f"{len(waiting)} releases wait for approval{titles}, {len(unsigned)} decisions for a second signature"
    return ok(check, summary)


def _agreeing(store: Store, ledger: Ledger) -> Witness:
    """The witness, compared with the ledger as a release would before its charge."""
    witness = store.witness(ledger)
    witness.check(store.id, ledger.standing)
    store.refuse_truncated_ledger(ledger, witness)
    return witness


def _file_access(check: str, file: Path) -> CheckResult:
    """Permissions of a database file and of its folder, in which the database makes files of its own."""
    status, folder = file.stat(), file.parent
    if status.st_mode & stat.S_IRWXO:
        return fault(check, f"everybody may read or change {file}", f"chmod o= {shell_word(file)}")
    above = folder.stat()
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        return fault(check, f"everybody may replace files in {folder}", f"chmod o-w {shell_word(folder)}")
    if not (may(file, os.R_OK | os.W_OK) and may(folder, os.W_OK | os.X_OK)):
        shared = f"chmod g+rw {shell_word(file)}; chmod g+rwxs {shell_word(folder)}"
        return fault(check, f"this user cannot write {file}, or files beside it", f"If they share a group: {shared}")
    whose = f", and of group {_group(status.st_gid)}" if status.st_mode & stat.S_IRWXG else " alone"
    return ok(check, f"{file} is {name_of(status.st_uid)}'s{whose} (mode {stat.S_IMODE(status.st_mode):o})")


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _charges(ledger: Ledger, *states: str) -> list[Charge]:
    statements = [Statement.of(ledger, account.name) for account in ledger.accounts()]
    return [
        charge for statement in statements for charge in statement.charges if statement.states[charge.number] in states
    ]


def _says_nothing(store: Store, key: Key) -> bool:
    """Whether a withdrawn publication lacks its mark: the user who withdrew it may not write it, or was killed."""
    from dphist_pipeline.publishing.published_files import PublishedFolder

    return store.published(key).exists() and not PublishedFolder(store.published(key)).is_marked_withdrawn()


def _age(subject: Examined, charge: Charge) -> timedelta:
    return subject.now - _moment(charge.charged_at)


def _moment(text: str) -> datetime:
    """A time as the ledger writes it; a lost charge is known by its year alone."""
    if len(text) == 4:
        return datetime(int(text), 1, 1, tzinfo=UTC)
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _access(check: str, url: sa.URL, decisive: bool = True) -> CheckResult:
    """How a server's database is reached, and whether its user could undo what only grows.

    `decisive`: it is the ledger, in which rows are of kinds that one user may enter and another may not.
    """
    try:
        database = (PostgresDatabase if decisive else WitnessServer).at(url)
        with database.transaction("read") as connection:
            encrypted = bool(connection.exec_driver_sql(_ENCRYPTED).scalar())
            name, above, owns, everybody, enters = connection.exec_driver_sql(_USER).one()
        holder = _lock_holder(database)
        former = database.has_former_rules()
    except DphistError as error:
        return finding_of(check, error)
    if not encrypted and not is_local(_host(url)):
        return fault(check, f"the connection to {database.where} is not encrypted", "Take sslmode out of the address.")
    if holder is not None:
        cause = f"database user {holder[0]} (process {holder[1]}) holds the lock of all writers of {database.where}"
        return warning(check, cause, f"As an administrator of the server: SELECT pg_terminate_backend({holder[1]})")
    if former:
        told_of = f"{database.where} has rules of an earlier version: who may charge could stop every release by a row"
        return warning(
            check, told_of, f"As the owner of its tables: dphist ledger upgrade{'' if decisive else ' --witness'}"
        )
    roles = f"Make users who only charge or decide, and use those: {_ROLES[decisive]}"
    if above or owns:
        cause = "is a superuser" if above else "owns its tables"
        return warning(check, f"database user {name} {cause}, and could drop what only grows", roles)
    if everybody:
        cause = f"every user of the server may connect to {database.where}, and hold the lock of all writers"
        return warning(check, cause, f"Print the rights anew, and enter them: {_ROLES[decisive]}")
    if not enters:
        return fault(check, f"database user {name} may not add to {database.where}", roles)
    transport = "TLS" if encrypted else "this machine only"
    return ok(check, f"database user {name} can read and add, and change nothing; {transport}; {_RIGHTS[decisive]}")


def _lock_holder(database: PostgresDatabase) -> tuple[str, int] | None:
    """Database user and process that hold the lock of all writers for long."""
    since = time.monotonic()
    first: tuple[str, int] | None = None
    while True:
        with database.transaction("read") as connection:
            row = connection.exec_driver_sql(_HOLDS_LOCK).first()
        holder = None if row is None else (str(row[0]), int(row[1]))
        if holder is None or holder != (first or holder):
            return None
        if time.monotonic() - since > HELD_LONG:
            return holder
        first = holder
        time.sleep(0.1)


def _on_one_server(one: sa.URL, other: sa.URL) -> bool:
    """Whether two databases are on one server, by its name and port; a port that is left out is the usual one."""
    return (_host(one), one.port or PORT) == (_host(other), other.port or PORT)


def _host(url: sa.URL) -> str:
    return str(url.query.get("host") or url.host)

"""Checks of a ledger or a witness on a PostgreSQL server: encryption, and what the database user may do."""

from __future__ import annotations

import sqlalchemy as sa

from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import Finding, fault, ok, told, warning
from dphist_pipeline.ledger.postgresql import PORT, PostgresDatabase, is_local

_ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
# In a witness, only who decides starts a generation, and nobody enters another version.
_USER = """
    SELECT current_user, r.rolsuper OR r.rolbypassrls, bool_or(pg_has_role(current_user, c.relowner, 'MEMBER')),
        bool_and(has_table_privilege(c.oid, 'INSERT')) FILTER (WHERE c.relname NOT IN ('generation', 'witness'))
    FROM pg_roles r, pg_class c
    WHERE r.rolname = current_user AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    GROUP BY r.rolsuper, r.rolbypassrls
"""


def access(check: str, url: sa.URL, decisive: bool = True) -> Finding:
    """How a server's database is reached, and whether its user could undo what only grows.

    `decisive`: it is the ledger, in which rows are of kinds that one user may enter and another may not.
    """
    try:
        database = PostgresDatabase.at(url)
        with database.transaction("read") as connection:
            encrypted = bool(connection.exec_driver_sql(_ENCRYPTED).scalar())
            name, above, owns, enters = connection.exec_driver_sql(_USER).one()
        former = decisive and database.has_former_rules()
    except DphistError as error:
        return told(check, error)
    if not encrypted and not is_local(_host(url)):
        return fault(check, f"the connection to {database.where} is not encrypted", "Take sslmode out of the address.")
    if former:
        told_of = f"who may charge in {database.where} could stop every release by one malformed row"
        return warning(check, told_of, "As the owner of its tables: dphist ledger upgrade")
    roles = "Make users who only charge or decide, and use those: dphist ledger roles" + " --witness" * (not decisive)
    if above or owns:
        what = "is a superuser" if above else "owns its tables"
        return warning(check, f"database user {name} {what}, and could drop what only grows", roles)
    if not enters:
        return fault(check, f"database user {name} may not add to {database.where}", roles)
    how = "TLS" if encrypted else "this machine only"
    return ok(check, f"database user {name} can read and add, and change nothing; {how}")


def same(one: sa.URL, other: sa.URL) -> bool:
    """Whether two databases are on one server, by its name and port; a port that is left out is the usual one."""
    return (_host(one), one.port or PORT) == (_host(other), other.port or PORT)


def _host(url: sa.URL) -> str:
    return str(url.query.get("host") or url.host)

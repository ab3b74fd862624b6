"""Moves a ledger from a file to a server: every entry as it is, so that the chain and the witness go on.

The last entry of the file says that it was moved, and where to; the same entry is the next one at the server. A
ledger takes entries only in the kind of database that this entry names, so that no more than one of the two ever does.
"""

from __future__ import annotations

import sqlalchemy as sa

from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger._replay import replay
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.opened import Writing, all_entries
from dphist_pipeline.ledger.postgresql import ledger_database
from dphist_pipeline.ledger.signing import Operator


def move(source: str | sa.URL, expected_id: str, target: str | sa.URL, operator: Operator) -> Ledger:
    """Moves a ledger to a database of another kind, without a ledger, and gives it where it is then.

    The source's database stays, and takes no entry from then on. After a crash, the same call finishes what it began.

    Raises:
        LedgerMoved: the ledger went to another place before.
        LedgerError: `address_refused`, both are SQLite files, or both are on servers; `ledger_foreign`, the source has
            another id; `ledger_altered`, an entry breaks a rule, or the new database changed one.
    """
    old, new = ledger_database(source), ledger_database(target)
    if old.engine == new.engine:
        raise old.address_error(f"it is moved from SQLite to PostgreSQL or back, not within {old.engine}")
    # The new tables are complete but not committed while the old ledger is closed: a crash before leaves the old one
    # open and nothing at the new place; a crash right after leaves the old one closed, and this call makes the new one.
    with new.creation() as draft, draft.transaction("write") as target_connection, old.transaction("write") as here:
        old.verify_tables(here)
        books = replay(old.where, all_entries(here))
        if books.ledger_id != expected_id:
            raise LedgerError("ledger_foreign", where=old.where, found=books.ledger_id, expected=expected_id)
        if books.permissions.individual and new.engine != "sqlite":
            raise LedgerError("individual_on_server", where=new.where)
        if books.moved is None or books.moved[0] == old.engine:
            writing = Writing(here, books, opened.present())
            writing.list_waiting(operator)
            writing.decide("moved", EVERYWHERE, {"to": new.where, "database": new.engine}, operator)
        elif books.moved != (new.engine, new.where):
            books.refuse_moved(old.engine)
        draft.create_tables(target_connection, [vars(entry) for entry in all_entries(here)])
        if replay(new.where, all_entries(target_connection)).last != books.last:
            problem = "the database did not keep the entries as they are"
            raise LedgerError("ledger_altered", where=new.where, problem=problem)
    return Ledger.open(target, expected_id)

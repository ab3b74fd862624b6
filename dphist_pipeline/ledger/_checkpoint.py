"""What an opening need not judge again: entries that passed every judgement of this code, for this user, before.

A note in the user's state folder, outside of the ledger's database, says how many entries those were, and a digest of
all that their rows held. An opening reads every row. Where the digest is still the same, it judges only the entries
that follow, and adds up the others from their rows, since the note holds no sums. Otherwise it judges every entry.

Guards against: an edit of any row, as does judging every entry, by whoever can write to the database.
Not against: whoever can write to the database and to this user's state folder; other users, and `verify`, notice it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.base import reading
from dphist_pipeline.base.files import make_folder, read_own, replace_durably, state_folder
from dphist_pipeline.ledger._replay import follow, replay
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.database import ENTRIES
from dphist_pipeline.ledger.entries import Entry, read_exact

FEWEST = 1000  # entries beyond those of the note, before it is written anew: to judge them takes some 30 ms
_NOTE = re.compile(rb"([1-9][0-9]{0,8}) ([0-9a-f]{64})\n")


class _Rows(Iterator[Sequence[Any]]):
    """Every row of a ledger, in order, how many were taken, and a digest of those and of the code that judges them."""

    def __init__(self, connection: sa.Connection) -> None:
        self._rows = iter(connection.execute(sa.select(ENTRIES).order_by(ENTRIES.c.number)))
        self._digest, self.taken = hashlib.sha256(_judging_code()), 0

    def __next__(self) -> Sequence[Any]:
        row = tuple(next(self._rows))
        self._digest.update(repr(row).encode())
        self.taken += 1
        return row

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def judged_books(where: str, connection: sa.Connection, whole: bool = False) -> Books:
    """The books of a whole ledger, every entry of which was judged: before, and not changed since, or now.

    `where`, a path or address, also finds the note about it. `whole` judges every entry now, whatever that note says.
    Nobody else may change, during the connection's transaction, what it reads.

    Raises:
        LedgerError: `ledger_altered`, an entry breaks a rule, or there is no entry.
    """
    folder = state_folder()
    place = folder / "judged" / hashlib.sha256(where.encode()).hexdigest()[:32] if folder else None
    note = None if whole or place is None else _NOTE.fullmatch(read_own(place, 100))
    rows, known = _Rows(connection), int(note[1]) if note else 0
    first = list(islice(rows, known))
    if note and (len(first), rows.digest) == (known, note[2].decode()):
        books = follow(_resume(where, first), starmap(Entry, rows))
    else:
        rows, known = _Rows(connection) if known else rows, 0
        books = replay(where, starmap(Entry, rows))
    if place is not None and rows.taken - known >= FEWEST:
        with suppress(OSError):  # where nothing can be kept, the next opening judges every entry
            make_folder(place.parent)
            replace_durably(place, place.with_name(secrets.token_hex(8)), f"{rows.taken} {rows.digest}\n".encode())
    return books


def _resume(where: str, rows: Sequence[Sequence[Any]]) -> Books:
    """The books of entries that were all judged before."""
    books, charges_by_key = Books(where), Counter[tuple[str, int, str, int]]()
    for row in rows:
        _, kind, account, release, period, _, body, _, made_at, _ = row
        if release is None:
            books.post(Entry(*row), json.loads(body))
            continue
        books.unposted.setdefault((release, period), []).append(row)
        if kind == "charged":
            facts = json.loads(body)
            books.permissions.lapse_adoptions()
            books.note_time(kind, made_at)
            charges_by_key[account, facts["year"], facts["epsilon"], len(books.adoptions)] += 1
    for (account, year, epsilon, before), times in charges_by_key.items():
        books.add_spent(account, year, times * read_exact(epsilon), before)
    books.last = Entry(*rows[-1])
    books.year = books.last.facts["year"]
    return books


@cache
def _judging_code() -> bytes:
    """The files of this folder, and what sources are: entries that other code judged are judged again."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(reading.__file__)]
    return b"".join(file.read_bytes() for file in files)

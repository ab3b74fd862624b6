"""The witness: what a store has charged and drawn, kept outside of it, so that a copy cannot draw again.

A ledger and a journal that are copied together agree with each other, so that neither can tell that the other
copy drew already. The witness is one small SQLite file per user, or a PostgreSQL database per office, for all stores.
It holds every charge before its first draw, and a digest of every answer before that is used.

Guards against: a store that is copied, cloned or put back from a backup.
Not against: a witness that is copied or put back together with the store (a snapshot of a whole machine), or a
copy on a machine with a witness of its own where somebody adopts the store.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.ledger import errors
from dphist_pipeline.ledger.entries import OfARelease, exact_text, read_exact
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.witness_file import (
    ANSWERS,
    CHARGES,
    GENERATIONS,
    HEADS,
    PLACES,
    WitnessFile,
    WitnessServer,
    witness_database,
)

LARGEST_NUMBER = 10**9  # of an entry, or of a place that is noted
_HASH = re.compile(r"[0-9a-f]{64}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_ACCOUNT = re.compile(r"[a-z][a-z0-9_]{0,62}")  # as the ledger takes one: messages name commands with it


@dataclass(frozen=True)
class WitnessedCharge(OfARelease):
    """A charge as the witness holds it: `number` and `hash` of the ledger's entry, `year` in which it counts."""

    number: int
    hash: str
    account: str
    release: str
    period: str
    revision: int
    epsilon: Fraction
    year: int

    @classmethod
    def read(cls, row: Mapping[Any, Any]) -> WitnessedCharge:
        """The charge in a row of the witness, or carried over by an adoption.

        Raises:
            ValueError, TypeError: the row is not of the form that a charge is written in.
        """
        facts = {name: row[name] for name in cls.__dataclass_fields__}
        forms = {"hash": _HASH, "account": _ACCOUNT, "release": _TEXT, "period": _TEXT}
        bounds = {"number": (1, LARGEST_NUMBER), "revision": (1, 10**6), "year": (1000, 9999)}
        if not all(form.fullmatch(facts[name]) for name, form in forms.items()) or not all(
            type(facts[name]) is int and least <= facts[name] <= most for name, (least, most) in bounds.items()
        ):
            raise ValueError("not a charge as the witness holds one")
        return cls(**facts | {"epsilon": read_exact(facts["epsilon"])})

    def facts(self) -> dict[str, Any]:
        """The fields as a row of the witness, and an adoption that carries the charge over, hold them."""
        return {**vars(self), "epsilon": exact_text(self.epsilon)}


@dataclass(frozen=True)
class Standing:
    """A summary of the charges that a ledger, or the witness, holds of a store."""

    generation: int  # 1 from `dphist init` on, one more with every adoption
    # Hash of the ledger's entry that started the generation. It tells apart two copies that were adopted at the same
    # generation.
    started_by: str
    charges: tuple[WitnessedCharge, ...]  # those of this generation, in the ledger's order


ReadStanding = Callable[[], Standing]
"""Reads the standing in a ledger. Called while the witness is held: what was read earlier may lack a charge that
another process made, and the witness saw, in the meantime."""


def place_of(folder: Path) -> str:
    """The place of an existing store: host, folder, inode. A copy has another inode, even under the same name."""
    return f"{socket.gethostname()} {os.path.realpath(folder)} inode {folder.stat().st_ino}"


class Witness:
    """The witness at one address. Holds no connection between calls; makes its file when a store is enrolled."""

    def __init__(self, file: WitnessFile | WitnessServer) -> None:
        self._file = file
        self.where = file.where

    @classmethod
    def at(cls, address: str | Path | None = None) -> Witness:
        """The witness at a path or URL, else at $DPHIST_WITNESS, else in the user's state folder."""
        return cls(witness_database(address))

    def refuse_ledger(self, ledger: Path | str) -> None:
        """Refuses a witness in the ledger's own file or database: both would be copied together.

        A database under another name is known by the ledger's table in it, whenever the witness is used.
        """
        own = self._file.place
        if own == ledger or (isinstance(own, Path) and isinstance(ledger, Path) and _is_same_place(own, ledger)):
            raise self._file.address_error(f"{self.where} is the ledger")

    def refuse_inside(self, store_root: Path) -> None:
        """Refuses a witness in a store's folder, which would be copied together with the store."""
        own = self._file.place
        if isinstance(own, str):
            return
        if any(_is_same_place(folder, store_root) for folder in Path(os.path.realpath(own)).parents):
            raise self._file.address_error(f"{self.where} lies inside the store at {store_root}, and is copied with it")

    def enrol(self, store_id: str, started_by: str) -> None:
        """Starts a new store's first generation; makes the witness where there is none."""
        self._file.make()
        with self._file.session("write") as connection:
            if _generation(connection, store_id) is not None:
                raise errors.LedgerError("store_enrolled", where=self.where, store_id=store_id)
            _start(connection, store_id, Standing(1, started_by, ()))

    def begin_generation(self, store_id: str, read: ReadStanding) -> None:
        """Starts a later generation, for a store that is adopted: from now on, other copies are refused.

        What the ledger holds counts as witnessed. The same again does nothing. Makes the witness where there is none.
        """
        self._file.make()
        with self._file.session("write") as connection:
            current, ledger = _generation(connection, store_id), read()
            if current == (ledger.generation, ledger.started_by):
                return
            if current is not None and current[0] >= ledger.generation:
                raise errors.store_superseded(self.where, store_id, ledger.generation, current[0])
            _start(connection, store_id, ledger)
            _append(connection, store_id, ledger, 0)

    def standing(self, store_id: str) -> Standing | None:
        """The charges that the witness holds of a store; None where it holds none, or where there is no witness."""
        with suppress(errors.WitnessMissing), self._file.session("read") as connection:
            current = _generation(connection, store_id)
            if current is not None:
                return self._standing(connection, store_id, *current)
        return None

    def vouch(self, store_id: str, read: ReadStanding) -> None:
        """Writes down the charges that only the ledger holds; to be called after a charge and before its first draw.

        Not within a transaction of the ledger: the witness is held while the ledger is read.

        Raises:
            WitnessMissing: the store is unknown.
            LedgerError: `store_superseded` or `witness_outdated`, the store is of another generation;
                `ledger_behind_witness`, the witness holds a charge that is not, in every field, one of this ledger's.
        """
        with self._file.session("write") as connection:
            ledger = read()
            _append(connection, store_id, ledger, self._charges_in_common(connection, store_id, ledger))

    def check(self, store_id: str, read: ReadStanding) -> None:
        """Refuses whatever `vouch` would refuse; leaves the witness as it was."""
        with self._file.session("rehearse") as connection:
            self._charges_in_common(connection, store_id, read())

    def confirm(self, store_id: str, read: ReadStanding) -> None:
        """Refuses whatever `vouch` would refuse of the charges that the ledger holds; needs no right to write."""
        with self._file.session("read") as connection:
            self._charges_in_common(connection, store_id, read())

    def vouch_answer(self, store_id: str, charge_hash: str, step: str, digest: str) -> None:
        """Writes down which answer a charge's step drew, before it is used; the same again does nothing.

        `digest`: SHA-256 of the answer and a nonce, in hex.

        Raises:
            AnswerDrawnElsewhere: another answer is there.
            WitnessMissing: the charge was never vouched for.
            LedgerError: `store_superseded`, a copy was adopted that does not hold the charge.
        """
        charge = (CHARGES.c.store == store_id) & (CHARGES.c.hash == charge_hash)
        with self._file.session("write") as connection:
            current = _generation(connection, store_id)
            generation = connection.execute(sa.select(sa.func.max(CHARGES.c.generation)).where(charge)).scalar()
            if current is None or generation is None:
                raise errors.WitnessMissing(self.where, f"the charge {charge_hash[:16]} of store {store_id}")
            if generation < current[0]:
                raise errors.store_superseded(self.where, store_id, generation, current[0])
            recorded_digest = _answer(connection, store_id, charge_hash, step)
            if recorded_digest is None:
                row = {"store": store_id, "charge": charge_hash, "step": step, "digest": digest}
                connection.execute(sa.insert(ANSWERS).values(row))
            elif recorded_digest != digest:
                raise self._drawn_elsewhere(connection, store_id, charge_hash, step)

    def drawn_elsewhere(self, store_id: str, charge_hash: str, step: str) -> errors.AnswerDrawnElsewhere | None:
        """Why a step must not be drawn: an answer to it is known already; None where there is none."""
        with self._file.session("read") as connection:
            if _answer(connection, store_id, charge_hash, step) is None:
                return None
            return self._drawn_elsewhere(connection, store_id, charge_hash, step)

    def _drawn_elsewhere(
        self, connection: sa.Connection, store_id: str, charge_hash: str, step: str
    ) -> errors.AnswerDrawnElsewhere:
        which = (CHARGES.c.store == store_id) & (CHARGES.c.hash == charge_hash)
        account = connection.execute(sa.select(CHARGES.c.account).where(which)).scalar()
        return errors.AnswerDrawnElsewhere(where=self.where, step=step, account=account or "ACCOUNT")

    def note_head(self, store_id: str, generation: int, number: int, entry_hash: str) -> None:
        """Writes down the ledger's latest entry; an earlier one than is known does nothing."""
        with self._file.session("write") as connection:
            self._refuse_generation(connection, store_id, generation)
            head = _head(connection, store_id, generation)
            if head is None or number > head[0]:
                row = {"store": store_id, "generation": generation, "number": number, "hash": entry_hash}
                connection.execute(sa.insert(HEADS).values(row))

    def head(self, store_id: str, generation: int) -> tuple[int, str] | None:
        """Number and hash of the latest entry that was ever noted of this generation: its ledger must hold it."""
        with suppress(errors.WitnessMissing), self._file.session("read") as connection:
            return _head(connection, store_id, generation)
        return None

    def store_started_by(self, entry_hash: str) -> str | None:
        """The store of which a generation began with that entry of its ledger."""
        columns = GENERATIONS.c
        with suppress(errors.WitnessMissing), self._file.session("read") as connection:
            return connection.execute(sa.select(columns.store).where(columns.started_by == entry_hash)).scalar()
        return None

    def note_place(self, store_id: str, place: str, folder_id: str = "") -> str | None:
        """Remembers where a confidential folder of a store is; gives the place where it was before, if another one.

        What stands there already never stops this: behind the largest number nothing more is remembered.
        """
        with self._file.session("write") as connection:
            if _generation(connection, store_id) is None:
                raise errors.WitnessMissing(self.where, f"store {store_id}")
            # Earlier versions noted one place for each store.
            of = folder_id or store_id
            number, last = _latest(connection, PLACES.c.store == of, PLACES.c.number, PLACES.c.place) or (0, None)
            if last == place:
                return None
            if number < LARGEST_NUMBER:
                connection.execute(sa.insert(PLACES).values(store=of, number=number + 1, place=place))
            return last

    def folders_at(self, place: str) -> set[str]:
        """Ids of the confidential folders that were noted at a place."""
        with suppress(errors.WitnessMissing), self._file.session("read") as connection:
            return {*connection.execute(sa.select(PLACES.c.store).where(PLACES.c.place == place)).scalars()}
        return set()

    def _charges_in_common(self, connection: sa.Connection, store_id: str, ledger: Standing) -> int:
        """The number of the ledger's first charges that the witness holds; refuses where any field differs."""
        self._refuse_generation(connection, store_id, ledger.generation, ledger.started_by)
        standing = self._standing(connection, store_id, ledger.generation, ledger.started_by)
        for position, charge in enumerate(standing.charges):
            if position >= len(ledger.charges) or ledger.charges[position] != charge:
                raise errors.LedgerError(
                    "ledger_behind_witness", where=self.where, charge=charge, epsilon=as_text(charge.epsilon)
                )
        return len(standing.charges)

    def _refuse_generation(
        self, connection: sa.Connection, store_id: str, generation: int, started_by: str | None = None
    ) -> None:
        current = _generation(connection, store_id)
        if current is None:
            raise errors.WitnessMissing(self.where, f"store {store_id}")
        if generation > current[0]:
            raise errors.LedgerError(
                "witness_outdated", where=self.where, store_id=store_id, generation=generation, known=current[0]
            )
        if generation < current[0] or started_by not in (None, current[1]):
            raise errors.store_superseded(self.where, store_id, generation, current[0])

    def _standing(self, connection: sa.Connection, store_id: str, generation: int, started_by: str) -> Standing:
        which = (CHARGES.c.store == store_id) & (CHARGES.c.generation == generation)
        rows = connection.execute(sa.select(CHARGES).where(which).order_by(CHARGES.c.position)).mappings()
        try:
            return Standing(generation, started_by, tuple(WitnessedCharge.read({**row}) for row in rows))
        except (ValueError, TypeError):
            problem = self._file.damage_error(f"it holds a charge of store {store_id} that is not written as one")
        raise problem


def _latest(
    connection: sa.Connection, which: sa.ColumnElement[bool], number: sa.Column[Any], text: sa.Column[Any]
) -> tuple[int, str] | None:
    """The largest number, and the text beside it, if there is one."""
    row = connection.execute(sa.select(number, text).where(which).order_by(number.desc()).limit(1)).first()
    # A file of SQLite may hold text in the place of a number, and puts it last: that fits nothing either.
    return None if row is None else (row[0] if type(row[0]) is int else LARGEST_NUMBER + 1, row[1])


def _generation(connection: sa.Connection, store_id: str) -> tuple[int, str] | None:
    """The current generation of a store, and the hash of the entry that started it."""
    columns = GENERATIONS.c
    return _latest(connection, columns.store == store_id, columns.generation, columns.started_by)


def _head(connection: sa.Connection, store_id: str, generation: int) -> tuple[int, str] | None:
    which = (HEADS.c.store == store_id) & (HEADS.c.generation == generation)
    return _latest(connection, which, HEADS.c.number, HEADS.c.hash)


def _answer(connection: sa.Connection, store_id: str, charge_hash: str, step: str) -> str | None:
    """The digest of the answer to a charge's step, None before one is known."""
    which = (ANSWERS.c.store == store_id) & (ANSWERS.c.charge == charge_hash) & (ANSWERS.c.step == step)
    return connection.execute(sa.select(ANSWERS.c.digest).where(which)).scalar()


def _start(connection: sa.Connection, store_id: str, ledger: Standing) -> None:
    row = {"store": store_id, "generation": ledger.generation, "started_by": ledger.started_by}
    connection.execute(sa.insert(GENERATIONS).values(row))


def _append(connection: sa.Connection, store_id: str, ledger: Standing, seen: int) -> None:
    """Adds the ledger's charges behind the `seen` ones."""
    place = {"store": store_id, "generation": ledger.generation}
    rows = [
        charge.facts() | place | {"position": position}
        for position, charge in enumerate(ledger.charges[seen:], seen + 1)
    ]
    if rows:
        connection.execute(sa.insert(CHARGES), rows)


def _is_same_place(one: Path, other: Path) -> bool:
    """Whether two paths are one file or folder, by links, hard links and mounts."""
    with suppress(OSError):
        if one.samefile(other):
            return True
    return os.path.realpath(one) == os.path.realpath(other)

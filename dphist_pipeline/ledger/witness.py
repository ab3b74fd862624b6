"""The witness: what a store has charged and drawn, kept outside of it, so that a copy cannot draw again.

A ledger and a journal that are copied together agree with each other, so that neither can tell that the other
copy drew already. The witness is one small SQLite file per user (or office) for all stores. It holds every charge
before its first draw, and a digest of every answer before that is used.

Guards against: a store that is copied, cloned or put back from a backup.
Not against: a witness that is copied or put back together with the store (a snapshot of a whole machine), or a
copy on a machine with a witness of its own where somebody adopts the store.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import sqlalchemy as sa

from dphist_pipeline.ledger.entries import Entry, charge_of, exact_text, read_exact
from dphist_pipeline.ledger.witness_errors import (
    AnswerDrawnElsewhere,
    ChargeBeforeWitness,
    LedgerBehindWitness,
    StoreEnrolled,
    StoreSuperseded,
    WitnessAddressRefused,
    WitnessAltered,
    WitnessMissing,
    WitnessOutdated,
)
from dphist_pipeline.ledger.witness_file import ANSWERS, CHARGES, GENERATIONS, HEADS, PLACES, WitnessFile


@dataclass(frozen=True)
class WitnessedCharge:
    """A charge as the witness holds it: `number` and `hash` of the ledger's entry, `year` in which it counts."""

    number: int
    hash: str
    account: str
    release: str
    period: str
    revision: int
    epsilon: Fraction
    year: int


ReadCharges = Callable[[], Iterable[WitnessedCharge]]
"""Reads all charges of a ledger, in order. Called while the witness is held: a list read earlier may lack a charge
that another process made, and the witness saw, in the meantime."""


@dataclass(frozen=True)
class Standing:
    """What the witness knows of a store.

    Attributes:
        generation: 1 from `dphist init` on, one more with every adoption.
        started_by: hash of the ledger's entry that started the generation.
        year: the latest in which this generation was charged, 0 before it was.
        charges: those of this generation, in the ledger's order.
        place: where the store was last seen, None before it was noted.
    """

    store_id: str
    generation: int
    started_by: str
    year: int
    charges: tuple[WitnessedCharge, ...]
    place: str | None


def witnessed(entries: Iterable[Entry]) -> list[WitnessedCharge]:
    """The charges among a ledger's entries."""
    return [_witnessed(entry) for entry in entries if entry.kind == "charged"]


def place_of(folder: Path) -> str:
    """Where a store lies: host, folder and inode. A copy has another inode, even under the same name."""
    return f"{socket.gethostname()} {os.path.realpath(folder)} inode {folder.stat().st_ino}"


class Witness:
    """The witness at one address. Holds no connection between calls; makes its file when a store is enrolled."""

    def __init__(self, file: WitnessFile) -> None:
        self._file = file
        self.where = file.where

    @classmethod
    def at(cls, address: str | Path | None = None) -> Witness:
        """The witness at a path or SQLite URL, else at $DPHIST_WITNESS, else in the user's state folder."""
        return cls(WitnessFile.named(address))

    def refuse_ledger(self, ledger_path: Path) -> None:
        """Refuses a witness that is the ledger's own file: both would be copied together."""
        if _same(self._file.path, ledger_path):
            raise WitnessAddressRefused(f"{self.where} is the ledger")

    def refuse_inside(self, store_root: Path) -> None:
        """Refuses a witness in a store's folder, where whoever copies the store copies it, too."""
        if any(_same(folder, store_root) for folder in Path(os.path.realpath(self._file.path)).parents):
            raise WitnessAddressRefused(f"{self.where} lies inside the store at {store_root}, and is copied with it")

    def enrol(self, store_id: str, started_by_hash: str) -> None:
        """Starts a new store's first generation; makes the witness where there is none."""
        self._file.make()
        with self._file.session("write") as connection:
            if _generation(connection, store_id) is not None:
                raise StoreEnrolled(self.where, store_id)
            _start(connection, store_id, 1, started_by_hash)

    def begin_generation(self, store_id: str, generation: int, started_by_hash: str, charges: ReadCharges) -> None:
        """Starts a later generation, for a store that is adopted: from now on, other copies are refused.

        What the ledger holds counts as witnessed. The same call again does nothing. Makes the witness where there
        is none.
        """
        self._file.make()
        with self._file.session("write") as connection:
            current = _generation(connection, store_id)
            if current == (generation, started_by_hash):
                return
            if current is not None and current[0] >= generation:
                raise StoreSuperseded(self.where, store_id, generation, current[0])
            _start(connection, store_id, generation, started_by_hash)
            _append(connection, store_id, generation, 0, list(charges()))

    def standing(self, store_id: str) -> Standing | None:
        """What the witness knows of a store; None where it knows nothing, or where there is no witness."""
        with suppress(WitnessMissing), self._file.session("read") as connection:
            current = _generation(connection, store_id)
            if current is not None:
                charges = self._charges(connection, store_id, current[0])
                latest = max((charge.year for charge in charges), default=0)
                return Standing(store_id, *current, latest, tuple(charges), _last_place(connection, store_id)[1])
        return None

    def vouch(self, store_id: str, generation: int, charges: ReadCharges, started_by_hash: str = "") -> None:
        """Writes down the charges that only the ledger holds; to be called after a charge and before its first draw.

        Not within a transaction of the ledger: the witness is held while `charges` reads it.

        Args:
            store_id: the store's.
            generation: the one that its ledger states.
            charges: reads all charges of its ledger.
            started_by_hash: of the entry that started the generation. Tells apart two copies that were adopted at
                the same generation; not compared where it is empty.

        Raises:
            WitnessMissing, StoreSuperseded, WitnessOutdated: the store is unknown, or of another generation.
            LedgerBehindWitness: the witness has seen a charge that this ledger does not hold.
            ChargeBeforeWitness: a charge is dated before one that the witness has seen.
        """
        with self._file.session("write") as connection:
            seen, unseen = self._compared(connection, store_id, (generation, started_by_hash), list(charges()))
            _append(connection, store_id, generation, seen, unseen)

    def check(self, store_id: str, generation: int, charges: ReadCharges, year: int, started_by_hash: str = "") -> None:
        """Refuses whatever `vouch` would refuse once a charge of that year is made; leaves the witness as it was."""
        with self._file.session("rehearse") as connection:
            self._compared(connection, store_id, (generation, started_by_hash), list(charges()), year)

    def vouch_answer(self, store_id: str, charge_hash: str, step: str, digest: str) -> None:
        """Writes down which answer a charge's step drew, before it is used; the same again does nothing.

        Raises:
            AnswerDrawnElsewhere: another answer is there.
            WitnessMissing: the charge was never vouched for.
            StoreSuperseded: a copy was adopted that does not hold the charge.
        """
        one = (ANSWERS.c.store == store_id) & (ANSWERS.c.charge == charge_hash) & (ANSWERS.c.step == step)
        charge = (CHARGES.c.store == store_id) & (CHARGES.c.hash == charge_hash)
        with self._file.session("write") as connection:
            current = _generation(connection, store_id)
            held = connection.execute(sa.select(sa.func.max(CHARGES.c.generation)).where(charge)).scalar()
            if current is None or held is None:
                raise WitnessMissing(self.where, f"the charge {charge_hash[:16]} of store {store_id}")
            if held < current[0]:
                raise StoreSuperseded(self.where, store_id, held, current[0])
            drawn = connection.execute(sa.select(ANSWERS.c.digest).where(one)).scalar()
            if drawn is None:
                row = {"store": store_id, "charge": charge_hash, "step": step, "digest": digest}
                connection.execute(sa.insert(ANSWERS).values(row))
            elif drawn != digest:
                raise AnswerDrawnElsewhere(self.where, step)

    def note_head(self, store_id: str, generation: int, number: int, entry_hash: str) -> None:
        """Writes down the ledger's latest entry; an earlier one than is known does nothing."""
        with self._file.session("write") as connection:
            self._refuse_generation(_generation(connection, store_id), store_id, generation, "")
            known = _head(connection, store_id, generation)
            if known is None or number > known[0]:
                row = {"store": store_id, "generation": generation, "number": number, "hash": entry_hash}
                connection.execute(sa.insert(HEADS).values(row))

    def head(self, store_id: str, generation: int) -> tuple[int, str] | None:
        """Number and hash of the latest entry that was ever noted of this generation: its ledger must hold it."""
        if not self._file.path.exists():
            return None
        with self._file.session("read") as connection:
            return _head(connection, store_id, generation)

    def note_place(self, store_id: str, place: str) -> str | None:
        """Remembers where a store is; gives the place where it was before, if that was another one."""
        with self._file.session("write") as connection:
            if _generation(connection, store_id) is None:
                raise WitnessMissing(self.where, f"store {store_id}")
            number, last = _last_place(connection, store_id)
            if last == place:
                return None
            connection.execute(sa.insert(PLACES).values(store=store_id, number=number + 1, place=place))
            return last

    def _compared(
        self,
        connection: sa.Connection,
        store_id: str,
        generation: tuple[int, str],
        charges: Sequence[WitnessedCharge],
        year: int | None = None,
    ) -> tuple[int, Sequence[WitnessedCharge]]:
        """How many of the charges the witness holds, and those that it does not; refuses where the two disagree."""
        self._refuse_generation(_generation(connection, store_id), store_id, *generation)
        known = self._charges(connection, store_id, generation[0])
        for position, seen in enumerate(known):
            if position >= len(charges) or charges[position].hash != seen.hash:
                raise LedgerBehindWitness(self.where, seen.release, seen.period, seen.revision, seen.number)
        unseen = charges[len(known) :]
        latest = max((charge.year for charge in known), default=0)
        earliest = min([charge.year for charge in unseen] + [latest if year is None else year])
        if earliest < latest:
            raise ChargeBeforeWitness(self.where, earliest, latest)
        return len(known), unseen

    def _refuse_generation(
        self, current: tuple[int, str] | None, store_id: str, generation: int, started_by: str
    ) -> None:
        if current is None:
            raise WitnessMissing(self.where, f"store {store_id}")
        if generation > current[0]:
            raise WitnessOutdated(self.where, store_id, generation, current[0])
        if generation < current[0] or started_by not in ("", current[1]):
            raise StoreSuperseded(self.where, store_id, generation, current[0])

    def _charges(self, connection: sa.Connection, store_id: str, generation: int) -> list[WitnessedCharge]:
        which = (CHARGES.c.store == store_id) & (CHARGES.c.generation == generation)
        rows = connection.execute(sa.select(CHARGES).where(which).order_by(CHARGES.c.position)).mappings()
        try:
            return [
                WitnessedCharge(**{name: row[name] for name in _FACTS} | {"epsilon": read_exact(row["epsilon"])})
                for row in rows
            ]
        except (ValueError, TypeError):
            problem = WitnessAltered(self.where, f"it holds a charge of store {store_id} without a price")
        raise problem


_FACTS = tuple(WitnessedCharge.__dataclass_fields__)


def _witnessed(entry: Entry) -> WitnessedCharge:
    facts = entry.facts
    charge = charge_of(entry, facts)
    return WitnessedCharge(**{name: getattr(charge, name) for name in _FACTS if name != "year"}, year=facts["year"])


def _generation(connection: sa.Connection, store_id: str) -> tuple[int, str] | None:
    """The current generation of a store, and the hash of the entry that started it."""
    columns = GENERATIONS.c
    asked = sa.select(columns.generation, columns.started_by).where(columns.store == store_id)
    row = connection.execute(asked.order_by(columns.generation.desc()).limit(1)).first()
    return None if row is None else (row.generation, row.started_by)


def _start(connection: sa.Connection, store_id: str, generation: int, started_by: str) -> None:
    connection.execute(sa.insert(GENERATIONS).values(store=store_id, generation=generation, started_by=started_by))


def _append(
    connection: sa.Connection, store_id: str, generation: int, seen: int, charges: Sequence[WitnessedCharge]
) -> None:
    """Adds charges behind the `seen` ones."""
    rows = [
        vars(charge)
        | {"store": store_id, "generation": generation, "position": place, "epsilon": exact_text(charge.epsilon)}
        for place, charge in enumerate(charges, seen + 1)
    ]
    if rows:
        connection.execute(sa.insert(CHARGES), rows)


def _head(connection: sa.Connection, store_id: str, generation: int) -> tuple[int, str] | None:
    asked = sa.select(HEADS.c.number, HEADS.c.hash)
    asked = asked.where((HEADS.c.store == store_id) & (HEADS.c.generation == generation))
    row = connection.execute(asked.order_by(HEADS.c.number.desc()).limit(1)).first()
    return None if row is None else (row.number, row.hash)


def _last_place(connection: sa.Connection, store_id: str) -> tuple[int, str | None]:
    """How often a store's place was noted, and the latest one."""
    columns = PLACES.c
    asked = sa.select(columns.number, columns.place).where(columns.store == store_id)
    row = connection.execute(asked.order_by(columns.number.desc()).limit(1)).first()
    return (0, None) if row is None else (row.number, row.place)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file or folder, by links, hard links and mounts."""
    with suppress(OSError):
        if one.samefile(other):
            return True
    return os.path.realpath(one) == os.path.realpath(other)

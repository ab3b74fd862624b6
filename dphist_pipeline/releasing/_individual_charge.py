"""A charge to an individual account: from the lock of the account to the commit, and the states that it leaves.

A state is a file of its own in `confidential/years/<account>/`, called by the random id that its charge names. Nothing
else is a state: what a killed or refused attempt left there is deleted by whoever holds the account's lock next.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.files import make_folder
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.row_queries import FilteredUnits
from dphist_pipeline.errors import AfterCharge, TryAgain
from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.books import OPEN_STATES, Books
from dphist_pipeline.ledger.entries import Charge, ChargeRequest, OfARelease, exact_text
from dphist_pipeline.ledger.errors import StateOvertaken
from dphist_pipeline.ledger.individual import PARTS, Granted, paid_by_year, price_of_left_out, price_of_row
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.store import Store

if TYPE_CHECKING:
    from dphist_pipeline.confidential.row_filter import State

WAIT_SECONDS = 600.0
STATE, ANSWERED = ".parquet", ".answered"


def account_in_use(account: str) -> TryAgain:
    """Another release of the account was being charged all the time."""
    return TryAgain(
        f"account '{account}' was in use by other releases for {WAIT_SECONDS / 60:g} minutes, and an individual "
        "account is charged by one at a time.",
        code="account_in_use",
    )


def state_lost(charge: Charge) -> AfterCharge:
    """Nobody knows any more how many rows of each unit the charge may count."""
    return AfterCharge(
        f"{charge.title}: not all of its numbers were drawn, and the file that says how many rows of each unit they "
        "may count is gone, damaged, or names units in another way. Put that file back, or release anew, at its price, "
        "with --revise --reason TEXT.",
        code="state_lost",
    )


@dataclass
class GrantedRows:
    """The rows of one run for an individual account: read once, filtered and counted for the charge that pays.

    `read` gives the plan, and the rows as reading staged them.
    """

    store: Store
    ledger: Ledger
    account: str
    read: Callable[[], tuple[CountingPlan, Path]]
    _counted: tuple[str, NDArray[np.int64]] = field(default=("", np.zeros(0, dtype=np.int64)))  # of which state

    @cached_property
    def staged_rows(self) -> tuple[CountingPlan, Path]:
        """The plan and the staged rows."""
        return self.read()

    def charge(self, request: ChargeRequest) -> Charge:
        """Filters, counts and charges; where somebody charged meanwhile, filters and counts again.

        Gives the charge that paid for the same thing already, if there is one: then what was counted here is dropped.

        Raises:
            TryAgain: other releases of the account were being charged all the time.
        """
        plan, staged = self.staged_rows
        states = States.of(self.store, self.ledger, self.account)
        with states.lock():
            states.forget()
            while True:
                granted, state, before = states.filter(plan, staged, request)
                counts = _counts(plan, staged, state)
                try:
                    charge = self.ledger.charge(replace(request, granted=granted))
                except StateOvertaken:
                    continue
                self._counted = granted.state, counts  # whose charge may be somebody else's: see `counts`
                if charge.granted == granted:
                    states.forget(before)
                return charge

    def counts(self, charge: Charge) -> NDArray[np.int64]:
        """Exact counts of as many rows of each unit as the charge's state grants, shape (cells,).

        Raises:
            AfterCharge: there is no such state any more.
        """
        granted, (plan, staged) = charge.granted, self.staged_rows
        assert granted is not None, "every charge to an individual account names its state"
        if self._counted[0] != granted.state:
            self._counted = granted.state, _counts(plan, staged, self._state(charge))
        return self._counted[1]

    def left_out(self, charge: Charge) -> FilteredUnits:
        """How many units the charge is the first of the year to leave out.

        Raises:
            AfterCharge: its state is there no more.
        """
        from dphist_pipeline.confidential.row_filter import units_left_out

        return units_left_out(self.staged_rows[0], self._state(charge))

    def _state(self, charge: Charge) -> State:
        state = States.of(self.store, self.ledger, self.account).state(charge, self.staged_rows[0])
        if state is None:
            raise state_lost(charge)
        return state


@dataclass(frozen=True)
class States:
    """The states of an individual account."""

    folder: Path
    ledger: Ledger
    account: str

    @classmethod
    def of(cls, store: Store, ledger: Ledger, account: str) -> States:
        """The states of an account in a store."""
        return cls(store.confidential / "years" / account, ledger, account)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One charge to the account at a time; the others wait, and give up after `WAIT_SECONDS`."""
        make_folder(self.folder)
        handle, ends = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY), time.monotonic() + WAIT_SECONDS
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > ends:
                    raise account_in_use(self.account)
                time.sleep(0.1)
            yield
        finally:
            os.close(handle)

    def state(self, charge: Charge, plan: CountingPlan) -> State | None:
        """The state that a charge names, if it is there, whole, and names units as the plan's rows do."""
        from dphist_pipeline.confidential.row_filter import whole_state

        if charge.granted is None:
            return None
        return whole_state(self._path(charge.granted.state), self._facts(charge, charge.granted, plan))

    def filter(self, plan: CountingPlan, staged: Path, request: ChargeRequest) -> tuple[Granted, State, Charge | None]:
        """Writes the state after a charge that is still to be made.

        Gives what the charge states of it, the state, and the charge whose state came before it, if there is one.
        """
        from dphist_pipeline.confidential.row_filter import write_state

        books = self.ledger.books()
        account, year = books.account(self.account), books.year_at(opened.utc_now())
        before, charge, everybody = self._newest(books, year, plan)
        # In whole parts, rounded up: a sum of any fractions may be longer than what the ledger writes.
        everybody = Fraction(ceil(everybody * PARTS), PARTS)
        bought = price_of_left_out(account.total, account.left_out, everybody)
        granted = Granted(request.rows, uuid.uuid4().hex, books.paid_at(self.account), everybody, year, bought)
        facts = self._facts(request, granted, plan)
        facts["before"] = charge.granted.state if charge and charge.granted else ""
        state = write_state(
            *(plan, staged, self._path(granted.state), facts, before),
            price_of_row(request.epsilon, request.rows),
            paid_by_year(account.total, account.left_out, everybody),
        )
        return granted, state, charge

    def forget(self, before: Charge | None = None) -> None:
        """Deletes what is no state, and states that nobody needs any more; only for whoever holds the lock.

        Args:
            before: the charge whose state was whole when the newest one, which is whole, too, was made of it: older
                states of that year are needed only for charges that may still draw.
        """
        books = self.ledger.books()
        charges = {charge.granted.state: charge for _, charge in books.every_entry(self.account) if charge.granted}
        latest = max((of.year for of in charges.values() if of.number > books.adopted_at), default=0)
        for path in sorted(self.folder.glob(f"*{STATE}")):
            charge, answered = charges.get(path.stem), path.with_suffix(ANSWERED)
            if charge is not None:
                settled = books.state(charge) not in OPEN_STATES
                older = before is not None and before.year == charge.year and charge.number < before.number
                over = charge.year < latest and (answered.exists() or charge.number < books.adopted_at)
                if not (settled and (older or charge.year < latest)) and not over:
                    continue
            path.unlink(missing_ok=True)
            answered.unlink(missing_ok=True)

    def note_answered(self, charge: Charge) -> None:
        """Notes that all measurements of a charge have answered, so that its state need not outlast its year."""
        if charge.granted is not None and self._path(charge.granted.state).exists():
            self._path(charge.granted.state).with_suffix(ANSWERED).touch()

    def _newest(self, books: Books, year: int, plan: CountingPlan) -> tuple[State | None, Charge | None, Fraction]:
        """The newest whole state of a year, its charge, and what everybody has paid beside it."""
        everybody, account = Fraction(0), books.account(self.account)
        for _, epsilon, charge in reversed(books.counting_in(self.account, year)):
            if charge is not None and charge.granted is not None and charge.year == year:
                state = self.state(charge, plan)
                if state is not None:
                    return state, charge, everybody + charge.granted.everybody
            everybody += epsilon
            if charge is not None and charge.year != year:  # dated ahead: that year has numbers of its own
                everybody += price_of_left_out(account.total, account.left_out, Fraction(0))
        return None, None, everybody

    def _facts(self, of: OfARelease, granted: Granted, plan: CountingPlan) -> dict[str, str]:
        """What a state says of itself."""
        from dphist_pipeline.confidential.row_filter import form_of_units

        return {
            "id": granted.state,
            "ledger": self.ledger.id,
            "account": self.account,
            "charge": f"{of.release}/{of.period}/{of.revision}",
            "year": str(granted.year),
            "parts": str(PARTS),
            "everybody": exact_text(granted.everybody),
            "units": form_of_units(plan.source.reading),
        }

    def _path(self, state: str) -> Path:
        return self.folder / f"{state}{STATE}"


def _counts(plan: CountingPlan, staged: Path, state: State) -> NDArray[np.int64]:
    from dphist_pipeline.confidential.row_filter import count_granted

    return count_granted(plan, staged, state)

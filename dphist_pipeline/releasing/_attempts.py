"""A call for one release and period, what it has once it is paid and drawn, and what may overtake it between two steps.

`release` hands attempts from step to step, and asks at nine places whether somebody overtook one. Every place closes a
race of its own. A call of `refuse_overtaken` goes only when another one is proved to close its race.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from pathlib import Path

from dphist_pipeline.errors import AfterCharge
from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.estimates.row_quality import QualityTable
from dphist_pipeline.ledger.books import refuse_other_folder
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.entries import Charge, Folder
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import ChargeRequest, Ledger
from dphist_pipeline.releasing._approvals import PublicationRule, finish_rejections
from dphist_pipeline.releasing.publisher import Progress, Withdrawn
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.periods import Period

_FIRST = Folder("unnamed", "'unknown' (by a version that named none)")


@dataclass(frozen=True)
class Attempt:
    """One call for one release and period, as `begin` froze it: equal in every process that joins the same release.

    `charge` pays, if it was made before; `request` is what to ask the ledger for if not. `run`: the mechanism, with
    what its doors count. `rule`: when drawn numbers are published. `progress` is told each step as it begins.
    """

    spec: ReleaseSpec
    store: Store
    ledger: Ledger
    period: Period
    key: Key
    charge: Charge | None
    request: ChargeRequest
    run: MechanismRun
    rule: PublicationRule
    progress: Progress = lambda step: None

    @property
    def path(self) -> Path:
        """Where the release is, or will be, published."""
        return self.store.published(self.key)


@dataclass(frozen=True)
class Paid:
    """An estimate, the charge that paid for it, each step's noise, and whether it had been published before."""

    charge: Charge
    estimate: AnyEstimate
    scales: dict[str, Fraction]
    published: bool

    @property
    def remark(self) -> str:
        """What whoever approves it should know; mostly nothing."""
        return QualityTable.of(self.estimate.quality).failed_nearly_all


def published_elsewhere(charge: Charge, host_folder: Folder) -> AfterCharge:
    """A release whose files lie on another host."""
    return AfterCharge(
        f"{charge.title} was released on host {host_folder.host} (confidential folder {host_folder.id:.12}), and "
        "its files are not in this host's public folder. Read them there, or copy them here. Nothing was drawn or "
        "spent.",
        code="published_elsewhere",
    )


class By(Enum):
    """Who or what overtakes a call."""

    REJECTION = auto()
    WITHDRAWAL = auto()
    DISALLOWANCE = auto()
    OTHER_HOST = auto()


class Race(Enum):
    """The nine races; each says who overtakes the call, and what would come of it if nobody asked there."""

    REJECTED_BEFORE = By.REJECTION, "A rejection that was killed halfway leaves answers, which this call would publish."
    REJECTED_IN_A_DOOR = By.REJECTION, "The answers vanish under a door, and the error would tell of a missing file."
    REJECTED_WHILE_DRAWING = By.REJECTION, "A door finds no answer and draws anew, for what nobody may publish."
    WITHDRAWN_BEFORE = (
        By.WITHDRAWAL,
        "Files that were taken back, here or elsewhere, would be given as published.",
    )
    WITHDRAWN_WHILE_PUBLISHING = By.WITHDRAWAL, "Who withdrew before the files were in place found none to mark."
    DISALLOWED_BEFORE_READING = By.DISALLOWANCE, "The charge was made while the source was allowed; it would be read."
    DISALLOWED_WHILE_COUNTING = By.DISALLOWANCE, "A count takes its time, or another process left it; doors would draw."
    CHARGED_BY_ANOTHER_SINCE = By.OTHER_HOST, "Two hosts ask the ledger at once, which charges once; both would draw."
    CHARGED_BY_ANOTHER_BEFORE = (
        By.OTHER_HOST,
        "The host that charged draws, or has published; this one would draw.",
    )

    def __init__(self, by: By, closes: str) -> None:
        self.by, self.closes = by, closes


def refuse_overtaken(
    attempt: Attempt, race: Race, charge: Charge | None = None, published: bool = False
) -> tuple[Decision, ...]:
    """Asks the ledger whether somebody overtook a call, and stops it then.

    `charge` pays, where the attempt began without it. `published`: values of this charge are out; asked for another
    host's. Gives the decisions by which the source may still be read, where the race is about those.

    Raises:
        LedgerError: `rejected`, and what was drawn for it is deleted; `not_allowed` any more; `charged_elsewhere`.
        Withdrawn: the publication was taken back.
        AfterCharge: another host has published.
    """
    store, ledger, paid = attempt.store, attempt.ledger, charge or attempt.charge
    if race.by is By.DISALLOWANCE:
        return ledger.allowed(attempt.request)
    assert paid is not None, "the other races are about a charge"
    notes = ledger.notes(paid)
    if race.by is By.REJECTION and "rejected" in notes:
        finish_rejections(store, ledger)
        raise LedgerError("rejected", charge=paid, note=notes["rejected"])
    if race.by is By.WITHDRAWAL and "withdrawn" in notes:
        raise Withdrawn(attempt.key, notes["withdrawn"].made_at, notes["withdrawn"].text)
    if race.by is By.OTHER_HOST:
        refuse_other_host(store, paid, published)
    return ()


def refuse_other_host(store: Store, charge: Charge, published: bool) -> None:
    """Refuses to draw for a charge that another host made.

    Raises:
        AfterCharge: it has published.
        LedgerError: `charged_elsewhere`.
    """
    folder = store.own_folder()
    # What was charged before charges named a folder belongs to the store that did not join another one.
    host_folder = charge.folder or (_FIRST if store.joined else folder)
    if host_folder.id != folder.id and published:
        raise published_elsewhere(charge, host_folder)
    if charge.folder is None and host_folder.id != folder.id:
        raise LedgerError("charged_elsewhere", charge=charge, there=host_folder, here=folder)
    refuse_other_folder(charge, folder)

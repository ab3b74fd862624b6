"""What may overtake a run between two of its steps, see `Run.refuse_overtaken`."""

from __future__ import annotations

from enum import Enum, auto

from dphist_pipeline.errors import AfterCharge
from dphist_pipeline.ledger.books import refuse_other_folder
from dphist_pipeline.ledger.entries import Charge, Folder
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.releasing.store import Store

_FIRST = Folder("unnamed", "'unknown' (by a version that named none)")


def published_elsewhere(charge: Charge, host_folder: Folder) -> AfterCharge:
    """A release whose files lie on another host."""
    return AfterCharge(
        f"{charge.title} was released on host {host_folder.host} (confidential folder {host_folder.id:.12}), and "
        "its files are not in this host's public folder. Read them there, or copy them here. Nothing was drawn or "
        "spent.",
        code="published_elsewhere",
    )


class By(Enum):
    """The kinds of events that overtake a call."""

    REJECTION = auto()
    WITHDRAWAL = auto()
    DISALLOWANCE = auto()
    OTHER_HOST = auto()


class Race(Enum):
    """The nine races; each says who overtakes the call, and what would come of it if nobody asked there."""

    REJECTED_BEFORE = By.REJECTION, "A rejection that was killed halfway leaves answers, which this call would publish."
    REJECTED_IN_A_MEASUREMENT = (
        By.REJECTION,
        "The answers vanish under a measurement, and the error would tell of a missing file.",
    )
    REJECTED_WHILE_DRAWING = By.REJECTION, "A measurement finds no answer and draws anew, for what nobody may publish."
    WITHDRAWN_BEFORE = (
        By.WITHDRAWAL,
        "Files that were taken back, here or elsewhere, would be given as published.",
    )
    WITHDRAWN_WHILE_PUBLISHING = By.WITHDRAWAL, "Who withdrew before the files were in place found none to mark."
    DISALLOWED_BEFORE_READING = By.DISALLOWANCE, "The charge was made while the source was allowed; it would be read."
    DISALLOWED_WHILE_COUNTING = (
        By.DISALLOWANCE,
        "A count takes its time, or another process left it; measurements would draw.",
    )
    CHARGED_BY_OTHER_HOST_SINCE = (
        By.OTHER_HOST,
        "Two hosts ask the ledger at once, which charges once; both would draw.",
    )
    CHARGED_BY_OTHER_HOST_BEFORE = (
        By.OTHER_HOST,
        "The host that charged draws, or has published; this one would draw.",
    )

    def __init__(self, by: By, closes: str) -> None:
        self.by, self.closes = by, closes


def refuse_other_host(store: Store, charge: Charge, published: bool) -> None:
    """Refuses to draw for a charge that another host made; `published`: its values are out.

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

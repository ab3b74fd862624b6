"""What a ledger must agree with beside itself: the files in the public folder, and the witness."""

from __future__ import annotations

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.ledger.errors import WitnessMissing
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.store import Key, Store


def verified_alone(entries: int, publications: int, missing: DphistError) -> Refused:
    """A ledger that holds together, and no witness to say whether it is the newest."""
    return Refused(
        f"{entries} entries were read, every hash and every sum holds, and {publications} of the publications are "
        f"whole; but nobody can say whether entries are missing at the ledger's end. {missing}",
        code="verified_alone",
    )


def confirm_witness(store: Store, entries: int, publications: int) -> bool:
    """Compares a store's ledger with its witness; changes nothing in either.

    Args:
        store: whose ledger was verified.
        publications: that are whole, for the message.

    Returns:
        False for a ledger of version 0.1, which has no witness until its first decision brings one.

    Raises:
        Refused: there is no witness, or it does not know the store.
        LedgerError: the two disagree, or the witness cannot be used.
    """
    ledger = store.ledger()
    witness, problem = store.witness(ledger), None
    try:
        witness.confirm(store.id, ledger.standing)
    except WitnessMissing as error:
        problem = error
    if problem is None:
        return True
    if not ledger.operators():
        return False
    raise verified_alone(entries, publications, problem)


def unrecorded(store: Store, ledger: Ledger) -> list[Charge]:
    """Charges whose files are published though the ledger does not say so: its end was cut off.

    Args:
        store: with its public folder.
    """
    charges = [charge for account in ledger.accounts() for charge in Statement.of(ledger, account.name).charges]
    # The files first, the ledger second: a run enters its publication before anybody sees a file.
    there = [charge for charge in charges if not charge.lost and store.published(key_of(charge)).exists()]
    return [charge for charge in there if ledger.published_digest(charge) is None]


def key_of(charge: Charge) -> Key:
    """What a charge paid for."""
    return Key(charge.release, charge.period, charge.revision)

"""An operator's decision about a store: signed with their key, and known to the store's witness."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

from dphist_pipeline.errors import Refused
from dphist_pipeline.files import may
from dphist_pipeline.ledger.errors import LedgerMoved
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.limits import refuse_bad_spending
from dphist_pipeline.ledger.moving import move
from dphist_pipeline.ledger.postgresql import ledger_database
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.releasing.store import Key, Store, store_unusable


def adoption_unclear(root: Path, missing: list[str], unknown: list[str]) -> Refused:
    """A store that is adopted without saying what was spent."""
    stated = " ".join(f"--spent-elsewhere {account}=EPSILON" for account in missing)
    problem = (
        f"its witness is gone, so that nobody knows what other copies of it spent. State it for every account: "
        f"{stated} (0 if nothing was)"
        if missing
        else f"it has no account {', '.join(unknown)}"
    )
    return Refused(f"the store at {root} is not adopted: {problem}. Nothing was changed.", code="adoption_unclear")


@contextmanager
def deciding(store: Store, ledger: Ledger) -> Iterator[Operator]:
    """Gives the operator who decides, and has the witness note the decision afterwards.

    A ledger of an older version knows no operator and no witness: its first decision brings both.

    Args:
        ledger: of that store; the decision is entered while the context is open.
    """
    first = not ledger.operators()
    operator = Operator.load_or_make() if first else Operator.load()
    witness = store.witness(ledger)
    if not first:
        store.refuse_cut(ledger, witness)
    yield operator
    if first:
        witness.enrol(store.id, ledger.standing().started_by)
        witness.vouch(store.id, ledger.standing)
    # A decision counts at once: a ledger that is put back from before it is refused.
    if witness.standing(store.id) is not None:
        witness.note_head(store.id, *ledger.head())


def move_ledger(store: Store, address: str) -> Ledger:
    """Moves a store's ledger to another database, and closes the old one; after a crash, the same call finishes it.

    Args:
        address: of a database without a ledger that is not the witness's either.
    """
    witness, operator = Witness.at(store.witness_file), Operator.load()
    witness.refuse_ledger(ledger_database(address).place)
    with suppress(LedgerMoved):  # by this call, which was cut short, or elsewhere: moving tells the two apart
        store.refuse_cut(store.ledger(), witness)
    ledger = move(store.ledger_url, store.ledger_id, address, operator)
    witness.note_head(store.id, *ledger.head())
    return ledger


def adopt(store: Store, reason: str, elsewhere: Mapping[str, Fraction]) -> tuple[int, list[str]]:
    """Starts a new generation of a store whose ledger or witness went missing; other copies draw nothing any more.

    Args:
        elsewhere: what was spent that neither ledger nor witness holds, by account.

    Returns:
        The generation, and what the witness held and the ledger did not: it counts as spent.

    Raises:
        Refused: the witness is gone, and what was spent elsewhere was not stated for every account.
        Halted: this user cannot see what was rejected in it.
    """
    if not may(store.confidential, os.R_OK | os.X_OK):
        problem = (
            "is not adopted: this user may not look into its confidential/, which holds what was rejected. Run it as "
            "root, with DPHIST_OPERATOR_KEY=FILE for the operator's key. Nothing was changed."
        )
        raise store_unusable(store.root, problem)
    # Not `store.ledger()`: what was published or rejected names entries that went missing with the ledger.
    ledger = Ledger.open(store.ledger_url, store.ledger_id)
    witness, accounts = store.witness(ledger), [account.name for account in ledger.accounts()]
    standing = witness.standing(store.id)
    missing = sorted(set(accounts) - set(elsewhere)) if standing is None else []
    unknown = sorted(set(elsewhere) - set(accounts))
    if missing or unknown:
        raise adoption_unclear(store.root, missing, unknown)
    for epsilon in elsewhere.values():
        refuse_bad_spending(epsilon)
    held = {charge.hash for charge in ledger.standing().charges}
    carried = [charge for charge in (standing.charges if standing else ()) if charge.hash not in held]
    operator, forgotten = Operator.load(), store.forgotten_rejections(ledger)
    named = [name for name in store.named_entries() if store.root / name[0] not in forgotten]
    ledger.require(named, {charge.hash for charge in carried})
    generation = ledger.adopt(reason, carried, elsewhere, operator)
    witness.begin_generation(store.id, ledger.standing)
    witness.note_head(store.id, *ledger.head())
    for rejection in forgotten:
        # Its charge is never drawn again; what was drawn for it must not come back with an older journal either.
        release, period, _ = rejection.relative_to(store.confidential / "rejected").parts
        key = Key(release, period, int(rejection.stem))
        shutil.rmtree(store.journal(key), ignore_errors=True)
        rejection.unlink()
    return generation, [charge.title for charge in carried]

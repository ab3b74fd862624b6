"""Several hosts of one store: each has a confidential folder of its own, and draws for its own charges alone.

A random id lies in the confidential folder, and every charge names the id of the folder that may draw for it. Hosts
share a ledger, a witness and the store's id; they need not share any folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from dphist_pipeline.errors import AfterCharge
from dphist_pipeline.ledger.books import refuse_other_folder
from dphist_pipeline.ledger.entries import Charge, Folder
from dphist_pipeline.ledger.errors import LedgerError, WitnessMissing
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.publishing.manifest import Manifest
from dphist_pipeline.releasing.locations import ledger_url
from dphist_pipeline.releasing.store import Store, describe, make_folders, own_folder, store_unusable

_FIRST = Folder("unnamed", "'unknown' (by a version that named none)")


def published_elsewhere(charge: Charge, there: Folder) -> AfterCharge:
    """A release whose files lie on another host."""
    return AfterCharge(
        f"{charge.title} was released on host {there.host} (confidential folder {there.id:.12}), and its files are "
        "not in this host's public folder. Read them there, or copy them here. Nothing was drawn or spent.",
        code="published_elsewhere",
    )


def refuse_other_host(store: Store, charge: Charge, published: bool) -> None:
    """Refuses to draw for a charge that another host made.

    Raises:
        AfterCharge: it has published, naming the host.
        LedgerError: `charged_elsewhere`, naming the host.
    """
    folder = own_folder(store)
    # What was charged before charges named a folder belongs to the store that did not join another one.
    there = charge.folder or (_FIRST if store.joined else folder)
    if there.id != folder.id and published:
        raise published_elsewhere(charge, there)
    if charge.folder is None and there.id != folder.id:
        raise LedgerError("charged_elsewhere", charge=charge, there=there, here=folder)
    refuse_other_folder(charge, folder)


def join(root: Path, public_address: str | None = None) -> Store:
    """Makes a store of this host for a ledger and a witness that other hosts use, which the environment names.

    Args:
        public_address: of a copy of its public folder, which hosts of one store share.

    Raises:
        Halted: the environment names no ledger, or a store cannot be made there.
        LedgerError: there is no such ledger, or its witness is another one.
    """
    if not os.environ.get("DPHIST_LEDGER"):
        raise store_unusable(root, "cannot be made: set DPHIST_LEDGER and DPHIST_WITNESS as on its other hosts")
    ledger, witness = Ledger.open(ledger_url(root)), Witness.at()
    witness.refuse_ledger(ledger.place)
    store_id = witness.store_started_by(ledger.standing().started_by)
    if store_id is None:
        raise WitnessMissing(witness.where, f"the ledger at {ledger.place}")
    store = Store(make_folders(root, witness), store_id, ledger.id, joined=True, public_address=public_address)
    describe(store)
    return store


def publisher_of(store: Store) -> str:
    """The id under which this host publishes to a bucket.

    Args:
        store: as this host sees it; hosts that share a confidential folder publish as one.
    """
    return Manifest.publisher_id(own_folder(store).id)

"""Several hosts of one store: each has a confidential folder of its own, and draws for its own charges alone.

A random id lies in the confidential folder, and every charge names the id of the folder that may draw for it. Hosts
share a ledger, a witness and the store's id; they need not share any folder.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path

from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import sync_folder, write_durably
from dphist_pipeline.ledger.books import refuse_other_folder
from dphist_pipeline.ledger.entries import Charge, Folder
from dphist_pipeline.ledger.errors import ChargedElsewhere
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.ledger.witness_errors import WitnessMissing
from dphist_pipeline.publishing.manifest import publisher_id
from dphist_pipeline.releasing.locations import ledger_url
from dphist_pipeline.releasing.store import FOLDER, Store, StoreUnusable, describe, folder_content, make_folders

_FIRST = Folder("unnamed", "'unknown' (by a version that named none)")


class PublishedElsewhere(DphistError):
    """A release whose files lie on another host."""

    def __init__(self, charge: Charge, there: Folder) -> None:
        self.charge, self.there = charge, there
        super().__init__(
            f"{charge.title} was released on host {there.host} (confidential folder {there.id:.12}), and its files are "
            "not in this host's public folder. Read them there, or copy them here. Nothing was drawn or spent."
        )


def own_folder(store: Store) -> Folder:
    """The confidential folder of this host; gives it an id if it is an earlier version's and has none.

    Args:
        store: as this host sees it; its confidential folder is written to where it has no id.

    Raises:
        StoreUnusable: the id is damaged, or cannot be written.
    """
    path = store.confidential / FOLDER
    mend = f"{path.relative_to(store.root)}: put it back from a backup"
    problem = f"a damaged {mend}"
    try:
        if not path.exists():
            draft = path.with_name(f".{uuid.uuid4().hex}")
            write_durably(draft, folder_content())
            with suppress(FileExistsError):  # another process was first
                os.link(draft, path)
            draft.unlink()
            sync_folder(path.parent)
        found = json.loads(path.read_bytes())["id"]
        if isinstance(found, str) and len(found) == 32 and found.isalnum():
            return Folder(found, host_name())
    except PermissionError:
        problem = "a confidential/ that you may not use. `dphist doctor` says which user releases here"
    except OSError as error:
        problem = f"({error.strerror}) an unusable {mend}"
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreUnusable(store.root, f"has {problem}")


def refuse_other_host(store: Store, charge: Charge, published: bool) -> None:
    """Refuses to draw for a charge that another host made.

    Args:
        store: of this host.
        charge: that it came upon.
        published: whether the ledger says so.

    Raises:
        PublishedElsewhere, ChargedElsewhere: naming the host.
    """
    folder = own_folder(store)
    # What was charged before charges named a folder belongs to the store that did not join another one.
    there = charge.folder or (_FIRST if store.joined else folder)
    if there.id != folder.id and published:
        raise PublishedElsewhere(charge, there)
    if charge.folder is None and there.id != folder.id:
        raise ChargedElsewhere(charge=charge, there=there, here=folder)
    refuse_other_folder(charge, folder)


def join(root: Path, public_address: str | None = None) -> Store:
    """Makes a store of this host for a ledger and a witness that other hosts use, which the environment names.

    Args:
        root: its folder.
        public_address: of a copy of its public folder, which hosts of one store share.

    Raises:
        StoreUnusable: the environment names no ledger, or a store cannot be made there.
        LedgerError: there is no such ledger, or its witness is another one.
    """
    if not os.environ.get("DPHIST_LEDGER"):
        raise StoreUnusable(root, "cannot be made: set DPHIST_LEDGER and DPHIST_WITNESS as on its other hosts")
    ledger, witness = Ledger.open(ledger_url(root)), Witness.at()
    witness.refuse_ledger(ledger.place)
    store_id = witness.store_started_by(ledger.standing().started_by)
    if store_id is None:
        raise WitnessMissing(witness.where, f"the ledger at {ledger.place}")
    store = Store(make_folders(root, witness), store_id, ledger.id, joined=True, public_address=public_address)
    describe(store)
    return store


def host_name() -> str:
    """What this machine is called, for the ledger."""
    name = socket.gethostname()
    return name if name.isprintable() and 0 < len(name) <= 200 else "unnamed"


def publisher_of(store: Store) -> str:
    """The id under which this host publishes to a bucket.

    Args:
        store: as this host sees it; hosts that share a confidential folder publish as one.
    """
    return publisher_id(own_folder(store).id)

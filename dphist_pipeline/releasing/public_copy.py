"""The copy of a store's public folder in a bucket, whose address is kept in `store.json`.

The public folder is what publications are made in, and the catalogue is built from. Nothing comes back from a bucket: a
public folder that was lost is put back from a backup, or made anew from the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dphist_pipeline.errors import Halted, Refused
from dphist_pipeline.files import locked_folder
from dphist_pipeline.publishing.bucket_copy import Copied, Origin, bring_up_to_date, found_in
from dphist_pipeline.publishing.manifest import NAME, ManifestDamaged, read_manifest
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.releasing._vouching import vouching_reader
from dphist_pipeline.releasing.store import Key, Store


def no_address(root: Path) -> Refused:
    """A store that copies nothing anywhere."""
    return Refused(
        f"the store at {root} has no bucket: `dphist store publish --to s3://bucket/prefix` names one. What is "
        "published lies in its public folder; copy that anywhere.",
        code="no_address",
    )


class NotCopied(Halted):
    """What was published here is not in the bucket yet."""

    def __init__(self, problem: str, try_again: bool = False) -> None:
        self.problem, self.try_again = problem, try_again
        super().__init__(
            f"{problem} What is published stays published in the public folder, and nothing is spent again: mend it, "
            "then run `dphist store publish`, or the same command again."
        )


def refuse_taken(address: str) -> str:
    """Refuses, before a store is made, a bucket that cannot be read or that others publish to.

    Args:
        address: `s3://bucket/prefix`, as somebody wrote it.

    Returns:
        The address as it is kept.

    Raises:
        ManifestDamaged, ObjectStoreFailed, Halted: what is wrong, and the mend.
    """
    objects = ObjectStore(address)
    if os.environ.get("DPHIST_LEDGER"):
        stored = objects.read(NAME)  # the ledger may be one that is there already, and owns it
        if stored is not None:
            read_manifest(stored.content, objects.address)
    else:
        found_in(objects, "", "")
    return objects.address


def with_bucket(store: Store, address: str) -> Store:
    """The store with another bucket to copy to, which it remembers; nothing is sent yet.

    What was sent to an earlier bucket stays there.

    Args:
        address: `s3://bucket/prefix`, as somebody wrote it.

    Raises:
        ManifestDamaged, ObjectStoreFailed, Halted: what is wrong, and the mend.
    """
    objects = ObjectStore(address)
    found_in(objects, store.ledger_id, store.publisher())
    return store.with_address(objects.address)


def copy_to_bucket(
    store: Store, key: Key, progress: Callable[[str], None] = lambda step: None, check: bool = False, drop: bool = False
) -> Copied:
    """Brings a store's bucket to the state of its public folder; one call of a machine at a time.

    Args:
        store: with a public address; its catalogue is built.
        progress: told the name of the step, if there is something to send.
        check: read every object, and send again what is missing or altered.
        drop: take publications that the public folder lacks out of the bucket's manifest.

    Raises:
        NotCopied: with the reason.
        PublishedFilesDamaged: a file in the public folder is missing, altered, a link, or not what the ledger recorded.
    """
    assert store.public_address is not None
    try:
        objects = ObjectStore(store.public_address)
        with store.run(key) as scratch, locked_folder(store.confidential):
            origin = Origin(
                store.public,
                store.ledger_id,
                store.publisher(),
                store.building,
                lambda: _catalogued(store.public),
                vouching_reader(store),
            )
            return bring_up_to_date(objects, origin, scratch, progress, check=check, drop=drop)
    except (ManifestDamaged, ObjectStoreFailed) as error:
        problem, passes = str(error), error.try_again
    except OSError as error:
        passes = False
        problem = f"{store.public_address} cannot be written: {type(error).__name__} on this machine."
    raise NotCopied(problem, passes)


def _catalogued(public: Path) -> frozenset[str]:
    import duckdb

    from dphist_pipeline.answering.catalogue import Catalogue

    with duckdb.connect() as connection:
        return Catalogue(public).attach(connection)

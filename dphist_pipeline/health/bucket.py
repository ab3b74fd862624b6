"""The check of the bucket that a store's releases are copied to: reached, writable as it must be, and up to date."""

from __future__ import annotations

import hashlib

from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import Examined, Finding, fault, listed, not_looked_at, ok, told, warning
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.bucket_copy import found_in, is_finished, lacking, unsent
from dphist_pipeline.publishing.manifest import VERSIONS, Manifest
from dphist_pipeline.publishing.object_store import ObjectStore
from dphist_pipeline.releasing.store import Store

PROBE = f"{VERSIONS}/0/asked-by-doctor"
NO_VERSION = f'"{"0" * 32}"'
PUBLISH = "dphist store publish, as the user who releases; it spends nothing."


def bucket(seen: Examined) -> Finding:
    """The bucket: reached with this user's keys, conditional writes honoured, and the state of the public folder.

    Args:
        seen: without its store, nothing is looked at; keys are tried only where this user releases.
    """
    check = "bucket"
    if seen.store is None:
        return not_looked_at(check, "the store could not be opened")
    address = seen.store.public_address
    if address is None:
        return ok(check, "what is published is copied to no bucket")
    if not seen.releases_here:
        return ok(check, f"releases are copied to {address}; only the user who releases needs keys for it")
    try:
        objects = ObjectStore(address)
        there = found_in(objects, seen.store.ledger_id).manifest
        if not _honours_conditions(objects):
            return fault(
                check,
                f"the server of {address} ignores the conditions of writes, so two publishers could undo each other's",
                "Publish to a server that honours If-Match: dphist store publish --to s3://BUCKET/PREFIX",
            )
        finished = is_finished(objects, there)
    except DphistError as error:
        return told(check, error)
    late = unsent(seen.store.public, there)
    if late or not finished:
        said = f": {listed(late)}" if late else "; a copy was cut short"
        return warning(check, f"{address} is not as the public folder is{said}", PUBLISH)
    only_there = _only_there(seen.store, seen.ledger, there) if seen.ledger is not None else []
    if only_there:
        return warning(check, f"published in {address}, and not in the public folder: {listed(only_there)}", PUBLISH)
    return ok(check, f"{address} has all {len(there.publications())} publications, in generation {there.generation}")


def _honours_conditions(objects: ObjectStore) -> bool:
    """Whether a write is refused whose condition cannot hold; so nothing is left there, or what was is deleted."""
    if objects.replace(PROBE, b"", hashlib.sha256().hexdigest(), NO_VERSION) is None:
        return True
    objects.delete(PROBE)
    return False


def _only_there(store: Store, ledger: Ledger, there: Manifest) -> list[str]:
    """Places of publications that the ledger knows and the public folder lacks."""
    found = []
    for place in lacking(store.public, there):
        release, period, revision = (part.rpartition("=")[2] for part in place.split("/"))
        charges = {made.revision: made for made in ledger.charges(release, period) if not made.lost}
        charge = charges.get(int(revision))
        found += [place] if charge is not None and ledger.published_digest(charge) is not None else []
    return found

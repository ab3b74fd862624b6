"""The check of the bucket that a store's releases are copied to: reached, writable as it must be, and up to date."""

from __future__ import annotations

from dphist_pipeline.errors import DphistError
from dphist_pipeline.health.finding import Examined, Finding, fault, finding_of, listed, not_looked_at, ok, warning
from dphist_pipeline.publishing.bucket_copy import BucketCopy

PUBLISH = "dphist store publish, as the user who releases; it spends nothing."
LOST = (
    "Put the folder back from a backup, or run dphist release for these periods again, which costs nothing. If they "
    "never were published here, somebody else wrote to the bucket: dphist store publish --drop"
)


def bucket(seen: Examined) -> Finding:
    """The bucket: reached with this user's keys, conditional writes honoured, and the state of the public folder.

    Keys are tried only where this user releases.
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
        copy = BucketCopy(address)
        # A host without an id has published nothing yet; to ask for one would make it.
        own = seen.store.publisher() if seen.store.has_published else ""
        there = copy.found(seen.store.ledger_id, own).manifest
        if not copy.honours_conditions():
            return fault(
                check,
                f"the server of {address} ignores the conditions of writes, so two publishers could undo each other's",
                "Publish to a server that honours If-Match: dphist store publish --to s3://BUCKET/PREFIX",
            )
        state = copy.behind(there, seen.store.public)
    except DphistError as error:
        return finding_of(check, error)
    if state.lost:
        return fault(check, f"{address} names what the public folder does not have: {listed(state.lost)}", LOST)
    if state.late or not state.finished:
        details = f": {listed(state.late)}" if state.late else "; a copy was cut short"
        return warning(check, f"{address} is not as the public folder is{details}", PUBLISH)
    return ok(check, f"{address} has all {len(there.publications())} publications, in generation {there.generation}")

"""The copy of a store's public folder in a bucket, whose address is kept in `store.json`.

The public folder stays what publications are made in, and the catalogue is built from. Several stores of one ledger may
share a bucket: each takes from it what the ledger says was published and its own folder lacks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import locked_folder, replace_durably
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.bucket_copy import (
    BelongsToAnother,
    Found,
    commit,
    finish,
    found_in,
    is_finished,
    lacking,
    plan,
    send,
    whole_part,
)
from dphist_pipeline.publishing.fetching import download
from dphist_pipeline.publishing.manifest import NAME, Manifest, ManifestDamaged, place_of, read_manifest
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, read_audit
from dphist_pipeline.publishing.release_files import move_into_place
from dphist_pipeline.releasing.store import DESCRIBED, Key, Store, StoreUnusable, description

TRIES = 20


class NoAddress(DphistError):
    """A store that copies nothing anywhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        super().__init__(
            f"the store at {root} has no bucket: `dphist store publish --to s3://bucket/prefix` names one. What is "
            "published lies in its public folder; copy that anywhere."
        )


class NotCopied(DphistError):
    """What was published here is not in the bucket yet."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"{problem} What is published stays published in the public folder, and nothing is spent again: mend it, "
            "then run `dphist store publish`, or the same command again."
        )


@dataclass(frozen=True)
class Copied:
    """What a call did.

    Attributes:
        address: of the bucket and prefix.
        sent: paths in the public folder that were uploaded.
        taken: publications that the public folder lacked, and has from the bucket now.
        only_there: publications that the bucket has and the public folder still lacks.
    """

    address: str
    sent: tuple[str, ...]
    taken: tuple[str, ...]
    only_there: tuple[str, ...]


def refuse_taken(address: str) -> str:
    """Refuses, before a store is made, a bucket that cannot be read or that another ledger's releases are in.

    Args:
        address: `s3://bucket/prefix`, as somebody wrote it.

    Returns:
        The address as it is kept.

    Raises:
        BelongsToAnother, ManifestDamaged, ObjectStoreFailed, BucketRefused: what is wrong, and the mend.
    """
    objects = ObjectStore(address)
    if os.environ.get("DPHIST_LEDGER"):
        stored = objects.read(NAME)  # the ledger may be one that is there already, and owns it
        if stored is not None:
            read_manifest(stored.content, objects.address)
    else:
        found_in(objects, "")
    return objects.address


def with_bucket(store: Store, address: str) -> Store:
    """The store with another bucket to copy to, which it remembers; nothing is sent yet.

    What was sent to an earlier bucket stays there.

    Args:
        store: its `store.json` is replaced.
        address: `s3://bucket/prefix`, as somebody wrote it.

    Raises:
        BelongsToAnother, ManifestDamaged, ObjectStoreFailed, BucketRefused, StoreUnusable: what is wrong, and the mend.
    """
    objects = ObjectStore(address)
    found_in(objects, store.ledger_id)
    store = replace(store, public_address=objects.address)
    described = store.root / DESCRIBED
    try:
        with locked_folder(store.root):
            mode = described.stat().st_mode & 0o777  # whoever could read it still can
            replace_durably(described, store.root / f".{DESCRIBED}.new", description(store), mode)
        return store
    except OSError as error:
        problem = f"cannot remember that: {DESCRIBED} is not written ({error.strerror})"
    raise StoreUnusable(store.root, f"{problem}. Run this as the user who releases.")


def copy_to_bucket(
    store: Store,
    key: Key,
    build: Callable[[Path], None],
    progress: Callable[[str], None] = lambda step: None,
    check: bool = False,
) -> Copied:
    """Brings a store's bucket to the state of its public folder; one call of a machine at a time.

    Args:
        store: with a public address.
        key: of a release that changed.
        build: lists the current files and builds the catalogue, with a scratch folder, after publications were taken
            from the bucket.
        progress: told the name of the step, if there is something to send.
        check: look at every object, and send again what is missing or altered.

    Raises:
        NotCopied: with the reason.
        PublishedFilesDamaged: a file in the public folder is missing or altered.
    """
    assert store.public_address is not None
    try:
        objects = ObjectStore(store.public_address)
        with store.run(key) as scratch, locked_folder(store.confidential):
            return _copied(store, objects, scratch, build, progress, check)
    except (BelongsToAnother, ManifestDamaged, ObjectStoreFailed) as error:
        problem = str(error)
    except OSError as error:
        problem = f"{store.public_address} cannot be written: {type(error).__name__} on this machine."
    raise NotCopied(problem)


def _copied(
    store: Store,
    objects: ObjectStore,
    scratch: Path,
    build: Callable[[Path], None],
    progress: Callable[[str], None],
    check: bool,
) -> Copied:
    sent: set[str] = set()
    taken: set[str] = set()
    for number in range(TRIES):
        found = found_in(objects, store.ledger_id)
        there = whole_part(objects, found.manifest, store.public) if check else found.manifest
        was_finished = is_finished(objects, found.manifest) and there == found.manifest
        new = _taken(store, objects, there, scratch)
        taken |= new
        links = scratch / f"links_{number}"
        links.mkdir()
        with store.building():
            if new:
                build(scratch)
            planned = plan(store.public, links, there, _catalogued(store.public))
        is_changed = bool(planned.sources) or planned.files != found.manifest.files
        if not is_changed and was_finished:
            return _done(store, objects, found.manifest, sent, taken)
        if not number:
            progress(f"copying to {objects.address}")
        now: Found | None = found
        if is_changed:
            files = send(objects, planned, there)
            sent |= planned.sources.keys()
            now = commit(objects, found, files, datetime.now(UTC))
        if now is None:  # another host published meanwhile
            continue
        finish(objects, now.manifest, planned.sources if was_finished else now.manifest.files)
        stored = objects.read(NAME)
        if stored is not None and stored.etag == now.etag:  # else the plain names may be older than the manifest
            return _done(store, objects, now.manifest, sent, taken)
    raise ObjectStoreFailed(objects.address, f"cannot be written: others published there {TRIES} times meanwhile.")


def _done(store: Store, objects: ObjectStore, manifest: Manifest, sent: set[str], taken: set[str]) -> Copied:
    missing = tuple(lacking(store.public, manifest))
    return Copied(objects.address, tuple(sorted(sent)), tuple(sorted(taken)), missing)


def _catalogued(public: Path) -> frozenset[str]:
    import duckdb

    from dphist_pipeline.answering.catalogue import attach_catalogue

    with duckdb.connect() as connection:
        return attach_catalogue(connection, public)


def _taken(store: Store, objects: ObjectStore, manifest: Manifest, scratch: Path) -> set[str]:
    """Moves the publications that the folder lacks and the ledger knows into place, and gives their places."""
    missing = lacking(store.public, manifest)
    ledger, taken = store.ledger() if missing else None, set()
    for place in missing:
        draft = scratch / hashlib.sha256(place.encode()).hexdigest()
        key = key_of(place)
        if ledger is not None and _is_drafted(objects, manifest, place, draft) and _is_paid(ledger, key, draft):
            with store.building():
                move_into_place(draft, store.published(key))
            taken.add(place)
    return taken


def key_of(place: str) -> Key:
    """The key of a publication.

    Args:
        place: below the public folder, such as `wards/period=all/revision=1`.
    """
    release, period, revision = place.split("/")
    return Key(release, period.removeprefix("period="), int(revision.removeprefix("revision=")))


def _is_drafted(objects: ObjectStore, manifest: Manifest, place: str, draft: Path) -> bool:
    """Downloads a publication; False if a file is gone or is not what the manifest says."""
    shutil.rmtree(draft, ignore_errors=True)
    for path, entry in manifest.files.items():
        if place_of(path) == place:
            file = draft / path.removeprefix(f"{place}/")
            file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not download(objects, entry, file):
                return False
    return True


def _is_paid(ledger: Ledger, key: Key, draft: Path) -> bool:
    """Whether the ledger says that exactly this was published; of the local model it says nothing."""
    try:
        audit = read_audit(draft)
        entry = audit["ledger"]["hash"]
    except (PublishedFilesDamaged, KeyError, TypeError):
        return False
    for charge in ledger.charges(key.release, key.period):
        if charge.revision == key.revision:
            told = (audit.get("release"), audit.get("period"), audit.get("revision"), entry)
            is_charged = told == (key.release, key.period, key.revision, charge.hash)
            return is_charged and audit["values_digest"] == ledger.published_digest(charge)
    return False

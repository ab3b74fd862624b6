"""Copies the public folder to a bucket, so that its readers see one whole state after another.

Files first, under names that nobody reads yet; then the manifest that names them, by a conditional write; then the
copies under plain names, the catalogue and then `index.html` last. Cut short anywhere, the same call goes on, and sends
nothing again that is there. See `manifest`.

A bucket is written, and never trusted: others may write to it. What the next manifest names comes from the public
folder alone. What was read from the bucket only decides what need not be sent again; `damaged` reads contents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from dphist_pipeline.errors import first_of
from dphist_pipeline.publishing.manifest import (
    CATALOGUE,
    INDEX,
    NAME,
    VERSIONS,
    Entry,
    Manifest,
    ManifestDamaged,
    place_of,
    read_manifest,
)
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.publishing.public_files import AUDIT, derived_files, expected_digests, files_of, keep, publications
from dphist_pipeline.publishing.published_files import TABLES_OF_FAMILY, PublishedFolder, digest_of, read_audit

MOST_NAMED = 5
TRIES = 5
AT_ONCE = 8  # uploads
LAST = (CATALOGUE, INDEX)  # under their plain names
KEPT = timedelta(days=1)  # how long what was replaced stays, for those who are still reading it
Thing = TypeVar("Thing")
Result = TypeVar("Result")


def belongs_to_another(address: str, of_ledger: bool = True) -> ObjectStoreFailed:
    """A prefix that another ledger's releases, or those of another host of this ledger, are copied to."""
    whose = "another ledger. Give each ledger" if of_ledger else "another host of this ledger. Give each host"
    gone = "" if of_ledger else f" If that host is gone, delete {NAME} there first."
    return ObjectStoreFailed(
        address,
        f"holds the releases of {whose} a bucket or prefix of its own.{gone} Nothing was changed there.",
        code="belongs_to_another",
    )


def not_in_public_folder(address: str, places: Sequence[str]) -> ObjectStoreFailed:
    """Publications that a bucket's manifest names, and the public folder does not have."""
    return ObjectStoreFailed(
        address,
        f"names publications that the public folder does not have: {first_of(places, MOST_NAMED)}. "
        "Either the folder lost them: put it back from a backup, or run `dphist release` for their periods again, "
        "which makes the same files from the journal. Or somebody else wrote to the bucket: `dphist store publish "
        "--drop` takes them out of its manifest. Nothing was changed there.",
        code="not_in_public_folder",
    )


@dataclass(frozen=True)
class Origin:
    """The public folder that a bucket is a copy of, and what a copy asks of its store.

    Attributes:
        public: the folder.
        ledger: id of the ledger that pays for what lies there.
        publisher: id of the host; see `publisher_id`.
        locked: while it is held, nobody else changes the folder.
        catalogued: gives the digests of the audits in the catalogue.
        read: checks a publication, by its folder; raises PublishedFilesDamaged.
    """

    public: Path
    ledger: str
    publisher: str
    locked: Callable[[], AbstractContextManager[None]]
    catalogued: Callable[[], frozenset[str]]
    read: Callable[[Path], object] = read_audit


@dataclass(frozen=True)
class Copied:
    """What a call did.

    Attributes:
        address: of the bucket and prefix.
        sent: paths in the public folder that were uploaded.
        dropped: publications that the manifest named and the public folder lacks, and that it names no more.
    """

    address: str
    sent: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a bucket has: its manifest, with the tag of that version; of an empty one, none."""

    manifest: Manifest
    etag: str | None


@dataclass(frozen=True)
class Planned:
    """What a state of the public folder needs that the bucket does not have.

    Attributes:
        files: all that the next manifest names, by path.
        sources: for those that changed, the file with their content.
    """

    files: Mapping[str, Entry]
    sources: Mapping[str, Path]


def found_in(objects: ObjectStore, ledger: str, publisher: str) -> Found:
    """The state of a bucket.

    Args:
        ledger: id of the ledger that pays; empty for a store that is not made yet, to which no manifest belongs.
        publisher: id of the host that wants to write there; see `publisher_id`.

    Raises:
        ManifestDamaged, ObjectStoreFailed: it cannot be written to, or belongs to another publisher.
    """
    stored = objects.read(NAME)
    if stored is None:
        return Found(Manifest(ledger, 0, publisher=publisher), None)
    manifest = read_manifest(stored.content, objects.address)
    if manifest.ledger != ledger:
        raise belongs_to_another(objects.address)
    if manifest.publisher not in ("", publisher):
        raise belongs_to_another(objects.address, of_ledger=False)
    return Found(replace(manifest, publisher=publisher), stored.etag)


def bring_up_to_date(
    objects: ObjectStore,
    origin: Origin,
    scratch: Path,
    progress: Callable[[str], None],
    *,
    check: bool = False,
    drop: bool = False,
) -> Copied:
    """Brings a bucket to the state of a public folder; one call of a machine at a time.

    Args:
        scratch: an empty folder on the public folder's file system.
        progress: told the name of the step, if there is something to send.
        check: read every object, and send again what is missing or altered.
        drop: take publications that the public folder lacks out of the bucket's manifest.

    Raises:
        ManifestDamaged, ObjectStoreFailed: it cannot be written to, belongs to another publisher, or names what the
            public folder lacks.
        PublishedFilesDamaged: a file in the public folder is missing, altered, a link, or not what `origin` reads.
    """
    sent: set[str] = set()
    dropped: set[str] = set()
    for number in range(TRIES):
        found = found_in(objects, origin.ledger, origin.publisher)
        lost = _lacking(origin.public, found.manifest)
        if lost and not drop:
            raise not_in_public_folder(objects.address, lost)
        altered = damaged(objects, found.manifest) if check else set()
        whole = {path: entry for path, entry in found.manifest.files.items() if path not in altered}
        there = replace(found.manifest, files=whole)
        was_finished = not altered and _is_finished(objects, found.manifest)
        links = scratch / f"links_{number}"
        links.mkdir()
        with origin.locked():
            planned = plan(origin.public, links, there, origin.catalogued(), origin.read)
        is_changed = bool(planned.sources) or planned.files != found.manifest.files
        if not is_changed and was_finished:
            return Copied(objects.address, tuple(sorted(sent)), tuple(sorted(dropped)))
        if not number:
            progress(f"copying to {objects.address}")
        now: Found | None = found
        if is_changed:
            files = send(objects, planned, there)
            sent |= planned.sources.keys()
            now = commit(objects, found, files, datetime.now(UTC))
        if now is None:  # somebody else wrote there meanwhile
            continue
        dropped |= set(lost)
        finish(objects, now.manifest, planned.sources if was_finished else now.manifest.files)
        stored = objects.read(NAME)
        if stored is not None and stored.etag == now.etag:  # else the plain names may be older than the manifest
            return Copied(objects.address, tuple(sorted(sent)), tuple(sorted(dropped)))
    raise ObjectStoreFailed(objects.address, f"cannot be written: others wrote there {TRIES} times meanwhile.", True)


@dataclass(frozen=True)
class Behind:
    """How far a bucket is behind a public folder.

    Attributes:
        late: places of publications, and paths of files made from them, that the bucket does not have as they are now.
        lost: places of the publications that the bucket names and the public folder lacks.
        finished: whether the last copy went to its end.
    """

    late: list[str]
    lost: list[str]
    finished: bool


def behind(objects: ObjectStore, manifest: Manifest, public: Path) -> Behind:
    """Compares a bucket's manifest with a public folder, by its audits, its cards and the files made from them."""
    finished = _is_finished(objects, manifest)
    late = [place for place, folder in publications(public) if not _is_there(public, folder, manifest)]
    for path, source in derived_files(public):
        named = manifest.files.get(path)
        late += [path] if named is None or named.sha256 != digest_of(source) else []
    return Behind(late, _lacking(public, manifest), finished)


def damaged(objects: ObjectStore, manifest: Manifest) -> set[str]:
    """Paths of the files whose objects are missing or altered, under the manifest's names or plain ones.

    Args:
        objects: the bucket, at its prefix; the content of every object is downloaded.
    """

    def is_damaged(path: str) -> bool:
        entry = manifest.files[path]
        return any(objects.content_digest(name, entry.size) != entry.sha256 for name in {entry.object, path})

    return {path for path, is_so in zip(manifest.files, _at_once(is_damaged, manifest.files), strict=True) if is_so}


def plan(
    public: Path,
    links: Path,
    before: Manifest,
    catalogued: frozenset[str],
    read: Callable[[Path], object] = read_audit,
) -> Planned:
    """Which files of the public folder a bucket lacks; of publications that it has, only the audits are read.

    Args:
        public: the store's public folder; nobody else changes it meanwhile.
        links: an empty folder on the same file system, which keeps the files as they are now.
        before: the manifest of the bucket, of which only whole files count.
        catalogued: the digests of the audits in the catalogue. Publications that it lacks wait for the next one.
        read: checks a publication that the bucket does not have as it is now, by its folder.

    Raises:
        PublishedFilesDamaged: a file is missing or altered, or is a link.
    """
    files: dict[str, Entry] = {}
    sources: dict[str, Path] = {}

    def keep_new(path: str, source: Path) -> None:
        link = links / str(len(sources))
        keep(public, source, link)
        sha256, size, old = str(digest_of(link)), link.stat().st_size, before.files.get(path)
        if old is not None and (old.sha256, old.size) == (sha256, size):
            files[path] = old
            return
        is_new = old is None and place_of(path) is not None
        files[path] = Entry(path if is_new else before.version_of(path, sha256), sha256, size)
        sources[path] = link

    for place, folder in publications(public):
        if _waits(folder, catalogued) and place not in before.publications():
            continue
        if _is_there(public, folder, before):
            files |= {path: before.files[path] for path, _ in files_of(public, folder)}
            continue
        read(folder)
        for path, source in files_of(public, folder):
            keep_new(path, source)
    for path, source in derived_files(public):
        keep_new(path, source)
    return Planned(files, sources)


def _waits(folder: Path, catalogued: frozenset[str]) -> bool:
    """Whether the catalogue does not have a publication yet that it will have."""
    tables = sorted(folder.glob(f"{TABLES_OF_FAMILY}/*"))
    return (
        bool(PublishedFolder(folder).stated_digest)
        and not {PublishedFolder(table).stated_digest for table in tables or [folder]} <= catalogued
    )


def _is_there(public: Path, folder: Path, manifest: Manifest) -> bool:
    """Whether a manifest names every file of a publication as it is now."""
    for path, sha256 in expected_digests(public, folder).items():
        named = manifest.files.get(path)
        if named is None or (named.sha256, named.size) != (sha256, (public / path).stat().st_size):
            return False
    return True


def _lacking(public: Path, manifest: Manifest) -> list[str]:
    """Places of the publications that a manifest names and a public folder lacks, in order."""
    return sorted(place for place in manifest.publications() if not (public / place / AUDIT).is_file())


def send(objects: ObjectStore, planned: Planned, before: Manifest) -> dict[str, Entry]:
    """Uploads what a bucket lacks, under names that nobody reads yet.

    Args:
        planned: see `plan`; only its `sources` are uploaded.
        before: the manifest that was planned from; its number goes into new names.

    Returns:
        All that the next manifest names: a name that something else has taken is replaced by a new one.
    """

    def send_one(path: str) -> tuple[str, Entry]:
        entry, source = planned.files[path], planned.sources[path]
        if entry.object == path:
            if objects.upload_new(path, source, entry.sha256):
                return path, entry
            entry = replace(entry, object=before.version_of(path, entry.sha256))
        objects.upload(entry.object, source, entry.sha256)
        return path, entry

    return {**planned.files, **dict(_at_once(send_one, planned.sources))}


def commit(objects: ObjectStore, found: Found, files: Mapping[str, Entry], now: datetime) -> Found | None:
    """Writes the next manifest, unless the bucket has another one than `found` by now.

    Args:
        found: what it was when these files were chosen.
        files: by path; all their objects are there.
        now: the present; what was retired long ago is deleted.

    Returns:
        What the bucket has now; None if somebody else was first.

    Raises:
        ObjectStoreFailed: among others if the server ignores conditions, so that two could write at once.
    """
    before = found.manifest
    named, times = {entry.object for entry in files.values()}, before.retired
    gone = {entry.object for entry in before.files.values() if entry.object.startswith(f"{VERSIONS}/")} - named
    # A time that somebody else wrote may be a lie: what is named is not deleted.
    old = {name for name, at in times.items() if datetime.fromisoformat(at) < now - KEPT} - named
    deleted = {name for name in sorted(old) if objects.delete(name)}
    retired = {name: at for name, at in times.items() if name not in deleted}
    retired |= {name: now.astimezone(UTC).isoformat(timespec="seconds") for name in gone}
    after = replace(before, generation=before.generation + 1, files=files, retired=retired)
    try:
        content = after.text()
    except ValueError:  # a number that somebody else wrote, after which none can come
        raise ManifestDamaged(objects.address) from None
    digest = hashlib.sha256(content).hexdigest()
    etag = objects.replace(NAME, content, digest, found.etag)
    if etag is None:
        # Either somebody was first, or the server wrote this and its answer was lost.
        stored = objects.read(NAME)
        return Found(after, stored.etag) if stored is not None and stored.content == content else None
    if found.etag is None and objects.replace(NAME, content, digest, f'"{"0" * 32}"') is not None:
        raise ObjectStoreFailed(
            objects.address,
            "cannot be used: its server ignores the conditions of writes (If-Match), so two publishers could undo "
            "each other's. Use a server that honours them.",
        )
    return Found(after, etag)


def _is_finished(objects: ObjectStore, manifest: Manifest) -> bool:
    """Whether the files of a manifest are there under their plain names too; those that are copied last tell."""
    last = [(path, manifest.files[path].sha256) for path in LAST if path in manifest.files]
    return all(objects.digest(path) == sha256 for path, sha256 in last)


def finish(objects: ObjectStore, manifest: Manifest, paths: Iterable[str]) -> None:
    """Copies files that are replaced to their plain names: the catalogue last but one, and the page of all last.

    Args:
        manifest: as it was committed; all its objects are there.
        paths: in the public folder, of files to be copied; those that are never replaced are passed over.
    """

    def copy(path: str) -> None:
        entry = manifest.files[path]
        if entry.object != path:
            objects.copy(entry.object, path, entry.sha256)

    _at_once(copy, [path for path in paths if path not in LAST])
    for path in LAST:
        with suppress(KeyError):
            copy(path)


def _at_once(call: Callable[[Thing], Result], things: Iterable[Thing]) -> list[Result]:
    """The results of several calls; after a failure none begins."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(call, thing) for thing in things]
        try:
            return [one.result() for one in running]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise

"""Copies the public folder to a bucket, so that its readers see one whole state after another.

Files first, under names that nobody reads yet; then the manifest that names them, by a conditional write; then the
copies under plain names, the catalogue last. Cut short anywhere, the same call goes on, and sends nothing again that is
there. See `manifest`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TypeVar

from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing.manifest import (
    CATALOGUE,
    CROISSANT,
    CURRENT,
    NAME,
    VERSIONS,
    Entry,
    Manifest,
    place_of,
    read_manifest,
)
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.publishing.published_files import (
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    digest_of,
    read_audit,
    stated_digest,
)

AT_ONCE = 8  # uploads
KEPT = timedelta(days=1)  # how long what was replaced stays, for those who are still reading it
Thing = TypeVar("Thing")
Result = TypeVar("Result")


class BelongsToAnother(DphistError):
    """A prefix that another ledger's releases are copied to."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(
            f"{address} holds the releases of another ledger. Give each ledger a bucket or prefix of its own. Nothing "
            "was changed there."
        )


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


def found_in(objects: ObjectStore, ledger: str) -> Found:
    """The state of a bucket.

    Args:
        objects: the bucket, at its prefix.
        ledger: id of the ledger that pays; empty for a store that is not made yet, to which no manifest belongs.

    Raises:
        BelongsToAnother, ManifestDamaged, ObjectStoreFailed: it cannot be written to.
    """
    stored = objects.read(NAME)
    if stored is None:
        return Found(Manifest(ledger, 0), None)
    manifest = read_manifest(stored.content, objects.address)
    if manifest.ledger != ledger:
        raise BelongsToAnother(objects.address)
    return Found(manifest, stored.etag)


def whole_part(objects: ObjectStore, manifest: Manifest, public: Path) -> Manifest:
    """A manifest without what the public folder can mend: files and publications with missing or altered objects.

    Args:
        objects: the bucket, at its prefix; asked for the digests that objects state, nothing is downloaded.
        manifest: of that bucket.
        public: the store's public folder.
    """

    def is_whole(path: str) -> bool:
        place = place_of(path)
        if place is not None and not (public / place).exists():
            return True
        return objects.digest(manifest.files[path].object) == manifest.files[path].sha256

    damaged = {
        path for path, whole in zip(manifest.files, _at_once(is_whole, manifest.files), strict=True) if not whole
    }
    places = {place_of(path) for path in damaged} - {None}
    files = {path: e for path, e in manifest.files.items() if path not in damaged and place_of(path) not in places}
    return replace(manifest, files=files)


def plan(public: Path, links: Path, before: Manifest, catalogued: frozenset[str]) -> Planned:
    """Which files of the public folder a bucket lacks; of publications that it has, only the audits are read.

    Args:
        public: the store's public folder; nobody else changes it meanwhile.
        links: an empty folder on the same file system, which keeps the files as they are now.
        before: the manifest of the bucket.
        catalogued: the digests of the audits in the catalogue. Publications that it lacks wait for the next one.

    Raises:
        PublishedFilesDamaged: a file is missing or altered.
    """
    # What only the bucket has stays there: a folder that was lost takes nothing back.
    files = {path: entry for path, entry in before.files.items() if place_of(path) is not None}
    sources: dict[str, Path] = {}
    for path, source in chain(_published(public, before, catalogued), _derived(public)):
        entry = _kept(source, links / str(len(sources)))
        if entry is None:
            raise PublishedFilesDamaged(source.parent, f"has no plain file {source.name}")
        old = before.files.get(path)
        if old is not None and old.sha256 == entry.sha256:
            files[path] = old
            continue
        is_new = old is None and place_of(path) is not None
        files[path] = replace(entry, object=path if is_new else before.version_of(path, entry.sha256))
        sources[path] = links / str(len(sources))
    return Planned(files, sources)


def _published(public: Path, before: Manifest, catalogued: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """The files of the publications that are not in a bucket as they are now."""
    for place, folder in _publications(public):
        stated, tables = stated_digest(folder), sorted(folder.glob(f"{TABLES_OF_FAMILY}/*"))
        if stated and not {stated_digest(table) for table in tables or [folder]} <= catalogued:
            continue
        if _is_there(folder, place, before):
            continue
        for part in (folder, *tables):
            inside = part.relative_to(public).as_posix()
            yield from ((f"{inside}/{name}", part / name) for name in (*read_audit(part)["files"], "audit.json"))


def _publications(public: Path) -> Iterator[tuple[str, Path]]:
    """Places and folders of the publications; folders that were renamed are none."""
    for folder in sorted(public.glob("*/period=*/revision=*")):
        place = folder.relative_to(public).as_posix()
        if place_of(f"{place}/audit.json") == place and (folder / "audit.json").is_file():
            yield place, folder


def _is_there(folder: Path, place: str, manifest: Manifest) -> bool:
    """Whether a bucket has a publication as it is now, by the file that is written last."""
    last = "audit.json" if stated_digest(folder) else "card.html"  # of what is withdrawn, the card is marked last
    named = manifest.files.get(f"{place}/{last}")
    return named is not None and named.sha256 == digest_of(folder / last)


def unsent(public: Path, manifest: Manifest) -> list[str]:
    """Places of publications, and paths of files made from them, that a bucket does not have as they are now.

    Args:
        public: the store's public folder, of which audits, cards and the files made from them are read.
        manifest: of the bucket.
    """
    found = [place for place, folder in _publications(public) if not _is_there(folder, place, manifest)]
    for path, source in _derived(public):
        named = manifest.files.get(path)
        found += [path] if named is None or named.sha256 != digest_of(source) else []
    return found


def lacking(public: Path, manifest: Manifest) -> list[str]:
    """Places of the publications that a bucket has and a public folder lacks, in order.

    Args:
        public: the store's public folder.
        manifest: of the bucket.
    """
    return sorted(place for place in manifest.publications() if not (public / place).exists())


def _derived(public: Path) -> Iterator[tuple[str, Path]]:
    """The files that are made from all publications, the catalogue last."""
    for path in [*sorted(public.glob(f"*/{CURRENT}")), public / CROISSANT, public / CATALOGUE]:
        if path.exists():
            yield path.relative_to(public).as_posix(), path


def _kept(source: Path, link: Path) -> Entry | None:
    """Keeps a file under another name, and describes it; None for what is not a plain file."""
    if source.is_symlink() or not source.is_file():
        return None
    link.unlink(missing_ok=True)
    try:
        os.link(source, link)
    except OSError:  # a file system without links, or a file of another user
        shutil.copyfile(source, link)
    return Entry("", str(digest_of(link)), link.stat().st_size)


def send(objects: ObjectStore, planned: Planned, before: Manifest) -> dict[str, Entry]:
    """Uploads what a bucket lacks, under names that nobody reads yet.

    Args:
        objects: the bucket, at its prefix.
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
        if objects.digest(entry.object) != entry.sha256:  # else an earlier call came that far
            objects.upload(entry.object, source, entry.sha256)
        return path, entry

    return {**planned.files, **dict(_at_once(send_one, planned.sources))}


def commit(objects: ObjectStore, found: Found, files: Mapping[str, Entry], now: datetime) -> Found | None:
    """Writes the next manifest, unless the bucket has another one than `found` by now.

    Args:
        objects: the bucket.
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
    old = {name for name, at in times.items() if datetime.fromisoformat(at) < now - KEPT}
    deleted = {name for name in sorted(old) if objects.delete(name)}
    retired = {name: at for name, at in times.items() if name not in deleted}
    retired |= {name: now.astimezone(UTC).isoformat(timespec="seconds") for name in gone}
    after = Manifest(before.ledger, before.generation + 1, files, retired)
    content = after.text()
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


def is_finished(objects: ObjectStore, manifest: Manifest) -> bool:
    """Whether the files of a manifest are there under their plain names too; the catalogue, copied last, tells.

    Args:
        objects: the bucket, at its prefix.
        manifest: of that bucket.
    """
    named = manifest.files.get(CATALOGUE)
    return named is None or objects.digest(CATALOGUE) == named.sha256


def finish(objects: ObjectStore, manifest: Manifest, paths: Iterable[str]) -> None:
    """Copies files that are replaced to their plain names, the catalogue last.

    Args:
        objects: the bucket, at its prefix.
        manifest: as it was committed; all its objects are there.
        paths: in the public folder, of files to be copied; those that are never replaced are passed over.
    """

    def copy(path: str) -> None:
        entry = manifest.files[path]
        if entry.object != path:
            objects.copy(entry.object, path, entry.sha256)

    _at_once(copy, [path for path in paths if path != CATALOGUE])
    with suppress(KeyError):
        copy(CATALOGUE)


def _at_once(call: Callable[[Thing], Result], things: Iterable[Thing]) -> list[Result]:
    """The results of several calls; after a failure none begins."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(call, thing) for thing in things]
        try:
            return [one.result() for one in running]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise

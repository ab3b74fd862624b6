"""Copies the public folder to a bucket, so that its readers see one whole state after another.

Files first, under names that nobody reads yet; then the manifest that names them, by a conditional write; then the
copies under plain names, the catalogue and then `index.html` last. Cut short anywhere, the same call goes on, and sends
nothing again that is there. See `manifest`.

`BucketCopy.fetch` brings one whole state back, every file checked.

A bucket is written, and never trusted: others may write to it. Files are sent by our own list of names, never through a
link, and no text that was read, of an audit or from a bucket, decides which file is opened. What the next manifest
names comes from the public folder alone. What was read from the bucket only decides what need not be sent again;
`damaged` reads contents.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from dphist_pipeline.errors import Refused, first_of
from dphist_pipeline.publishing._published_pages import CARD, PAGES, RENDERED
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.manifest import (
    CATALOGUE,
    INDEX,
    NAME,
    VERSIONS,
    Entry,
    Manifest,
    ManifestDamaged,
    is_path,
    place_of,
)
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.publishing.published_files import (
    AUDIT,
    FILES,
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    PublishedFolder,
    digest_of,
    read_audit,
    refuse_links,
)

MOST_NAMED = 5
TRIES = 5
DRAFT = ".fetching"
PROBE, NO_VERSION = f"{VERSIONS}/0/asked-by-doctor", f'"{"0" * 32}"'  # no object of that name has that tag
AT_ONCE = 8  # uploads
LAST = (CATALOGUE, INDEX)  # under their plain names
KEPT = timedelta(days=1)  # how long what was replaced stays, for those who are still reading it
Item = TypeVar("Item")
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


def folder_taken(folder: Path) -> Refused:
    """A folder that holds something other than an earlier fetch."""
    return Refused(
        f"{folder} holds something else than an earlier fetch. Name a new or empty folder.", code="folder_taken"
    )


def copy_damaged(address: str, path: str) -> Refused:
    """An object in a bucket that is missing, or not what the manifest says."""
    return Refused(
        f"{address}: {path} is missing or altered. Nothing of it was kept; tell who publishes there. They mend "
        "it with `dphist store publish --check`.",
        code="copy_damaged",
    )


def folder_unusable(folder: Path, problem: str) -> Refused:
    """A folder that takes no files, or not as many as a bucket has."""
    return Refused(
        f"{folder} cannot be filled: {problem}. Mend that, or name another folder, and run it again: what is there "
        "already is not fetched twice.",
        code="folder_unusable",
    )


@dataclass(frozen=True)
class Origin:
    """The public folder that a bucket is a copy of, and what a copy asks of its store.

    `ledger`: id of the ledger that pays. `publisher`: id of the host; see `publisher_id`. While `locked` is held,
    nobody else changes the folder. `catalogued` gives the digests of the audits in the catalogue. `read` checks a
    publication, by its folder; raises PublishedFilesDamaged.
    """

    public: Path
    ledger: str
    publisher: str
    locked: Callable[[], AbstractContextManager[None]]
    catalogued: Callable[[], frozenset[str]]
    read: Callable[[Path], object] = read_audit


@dataclass(frozen=True)
class Copied:
    """What a call did: the paths that were uploaded, and the publications that the manifest names no more."""

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

    `files`: all that the next manifest names, by path. `sources`: for those that changed, the file with their content.
    """

    files: Mapping[str, Entry]
    sources: Mapping[str, Path]


@dataclass(frozen=True)
class Behind:
    """How far a bucket is behind a public folder.

    `late`: places of publications, and paths of files made from them, that the bucket does not have as they are now.
    `lost`: places of the publications that the bucket names and the folder lacks. `finished`: the last copy went to its
    end.
    """

    late: list[str]
    lost: list[str]
    finished: bool


@dataclass(frozen=True)
class Fetched:
    """What a fetch did: how many files the folder holds, how many of them are new, and how many bytes these have."""

    folder: Path
    files: int
    downloaded: int
    size: int


class BucketCopy:
    """The copy of a public folder in a bucket, below one prefix: `s3://bucket/prefix`, as somebody wrote it."""

    def __init__(self, address: str) -> None:
        self.objects = ObjectStore(address)

    @property
    def address(self) -> str:
        """The address of bucket and prefix, as the store keeps it."""
        return self.objects.address

    def refuse_damaged(self) -> None:
        """Refuses a bucket whose manifest cannot be read; an empty one has none."""
        stored = self.objects.read(NAME)
        if stored is not None:
            Manifest.read(stored.content, self.address)

    def honours_conditions(self) -> bool:
        """Whether a write is refused whose condition cannot hold; so nothing is left there, or what was is deleted."""
        if self.objects.replace(PROBE, b"", hashlib.sha256().hexdigest(), NO_VERSION) is None:
            return True
        self.objects.delete(PROBE)
        return False

    def found(self, ledger: str, publisher: str) -> Found:
        """The state of a bucket, for a publisher who wants to write there.

        `ledger` is empty for a store that is not made yet, to which no manifest belongs.

        Raises:
            ManifestDamaged, ObjectStoreFailed: it cannot be written to, or belongs to another publisher.
        """
        objects = self.objects
        stored = objects.read(NAME)
        if stored is None:
            return Found(Manifest(ledger, 0, publisher=publisher), None)
        manifest = Manifest.read(stored.content, objects.address)
        if manifest.ledger != ledger:
            raise belongs_to_another(objects.address)
        if manifest.publisher not in ("", publisher):
            raise belongs_to_another(objects.address, of_ledger=False)
        return Found(replace(manifest, publisher=publisher), stored.etag)

    def bring_up_to_date(
        self,
        origin: Origin,
        scratch: Path,
        progress: Callable[[str], None],
        *,
        check: bool = False,
        drop: bool = False,
    ) -> Copied:
        """Brings the bucket to the state of a public folder; one call of a machine at a time.

        Args:
            scratch: an empty folder on the public folder's file system.
            check: read every object, and send again what is missing or altered.
            drop: take publications that the public folder lacks out of the bucket's manifest.

        Raises:
            ManifestDamaged, ObjectStoreFailed: it cannot be written to, belongs to another publisher, or names what the
                public folder lacks.
            PublishedFilesDamaged: a file in the public folder is missing, altered, a link, or not what `origin` reads.
        """
        objects = self.objects
        sent: set[str] = set()
        dropped: set[str] = set()
        for number in range(TRIES):
            bucket = self.found(origin.ledger, origin.publisher)
            lost = _lacking(origin.public, bucket.manifest)
            if lost and not drop:
                raise not_in_public_folder(objects.address, lost)
            altered = damaged(objects, bucket.manifest) if check else set()
            whole = {path: entry for path, entry in bucket.manifest.files.items() if path not in altered}
            intact = replace(bucket.manifest, files=whole)
            was_finished = not altered and _is_finished(objects, bucket.manifest)
            links = scratch / f"links_{number}"
            links.mkdir()
            with origin.locked():
                planned = plan(origin.public, links, intact, origin.catalogued(), origin.read)
            is_changed = bool(planned.sources) or planned.files != bucket.manifest.files
            if not is_changed and was_finished:
                return Copied(objects.address, tuple(sorted(sent)), tuple(sorted(dropped)))
            if not number:
                progress(f"copying to {objects.address}")
            now: Found | None = bucket
            if is_changed:
                files = send(objects, planned, intact)
                sent |= planned.sources.keys()
                now = commit(objects, bucket, files, datetime.now(UTC))
            if now is None:  # somebody else wrote there meanwhile
                continue
            dropped |= set(lost)
            finish(objects, now.manifest, planned.sources if was_finished else now.manifest.files)
            stored = objects.read(NAME)
            if stored is not None and stored.etag == now.etag:  # else the plain names may be older than the manifest
                return Copied(objects.address, tuple(sorted(sent)), tuple(sorted(dropped)))
        raise ObjectStoreFailed(
            objects.address, f"cannot be written: others wrote there {TRIES} times meanwhile.", True
        )

    def behind(self, manifest: Manifest, public: Path) -> Behind:
        """Compares the bucket's manifest with a public folder, by audits, cards and the files made from them."""
        finished = _is_finished(self.objects, manifest)
        places = [place for place, folder in PublishedFolder.all_in(public) if not _is_there(public, folder, manifest)]
        for path, source in DerivedFiles(public).there():
            entry = manifest.files.get(path)
            places += [path] if entry is None or entry.sha256 != digest_of(source) else []
        return Behind(places, _lacking(public, manifest), finished)

    def fetch(self, folder: Path) -> Fetched:
        """Brings a folder to the state of the bucket: the files of its manifest, by their paths, the manifest last.

        Files that are there already and whole are not downloaded again, so a fetch that was cut short goes on.

        Raises:
            Halted, ObjectStoreFailed, ManifestDamaged, Refused: nothing can be read there, or not what was published;
                nothing can be written to the folder, which holds something else, or whose disk is too small.
        """
        try:
            return _fetched(self.objects, folder)
        except OSError as error:
            problem = os.strerror(error.errno) if error.errno else "it is not valid"
        raise folder_unusable(folder, problem)


def damaged(objects: ObjectStore, manifest: Manifest) -> set[str]:
    """Paths of the files whose objects are missing or altered, under the manifest's names or plain ones.

    The content of every object is downloaded.
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

    for place, folder in PublishedFolder.all_in(public):
        if _waits(folder, catalogued) and place not in before.publications():
            continue
        if _is_there(public, folder, before):
            files |= {path: before.files[path] for path, _ in files_of(public, folder)}
            continue
        read(folder)
        for path, source in files_of(public, folder):
            keep_new(path, source)
    for path, source in DerivedFiles(public).there():
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
        entry = manifest.files.get(path)
        if entry is None or (entry.sha256, entry.size) != (sha256, (public / path).stat().st_size):
            return False
    return True


def _lacking(public: Path, manifest: Manifest) -> list[str]:
    """Places of the publications that a manifest names and a public folder lacks, in order."""
    return sorted(place for place in manifest.publications() if not (public / place / AUDIT).is_file())


def send(objects: ObjectStore, planned: Planned, before: Manifest) -> dict[str, Entry]:
    """Uploads what a bucket lacks, under names that nobody reads yet and that have the number of `before`.

    Gives all that the next manifest names: a name that something else has taken is replaced by a new one.
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


def commit(objects: ObjectStore, bucket: Found, files: Mapping[str, Entry], now: datetime) -> Found | None:
    """Writes the next manifest, unless another one than that of `bucket` is there by now; all objects are sent.

    What was retired long ago is deleted. Gives what the bucket has now; None if somebody else was first.

    Raises:
        ObjectStoreFailed: among others if the server ignores conditions, so that two could write at once.
    """
    before = bucket.manifest
    object_names, times = {entry.object for entry in files.values()}, before.retired
    gone = {entry.object for entry in before.files.values() if entry.object.startswith(f"{VERSIONS}/")} - object_names
    # A time that somebody else wrote may be a lie: what is named is not deleted.
    old = {name for name, at in times.items() if datetime.fromisoformat(at) < now - KEPT} - object_names
    deleted = {name for name in sorted(old) if objects.delete(name)}
    retired = {name: at for name, at in times.items() if name not in deleted}
    retired |= {name: now.astimezone(UTC).isoformat(timespec="seconds") for name in gone}
    after = replace(before, generation=before.generation + 1, files=files, retired=retired)
    try:
        content = after.text()
    except ValueError:  # a number that somebody else wrote, after which none can come
        raise ManifestDamaged(objects.address) from None
    digest = hashlib.sha256(content).hexdigest()
    etag = objects.replace(NAME, content, digest, bucket.etag)
    if etag is None:
        # Either somebody was first, or the server wrote this and its answer was lost.
        stored = objects.read(NAME)
        return Found(after, stored.etag) if stored is not None and stored.content == content else None
    if bucket.etag is None and objects.replace(NAME, content, digest, f'"{"0" * 32}"') is not None:
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

    Paths of files that are never replaced are passed over. All objects of the manifest are there.
    """

    def copy(path: str) -> None:
        entry = manifest.files[path]
        if entry.object != path:
            objects.copy(entry.object, path, entry.sha256)

    _at_once(copy, [path for path in paths if path not in LAST])
    for path in LAST:
        with suppress(KeyError):
            copy(path)


def _at_once(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of several calls; after a failure none begins."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in running]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _fetched(objects: ObjectStore, folder: Path) -> Fetched:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (folder / DRAFT).is_dir():
        raise folder_taken(folder)
    stored = objects.read(NAME)
    if stored is None:
        raise ObjectStoreFailed(objects.address, f"cannot be read: nobody publishes there; it has no {NAME}.")
    (folder / DRAFT).mkdir(parents=True, exist_ok=True)
    downloaded: dict[str, int] = {}
    for _ in range(TRIES):
        manifest = Manifest.read(stored.content, objects.address)
        _refuse_too_much(manifest, folder)
        missing = _missing(objects, manifest, folder, downloaded)
        if missing is None:
            (folder / DRAFT / NAME).write_bytes(stored.content)
            (folder / DRAFT / NAME).replace(folder / NAME)
            return Fetched(folder, len(manifest.files), len(downloaded), sum(downloaded.values()))
        again = objects.read(NAME)
        if again is None or again.etag == stored.etag:
            break
        stored = again  # somebody published meanwhile
    raise copy_damaged(objects.address, missing or NAME)


def _refuse_too_much(manifest: Manifest, folder: Path) -> None:
    """Refuses before anything is written what the disk has no room for; sizes are anybody's claims."""
    new = {entry.object: entry.size for path, entry in manifest.files.items() if not (folder / path).is_file()}
    needed, free = sum(new.values()), shutil.disk_usage(folder).free
    if needed > free:
        raise folder_unusable(folder, f"it needs {needed / 1e6:,.0f} MB, and its disk has {free / 1e6:,.0f} MB left")


def _download(objects: ObjectStore, entry: Entry, file: Path) -> bool:
    """Writes what a manifest names into a file; False if it is gone, or is not of that size and digest."""
    if not objects.download(entry.object, file, entry.size) or digest_of(file) != entry.sha256:
        file.unlink(missing_ok=True)
        return False
    file.chmod(0o644)
    return True


def _refuse_links(folder: Path, file: Path) -> None:
    """Refuses a file that would be written elsewhere."""
    link = next((part for part in (file, *file.parents) if part != folder and part.is_symlink()), None)
    if link is not None and link.is_relative_to(folder):
        raise folder_unusable(folder, f"{link.relative_to(folder)} is a link in it")


def _missing(objects: ObjectStore, manifest: Manifest, folder: Path, downloaded: dict[str, int]) -> str | None:
    """Downloads what a folder lacks, the files of publications first; the path of a file that cannot be had."""
    for path, entry in sorted(manifest.files.items(), key=lambda item: (place_of(item[0]) is None, item[0])):
        file = folder / path
        _refuse_links(folder, file)
        if digest_of(file) != entry.sha256:
            if not _download(objects, entry, folder / DRAFT / "file"):
                return path
            file.parent.mkdir(parents=True, exist_ok=True)
            (folder / DRAFT / "file").replace(file)
            downloaded[path] = entry.size
    return None


def files_of(public: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a publication and its tables that are there, by our own names: public path, and file."""
    for part in _parts(folder):
        for name in FILES:
            path = (part / name).relative_to(public).as_posix()
            if is_path(path) and os.path.lexists(part / name):
                yield path, part / name


def _parts(folder: Path) -> list[Path]:
    """The folders of a publication: its own, and those of its tables."""
    return [folder, *sorted(folder.glob(f"{TABLES_OF_FAMILY}/*"))]


def expected_digests(public: Path, folder: Path) -> dict[str, str | None]:
    """The SHA-256 of each file of a publication, as its audits say it, by path; None if its audit does not name it.

    Only audits and marked cards are read.
    """
    audits = {part: _audit(part) for part in _parts(folder)}
    # A card may say that a later revision is published; pages may have been rendered anew.
    several, rendered = len([*folder.parent.glob("revision=*")]) > 1, (folder / RENDERED).exists()
    digests: dict[str, str | None] = {}
    for path, source in files_of(public, folder):
        audit = audits[source.parent]
        is_changed = source.name in (AUDIT, RENDERED) or (source.name in PAGES and rendered)
        is_changed |= source.name == CARD and (several or "withdrawn" in audit)
        digests_by_name = audit.get("files")
        digest = digests_by_name.get(source.name) if isinstance(digests_by_name, dict) else None
        digests[path] = digest_of(source) if is_changed else digest
    return digests


def _audit(part: Path) -> Mapping[str, object]:
    """The audit of a publication or table, not checked; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads((part / AUDIT).read_bytes())
        return read if isinstance(read, dict) else {}
    return {}


def keep(public: Path, source: Path, link: Path) -> None:
    """Keeps a file as it is now under another name, without following a link to it; that name is overwritten.

    Raises:
        PublishedFilesDamaged: the file, or a folder above it, is a link, or it is no plain file.
    """
    link.unlink(missing_ok=True)
    handle = os.open(public, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in source.parent.relative_to(public).parts:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        _keep_in(handle, source.name, link)
        is_plain = stat.S_ISREG(link.lstat().st_mode)
    except OSError:
        is_plain = False
    finally:
        os.close(handle)
    if not is_plain:
        link.unlink(missing_ok=True)
        refuse_links(public, source)
        raise PublishedFilesDamaged(source.parent, f"has no plain file {source.name}")


def _keep_in(folder: int, name: str, link: Path) -> None:
    """Links a file of an open folder, or copies it where links cannot be made."""
    with suppress(OSError):
        os.link(name, link, src_dir_fd=folder, follow_symlinks=False)
        return
    # A file system without links, or a file of another user. Opening must not wait for whoever writes to a pipe.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(handle, "rb") as source:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            with link.open("wb") as copy:
                shutil.copyfileobj(source, copy)

"""Fetches the copy of a public folder from a bucket: one whole state of it, every file checked."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from dphist_pipeline.errors import Refused
from dphist_pipeline.publishing.manifest import NAME, Entry, Manifest, place_of, read_manifest
from dphist_pipeline.publishing.object_store import ObjectStore, ObjectStoreFailed
from dphist_pipeline.publishing.published_files import digest_of

TRIES = 5
DRAFT = ".fetching"


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
class Fetched:
    """What a fetch did.

    Attributes:
        folder: that holds the files.
        files: how many there are.
        downloaded: how many of them were not there before.
        size: of those, in bytes.
    """

    folder: Path
    files: int
    downloaded: int
    size: int


def fetch(address: str, folder: Path) -> Fetched:
    """Brings a folder to the state of a bucket: the files of its manifest, by their paths, the manifest last.

    Files that are there already and whole are not downloaded again, so a fetch that was cut short goes on.

    Args:
        address: `s3://bucket/prefix`, where somebody publishes.
        folder: new or empty, or from an earlier fetch.

    Raises:
        Halted, ObjectStoreFailed, ManifestDamaged, Refused: nothing can be read there, or not what was
            published.
        Refused: the folder holds something else.
        Refused: nothing can be written there, or the disk is too small for what the manifest names.
    """
    try:
        return _fetched(ObjectStore(address), folder)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else "it is not valid"
    raise folder_unusable(folder, problem)


def _fetched(objects: ObjectStore, folder: Path) -> Fetched:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (folder / DRAFT).is_dir():
        raise folder_taken(folder)
    stored = objects.read(NAME)
    if stored is None:
        raise ObjectStoreFailed(objects.address, f"cannot be read: nobody publishes there; it has no {NAME}.")
    (folder / DRAFT).mkdir(parents=True, exist_ok=True)
    downloaded: dict[str, int] = {}
    for _ in range(TRIES):
        manifest = read_manifest(stored.content, objects.address)
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

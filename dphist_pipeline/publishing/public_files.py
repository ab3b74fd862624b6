"""The files of a public folder that are sent elsewhere: by our own list of names, and never through a link.

No text that was read, of an audit or from a bucket, decides which file is opened.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from dphist_pipeline.publishing._published_pages import CARD, PAGES, RENDERED
from dphist_pipeline.publishing.manifest import CATALOGUE, CROISSANT, CURRENT, DOWNLOADS, INDEX, is_path, place_of
from dphist_pipeline.publishing.published_files import (
    FILES,
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    digest_of,
)

AUDIT = "audit.json"


def publications(public: Path) -> Iterator[tuple[str, Path]]:
    """The places and folders of the publications; folders that were renamed are none.

    Args:
        public: the store's public folder.

    Raises:
        PublishedFilesDamaged: a folder of a publication, or one above it, is a link.
    """
    for folder in sorted(public.glob("*/period=*/revision=*")):
        place = folder.relative_to(public).as_posix()
        if place_of(f"{place}/{AUDIT}") == place and (folder / AUDIT).is_file():
            refuse_links(public, folder)
            yield place, folder


def refuse_links(public: Path, path: Path) -> None:
    """Refuses a file or folder that is a link, or lies in a folder that is one.

    Args:
        public: the store's public folder, which may itself be reached through links.
        path: below it; the names are looked at from the outermost on.

    Raises:
        PublishedFilesDamaged: naming the link.
    """
    for parent in reversed([path, *path.parents]):
        if parent.is_relative_to(public) and parent != public and parent.is_symlink():
            raise PublishedFilesDamaged(parent, "is a link: what is published must lie in the public folder itself")


def files_of(public: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a publication and its tables that are there, by our own names: path in the public folder, and file.

    Args:
        public: the store's public folder.
        folder: of one publication.
    """
    for part in _parts(folder):
        for name in FILES:
            path = (part / name).relative_to(public).as_posix()
            if is_path(path) and os.path.lexists(part / name):
                yield path, part / name


def _parts(folder: Path) -> list[Path]:
    """The folders of a publication: its own, and those of its tables."""
    return [folder, *sorted(folder.glob(f"{TABLES_OF_FAMILY}/*"))]


def derived_files(public: Path) -> Iterator[tuple[str, Path]]:
    """The paths and files that are made from all publications: the catalogue, then the pages that name it, last.

    Args:
        public: the store's public folder.
    """
    latest = [*sorted(public.glob("*/latest/**/cells.*")), *sorted(public.glob(f"*/{CURRENT}"))]
    latest += sorted(public.glob("*/picker/**/*.js"))
    latest += sorted(public.glob(f"*/{DOWNLOADS}/period=*/revision=*/*"))
    pages = [*sorted(public.glob(f"*/{INDEX}")), public / INDEX]
    for source in [*latest, public / CROISSANT, public / CATALOGUE, *pages]:
        path = source.relative_to(public).as_posix()
        if is_path(path) and os.path.lexists(source):
            yield path, source


def expected_digests(public: Path, folder: Path) -> dict[str, str | None]:
    """The SHA-256 of each file of a publication, as its audits say it; only audits and marked cards are read.

    Args:
        public: the store's public folder.
        folder: of one publication.

    Returns:
        By path in the public folder. None for a file that its audit does not name.
    """
    audits = {part: _audit(part) for part in _parts(folder)}
    # A card may say that a later revision is published; pages may have been rendered anew.
    several, rendered = len([*folder.parent.glob("revision=*")]) > 1, (folder / RENDERED).exists()
    found: dict[str, str | None] = {}
    for path, source in files_of(public, folder):
        audit = audits[source.parent]
        is_changed = source.name in (AUDIT, RENDERED) or (source.name in PAGES and rendered)
        is_changed |= source.name == CARD and (several or "withdrawn" in audit)
        named = audit.get("files")
        known = named.get(source.name) if isinstance(named, dict) else None
        found[path] = digest_of(source) if is_changed else known
    return found


def _audit(part: Path) -> Mapping[str, object]:
    """The audit of a publication or table, not checked; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads((part / AUDIT).read_bytes())
        return read if isinstance(read, dict) else {}
    return {}


def keep(public: Path, source: Path, link: Path) -> None:
    """Keeps a file as it is now under another name, without following a link to it.

    Args:
        public: the store's public folder.
        source: the file, below it.
        link: its new name, on the same file system; overwritten.

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

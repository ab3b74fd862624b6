"""Files and folders that survive a crash: written, named, and known to be on the disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Writes a new private file and waits until it is on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_durably(path: Path, draft: Path, content: bytes) -> None:
    """Replaces a private file, whole or not at all; one process at a time.

    Args:
        path: of the file.
        draft: beside it; what a killed process left there is deleted.
        content: of the new file.
    """
    draft.unlink(missing_ok=True)
    write_durably(draft, content)
    draft.replace(path)
    sync_folder(path.parent)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lets one process at a time in; the others wait."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Makes a folder and its missing parents, each entry durable, even while others make some of them."""
    missing = [folder, *folder.parents]
    there = next(place for place, path in enumerate(missing) if path.is_dir())
    # The deepest that is there may be new, by somebody who was killed before its entry was durable.
    with suppress(PermissionError):  # then it is not one of ours
        sync_folder(missing[there].parent)
    for path in reversed(missing[:there]):
        path.mkdir(mode=mode, exist_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""The private folders of attempts: each has a lock beside it, which its process holds while it lives."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from dphist_pipeline.files import make_folder

LOCK, KEPT = ".lock", ".kept"


def beside(folder: Path, ending: str) -> Path:
    """A file next to a folder, called like it, with an ending.

    Args:
        folder: of a run; it need not be there.
        ending: with its dot, such as `LOCK`.
    """
    return folder.with_name(folder.name + ending)


def made_and_locked(lock: Path) -> int:
    """Makes a lock and holds it, though a sweep may delete it, or its empty folders, between the two.

    Args:
        lock: the file beside the folder of a run; folders above are made.

    Returns:
        An open file descriptor; the lock is held until it is closed.
    """
    while True:
        with suppress(FileNotFoundError):
            make_folder(lock.parent)
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT, 0o600))
            handle = locked(lock)
            if handle is not None:
                return handle


def locked(lock: Path) -> int | None:
    """Holds a lock if nobody else does and it is still the file of that name.

    Args:
        lock: the file beside the folder of a run; it may vanish meanwhile.

    Returns:
        An open file descriptor, to be closed by the caller; None where somebody else holds the lock.
    """
    handle = None
    with suppress(FileNotFoundError, BlockingIOError):
        handle = os.open(lock, os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), lock.stat()):
            return handle
    if handle is not None:
        os.close(handle)
    return None


def forget(folder: Path) -> None:
    """Deletes a run's folder, then its lock, then the folders above that this leaves empty.

    Args:
        folder: of a run that is over, below `confidential/runs`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        return  # the lock stays, so that the next sweep tries again
    for ending in (LOCK, KEPT):
        beside(folder, ending).unlink(missing_ok=True)
    for parent in folder.parents:
        if parent.name == "runs":
            break
        with suppress(OSError):  # another attempt may still use it
            parent.rmdir()


def left_runs(folder: Path) -> list[str]:
    """Releases and periods of runs that nobody works on any more, as in 'wards/2026-03-02'; in order, each once.

    Nothing in their folders is opened.

    Args:
        folder: of all runs in the confidential part of a store.
    """
    found = set()
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(KEPT) or (name.endswith(LOCK) and not _is_held(Path(place, name))):
                found.add("/".join(Path(place).relative_to(folder).parts[:2]))
    return sorted(found)


def _is_held(lock: Path) -> bool:
    """Whether a process works under a lock, or has just let go of it and deleted it."""
    with suppress(OSError):
        handle = os.open(lock, os.O_RDONLY)
        try:
            # Shared, and let go of at once: a run that starts now takes its own lock a moment later.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return not os.path.samestat(os.fstat(handle), lock.stat())
        finally:
            os.close(handle)
    return True

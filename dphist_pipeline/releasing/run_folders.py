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
    return folder.with_name(folder.name + ending)


def made_and_locked(lock: Path) -> int:
    """Makes a lock and holds it, though a sweep may delete it, or its empty folders, between the two."""
    while True:
        with suppress(FileNotFoundError):
            make_folder(lock.parent)
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT, 0o600))
            handle = locked(lock)
            if handle is not None:
                return handle


def locked(lock: Path) -> int | None:
    """Holds a lock if nobody else does and it is still the file of that name."""
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
    """Deletes a run's folder, then its lock, then the folders above that this leaves empty."""
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

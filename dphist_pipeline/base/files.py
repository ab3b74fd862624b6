"""Writes files and folders durably, so that they survive a crash, and tells which disks machines share."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

# Not 9p, which may be the own disk of a container; nor cluster file systems, whose locks hold.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"}
_NETWORK |= {
    f"fuse.{name}" for name in ("sshfs", "glusterfs", "ceph", "s3fs", "rclone", "gcsfuse", "juicefs", "davfs2")
}
_MOUNTS = Path("/proc/self/mountinfo")

named_store: ContextVar[Path | None] = ContextVar("named_store", default=None)  # `dphist --store DIR COMMAND`


def write_durably(path: Path, *parts: bytes | memoryview) -> None:
    """Writes a new private file (mode 0600) of some parts, and waits until it is on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def replace_durably(path: Path, draft: Path, content: bytes, mode: int = 0o600) -> None:
    """Replaces a private file, whole or not at all; one process at a time.

    The draft lies beside it; what a killed process left there is deleted.
    """
    draft.unlink(missing_ok=True)
    write_durably(draft, content)
    draft.chmod(mode)
    draft.replace(path)
    sync_folder(path.parent)


def replace_public(path: Path, content: str | bytes, scratch: Path) -> None:
    """Replaces a public file, whole or not at all, and waits until the disk has it.

    The scratch folder is on the same file system.
    """
    draft = scratch / path.name
    draft.write_bytes(content if isinstance(content, bytes) else content.encode())
    draft.chmod(0o644)
    sync_file(draft)
    draft.replace(path)
    sync_folder(path.parent)


def read_own(path: Path, most: int) -> bytes:
    """The first bytes of a file that nobody but this user can have written; nothing of any other file."""
    with suppress(OSError):
        # Opening must not follow a link, nor wait for whoever writes to a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return file.read(most) or b""
    return b""


def keeps_compiled(folder: Path) -> bool:
    """Whether a folder of Python's compiled files takes files of ours, too.

    Whoever may write there could change the program.
    """
    return not sys.dont_write_bytecode and os.access(folder, os.W_OK)


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file for reading; a pipe, which would keep the reader waiting for ever, is none.

    Raises:
        OSError: there is no such file.
    """
    return _regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def read_regular(path: Path) -> bytes:
    """The content of a regular file; raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lets one process at a time in; the others wait. The lock is on the folder itself, which exists."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o700) -> None:
    """Makes a folder and its missing parents durably; other processes may make them at the same time."""
    missing = [folder, *folder.parents]
    there = next(place for place, path in enumerate(missing) if path.is_dir())
    # A process that was killed may have made the deepest existing folder without making its entry durable.
    with suppress(PermissionError):  # then this package did not make it
        sync_folder(missing[there].parent)
    for path in reversed(missing[:there]):
        path.mkdir(mode=mode, exist_ok=True)
        sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Waits until the disk has a file, which this user can read."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Waits until the entries of a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def state_folder() -> Path | None:
    """Where programs keep what a user need not see, by the XDG rules; None where this user has no home folder.

    A folder that is no absolute path does not count.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if base.is_absolute():
        return base / "dphist"
    with suppress(RuntimeError):
        if Path.home().is_absolute():
            return Path.home() / ".local" / "state" / "dphist"
    return None


def may(path: Path, mode: int) -> bool:
    """Whether this user may read, write or enter a file or folder."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def network_disk(path: Path) -> str | None:
    """The type of the network file system that a file is, or would be, on; None for others, and where none is told."""
    with suppress(OSError):
        there = next(place for place in (path, *path.parents) if place.exists())
        return network_type(there.stat().st_dev, _MOUNTS.read_text(errors="replace"))
    return None


@lru_cache(maxsize=16)  # a release asks some fifty times
def network_type(device: int, mounts: str) -> str | None:
    """The same by the number of a device and a mount table, as proc(5) describes /proc/self/mountinfo."""
    for line in mounts.splitlines():
        mount_fields, _, after = line.partition(" - ")
        device_field, kind = mount_fields.split()[2:3], after.partition(" ")[0]
        if device_field == [f"{os.major(device)}:{os.minor(device)}"] and kind in _NETWORK:
            return kind
    return None


def project_folder(start: Path) -> Path:
    """The nearest folder from an absolute one upwards that has a pyproject.toml, else that folder itself."""
    return next((folder for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file()), start)


def open_below(folder: Path, path: str) -> BinaryIO:
    """Opens a regular file below a folder for reading, name by name, so that no link and no pipe is followed.

    Args:
        path: relative, with slashes.

    Raises:
        OSError: a name on the way is missing, a link, or no folder; the last one is no regular file.
    """
    *above, name = path.split("/")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        # Without NONBLOCK, opening a pipe would wait for whoever writes to it.
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
    finally:
        os.close(handle)
    return _regular(opened)


def _regular(handle: int) -> BinaryIO:
    """The file of a handle, which is closed where that is a folder or a pipe."""
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise OSError(errno.EINVAL, "no regular file")

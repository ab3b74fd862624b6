"""Which files may be read as code lists: only those below folders that an operator declared public in the ledger.

A spec names the file, so it could name any: the records of another release, or the store. Messages about a file that
may not be read are the same whether it exists or not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE = 1 << 26

_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class CodeListFolders:
    """What an operator decided about code lists.

    Attributes:
        folders: declared public.
        forbidden: whether a file, its links resolved, is never a code list, such as a registered source or the store.
    """

    folders: tuple[Path, ...]
    forbidden: Callable[[Path], bool]


Decided = Callable[[], CodeListFolders]


def content_of_list(file: Path, decided: Decided | None) -> bytes:
    """The first bytes of a code list, one more than it may have.

    What is read is what was allowed: the path is resolved, judged, opened without following links, and the open file
    must still be the one at that path.

    Args:
        decided: gives what an operator decided; none allows no file.

    Raises:
        ValueError: the file may not be read or is not there; the message is the same for both.
    """
    rule = CodeListFolders((), lambda path: True) if decided is None else decided()
    content = None
    with suppress(OSError, RuntimeError, ValueError):
        path = _allowed(file, rule)
        content = None if path is None else _read(path)
    if content is None:
        raise ValueError(
            "is no file below a folder that the ledger declares public for code lists, or is never one, as records "
            "and the store are. If the file is there and public, `dphist ledger allow --code-lists FOLDER` (or "
            "`dphist init --code-lists FOLDER`) declares its folder"
        )
    return content


def _allowed(file: Path, rule: CodeListFolders) -> Path | None:
    """The path with links resolved if an operator allowed it, else None."""
    path = file.resolve(strict=True)
    below = any(path != folder and path.is_relative_to(folder) for folder in _resolved(rule.folders))
    return path if below and not rule.forbidden(path) else None


def _resolved(folders: tuple[Path, ...]) -> list[Path]:
    """The folders that exist, with links resolved."""
    found = []
    for folder in folders:
        with suppress(OSError, RuntimeError):
            found.append(folder.resolve(strict=True))
    return found


def _read(path: Path) -> bytes | None:
    """The content of a regular file; None if another file was put in its place."""
    # Without waiting, since a pipe would never open; it is no regular file.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not _is_at(descriptor, path):
            return None
        return stream.read(LARGEST_FILE + 1)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the file at this path, without following links."""
    if _DESCRIPTORS.is_dir():
        return (_DESCRIPTORS / str(descriptor)).readlink() == path
    return path.resolve(strict=True) == path and os.path.samestat(os.fstat(descriptor), path.lstat())

"""What runs that were killed have left: folders of runs whose lock nobody holds. Nothing in them is opened."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from dphist_pipeline.releasing.run_folders import KEPT, LOCK


def left_runs(folder: Path) -> list[str]:
    """Releases and periods of runs that nobody works on any more, as in 'wards/2026-03-02'; in order, each once.

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

"""Nothing waits until the disk has what was written: what dies in tests is a process, never the machine."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any


class _Unhurried(sqlite3.Connection):
    def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
        """As SQLite's own."""
        return super().execute(sql.replace("synchronous=EXTRA", "synchronous=OFF"), *more)


connect = partial(sqlite3.connect, factory=_Unhurried)


def fsync(handle: int) -> None:
    """Waits for nothing."""

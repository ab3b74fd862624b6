"""One DuckDB for many small readings and counts: opening one takes longer than such a count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import duckdb

from dphist_pipeline.confidential.reading import ingest

FENCE = re.compile("SET (allowed_directories|enable_external_access|lock_configuration)")


class _Unfenced:
    """A connection to an engine that serves many: what fences one reading off is left out, as it would last."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, *more: Any) -> Any:
        """As DuckDB's own."""
        return self if FENCE.match(sql) else self._connection.execute(sql, *more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@cache
def _engine(*settings: tuple[str, Any]) -> Any:
    return duckdb.connect(config=dict(settings))


@contextmanager
def one_engine() -> Iterator[None]:
    """Readings and counts by engines that were started before, one for each choice of settings."""

    def connect(config: Mapping[str, Any]) -> _Unfenced:
        lasting = {name: value for name, value in config.items() if name != "temp_directory"}
        return _Unfenced(_engine(*lasting.items()).cursor())

    started = SimpleNamespace(**vars(duckdb) | {"connect": connect})
    with patch.object(ingest, "duckdb", started):
        yield

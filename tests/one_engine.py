"""One DuckDB for many small counts: opening one takes longer than such a count."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from unittest.mock import patch

import duckdb
import pytest

from dphist_pipeline.confidential import bounding


@pytest.fixture(autouse=True, scope="module")
def one_engine() -> Iterator[None]:
    """Counts of a module's tests share an engine, each on a connection of its own."""
    with duckdb.connect(config={"threads": 1}) as shared:
        opened = SimpleNamespace(connect=lambda config: shared.cursor())
        with patch.object(bounding, "duckdb", opened):
            yield

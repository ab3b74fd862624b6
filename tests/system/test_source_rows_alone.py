"""A row on which the engine fails gives a release as any other: the same files, charge and words as without it."""

from __future__ import annotations

from unittest.mock import Mock

import pyarrow as pa
import pytest
from office import AGE, Office
from system import test_neighbours
from system.test_neighbours import EARLIEST, OTHERS, both, rows

from dphist_pipeline.confidential.reading import _positions as positions
from dphist_pipeline.confidential.reading import _source_files as source_files
from dphist_pipeline.confidential.reading import ingest

DAYS_OF_MARCH = {"column": "day", "calendar": "day", "start": "2026-03-01", "stop": "2026-03-08", "other": True}
frozen = test_neighbours.frozen


def test_a_row_on_which_the_engine_fails_shows_nowhere(
    office: Office, frozen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the guard, DuckDB fails on such a time stamp where it casts it to an instant.
    monkeypatch.setattr(source_files, "with_possible_times", lambda types, table: f"SELECT * FROM {table}")
    monkeypatch.setattr(positions, "wall_clock", lambda column, *given: f"TRY_CAST({column} AS TIMESTAMPTZ)")
    apart = Mock(wraps=ingest._stage_apart)
    monkeypatch.setattr(ingest, "_stage_apart", apart)
    hostile = rows("zoe", [1.0], ["surgery"], [EARLIEST - 1])
    first, second = both(office, (OTHERS, pa.concat_tables([OTHERS, hostile])), axes=[AGE, DAYS_OF_MARCH])
    assert first == second and frozen[0] == frozen[1]
    assert apart.call_count == 1

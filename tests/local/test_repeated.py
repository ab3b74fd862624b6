"""Ids that come twice: only the first report counts, for any number, order and batches of ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_codes import coded
from hypothesis import given, settings
from hypothesis import strategies as st
from reports_scenario import random_ids

from dphist_pipeline.errors import Refused
from dphist_pipeline.local import reports
from dphist_pipeline.local.reports import repeated_reports

Ids = np.ndarray[Any, np.dtype[np.uint8]]


def by_hand(batches: list[Ids]) -> list[int]:
    """The numbers of ids that came before."""
    ids = [row.tobytes() for batch in batches for row in batch]
    return [number for number, name in enumerate(ids) if ids.index(name) < number]


def rows(names: list[int]) -> Ids:
    return np.array([list(name.to_bytes(16, "little")) for name in names], dtype=np.uint8).reshape(-1, 16)


# Few ids, some of which differ in single bits of each half.
NAMES = st.sampled_from([0, 1, 1 << 63, 1 << 64, 1 << 127, 1 << 127 | 1 << 63, (1 << 128) - 1, 5, 5 << 64])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(NAMES, max_size=6), max_size=6))
def test_repeated_ids_are_found_in_any_order_and_batches(batches: list[list[int]]) -> None:
    made = [rows(names) for names in batches]
    assert repeated_reports(made).tolist() == by_hand(made)


def test_an_id_that_comes_a_hundred_thousand_times_counts_once() -> None:
    same, one = np.zeros((100_000, 16), dtype=np.uint8), random_ids(1)
    assert repeated_reports([same, one, same, one]).tolist() == [*range(1, 100_000), *range(100_001, 200_002)]


@pytest.mark.slow
def test_repeated_ids_are_found_when_duckdb_spills_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reports.MEMORY, "memory_limit", "32MB")
    ids = random_ids(1_500_000)  # 36 MB in DuckDB's table, and as many again in its groups
    assert np.array_equal(repeated_reports([*np.split(ids, 15), ids[:999][::-1]]), np.arange(1_500_000, 1_500_999))


def test_too_little_memory_and_disk_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MEMORY", {**reports.MEMORY, "memory_limit": "8MB", "max_temp_directory_size": "1MB"})
    with pytest.raises(
        Refused, check=coded("no_room_for_ids"), match="Free space there, or set TMPDIR to a larger folder"
    ) as refused:
        repeated_reports([random_ids(500_000)])
    assert refused.value.__context__ is None

"""Ids that come twice: the first counts, whatever their number and order, and different ids are never taken for one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports_scenario import random_ids

from dphist_pipeline.local import repeated
from dphist_pipeline.local.repeated import Repeated

Ids = np.ndarray[Any, np.dtype[np.uint8]]


def asked(batches: list[Ids]) -> list[bool]:
    """Whether each id came before, asked batch by batch."""
    found = Repeated.of(lambda: batches, sum(map(len, batches)))
    return [bool(again) for batch in batches for again in found.again(batch)]


def by_hand(batches: list[Ids]) -> list[bool]:
    seen: Counter[bytes] = Counter()
    told = []
    for row in (row.tobytes() for batch in batches for row in batch):
        told.append(seen[row] > 0)
        seen[row] += 1
    return told


def rows(names: list[int]) -> Ids:
    return np.array([list(name.to_bytes(16, "little")) for name in names], dtype=np.uint8).reshape(-1, 16)


# Few ids, some of which differ in single bits of each half.
NAMES = st.sampled_from([0, 1, 1 << 63, 1 << 64, 1 << 127, 1 << 127 | 1 << 63, (1 << 128) - 1, 5, 5 << 64])


@pytest.mark.parametrize("at_once", [1, 3, 1 << 24])
@given(st.lists(st.lists(NAMES, max_size=6), max_size=6))
def test_whoever_came_before_is_known_in_any_shares_and_batches(at_once: int, batches: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repeated, "AT_ONCE", at_once)
        made = [rows(names) for names in batches]
        assert asked(made) == by_hand(made)


@pytest.mark.parametrize("print_bits", [0, 1, 4])
@given(st.lists(st.lists(NAMES, max_size=6), max_size=6))
def test_ids_of_the_same_fingerprint_are_still_told_apart(print_bits: int, batches: list[list[int]]) -> None:
    real = repeated._prints
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repeated, "_prints", lambda ids, key: real(ids, key) & np.uint64((1 << print_bits) - 1))
        made = [rows(names) for names in batches]
        assert asked(made) == by_hand(made)


def test_ids_that_come_a_hundred_thousand_times_count_once() -> None:
    same, one = np.zeros((100_000, 16), dtype=np.uint8), random_ids(1)
    assert sum(asked([same, one, same, one])) == 2 * 100_000 + 2 - 2


def test_all_reports_twice_are_half_of_them_again_across_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "AT_ONCE", 20_000)
    ids = random_ids(60_000)
    told = asked([ids[:50_000], ids[50_000:], ids[::-1]])
    assert told == [False] * 60_000 + [True] * 60_000


def test_who_chooses_ids_can_make_no_two_of_them_look_alike() -> None:
    # Halves that are equal, swapped, add up to the same, or differ in their highest bits only.
    low = np.arange(1, 20_001, dtype=np.uint64)
    high = np.uint64(1 << 63)
    pairs = [(low, low), (low, low[::-1]), (low ^ high, low ^ high), (low << np.uint64(40), -low << np.uint64(40))]
    ids = np.vstack([np.column_stack(halves).view(np.uint8) for halves in pairs])
    assert Repeated.of(lambda: [ids], len(ids)).prints.size == 0  # by chance otherwise once in 10^9 runs

"""Buckets with ends at halves, quarters, …: deviations, prices and the cheapest split, compared with brute force."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.trees.dyadic_buckets import bucket_deviations, bucket_prices, cheapest_buckets, levels_of

Node = tuple[int, int, int, int]  # level and number among the buckets of that level; first cell and the one after


def levels(cells: int) -> list[list[Node]]:
    """The buckets of each level, and the splits of none: written anew."""
    nodes = [(0, cell, cell, cell + 1) for cell in range(cells)]
    found = [nodes]
    while len(nodes) > 1:
        joined = [(len(found), at // 2, nodes[at][2], nodes[at + 1][3]) for at in range(0, len(nodes) - 1, 2)]
        found.append(joined)
        nodes = joined + nodes[len(nodes) - len(nodes) % 2 :]
    return found


def splits(buckets: set[Node], low: int, high: int) -> Iterator[list[Node]]:
    """All splits of the cells low … high - 1, whole before split, in the declared order."""
    if low == high:
        yield []
        return
    for bucket in sorted(buckets, key=lambda node: -node[3]):
        if bucket[2] == low and bucket[3] <= high:
            for rest in splits(buckets, bucket[3], high):
                yield [bucket, *rest]


@settings(deadline=None)
@given(st.lists(st.integers(-5, 30) | st.just(1 << 52), min_size=1, max_size=40))
def test_deviations_are_those_from_the_median_of_every_bucket(counts: list[int]) -> None:
    found = bucket_deviations(np.array(counts, dtype=np.int64))
    assert len(found) == 1 + levels_of(len(counts))
    for costs, nodes in zip(found, levels(len(counts)), strict=True):
        parts = [sorted(counts[low:high]) for _, _, low, high in nodes]
        assert costs.tolist() == [sum(abs(count - part[len(part) // 2]) for count in part) for part in parts]


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=24), st.data())
def test_a_row_moves_only_the_buckets_that_hold_it_and_each_by_at_most_one(counts: list[int], data: st.DataObject):
    cell = data.draw(st.integers(0, len(counts) - 1))
    more = [count + (place == cell) for place, count in enumerate(counts)]
    both = [bucket_deviations(np.array(line, dtype=np.int64)) for line in (counts, more)]
    for here, there, nodes in zip(*both, levels(len(counts)), strict=True):
        for one, other, (_, _, low, high) in zip(here, there, nodes, strict=True):
            assert abs(one - other) <= (low <= cell < high)


@pytest.mark.parametrize("cells", [2, 3, 5, 8])
def test_a_price_is_that_of_the_parts_minus_what_the_level_saves(cells: int) -> None:
    savings = [100, 10, 1][: levels_of(cells)]
    found = bucket_prices(cells, savings)
    assert [part.size for part in found] == [len(nodes) for nodes in levels(cells)]
    known = {
        (low, high): price
        for part, nodes in zip(found, levels(cells), strict=True)
        for price, (_, _, low, high) in zip(part.tolist(), nodes, strict=True)
    }
    for (low, high), price in known.items():
        inside = [node for node in levels(cells) for node in node if low <= node[2] and node[3] <= high and node[0]]
        assert price == -sum(savings[level - 1] for level, *_ in inside)


@settings(deadline=None)
@given(st.integers(1, 9), st.data())
def test_the_cheapest_split_is_the_first_of_the_least_cost(cells: int, data: st.DataObject) -> None:
    nodes = levels(cells)
    cost = st.integers(-4, 4)
    costs = [np.array(data.draw(st.lists(cost, min_size=len(one), max_size=len(one)))) for one in nodes]
    buckets = {node for one in nodes for node in one}
    least = min(
        splits(buckets, 0, cells), key=lambda split: sum(int(costs[level][number]) for level, number, *_ in split)
    )
    starts = [low for _, _, low, _ in least]
    assert cheapest_buckets(costs).tolist() == starts
    assert cheapest_buckets([part.astype(object) << 60 for part in costs]).tolist() == starts


def test_a_million_cells_take_less_than_memory_in_the_square_of_them() -> None:
    counts = np.arange(1_000_003, dtype=np.int64) // 4096 * 50
    costs = bucket_deviations(counts)
    starts = cheapest_buckets(
        [cost + price for cost, price in zip(costs, bucket_prices(counts.size, [1] * 20), strict=True)]
    )
    assert starts.tolist() == list(range(0, counts.size, 4096))

"""The cheapest groups of neighbours on a line in any order, against every split."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.line_groups import cheapest_line_groups
from examples import examples


def cost_of(line, starts, price, price_per_group):
    parts = [line[low:high] for low, high in pairwise([*starts, line.size])]
    return sum(((part - part.mean()) ** 2).sum() + price / part.size + price_per_group for part in parts)


@examples(200)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=8),
    st.sampled_from([0.0, 3.0, 60.0]),
    st.sampled_from([0.0, 2.0, 30.0]),
    st.sampled_from([0.0, 1e9]),
)
def test_no_split_is_cheaper(line, price, price_per_group, offset):
    line = np.array(line, dtype=float) + offset
    cheapest = min(
        cost_of(line, (0, *cuts), price, price_per_group)
        for many in range(line.size)
        for cuts in combinations(range(1, line.size), many)
    )
    groups = cheapest_line_groups(line, price, price_per_group)
    assert groups[0] == 0 and set(np.diff(groups)) <= {0, 1}
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    assert cost_of(line, starts, price, price_per_group) == pytest.approx(cheapest, rel=1e-9, abs=1e-5)


def test_a_line_worked_by_hand():
    # 5, 5 cost 12 / 2 + 1 together and 9 costs 12 + 1; with the 9 they cost 32 / 3 + 12 / 3 + 1; alone 13 each.
    assert cheapest_line_groups(np.array([5.0, 5.0, 9.0]), 12.0, 1.0).tolist() == [0, 0, 0]
    # Twice as far apart the squared error is 128 / 3, and the 9 is left alone.
    assert cheapest_line_groups(np.array([10.0, 10.0, 18.0]), 12.0, 1.0).tolist() == [0, 0, 1]


def test_equal_cells_are_one_group_and_free_groups_are_single_cells():
    assert cheapest_line_groups(np.full(50, 7.0), 1.0, 1.0).max() == 0
    assert cheapest_line_groups(np.arange(50.0), 0.0, 0.0).tolist() == list(range(50))

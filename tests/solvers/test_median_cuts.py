"""How far cuts are from halving a count: against plain sums, how far they move, and where they end."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.median_cuts import imbalances


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=20))
def test_gives_the_difference_of_both_sides_for_every_cut(line):
    assert imbalances(np.array(line)).tolist() == [
        abs(sum(line[:cut]) - sum(line[cut:])) for cut in range(1, len(line))
    ]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 3)), min_size=2, max_size=30))
def test_no_cut_moves_further_than_the_counts_do_together(pairs):
    line, moved = np.array(pairs).T
    assert np.abs(imbalances(line + moved) - imbalances(line)).max() <= np.abs(moved).sum()


def test_the_largest_counts_do_not_wrap_around():
    n = 1 << 13
    assert imbalances(np.full(n, 1 << 52)).min() == 0
    whole = imbalances(np.append(np.full(n - 1, 1 << 52), 0))
    assert int(whole[-1]) == (n - 1) * ((1 << 60) // n)

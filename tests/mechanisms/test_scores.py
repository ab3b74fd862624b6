"""What mechanisms ask of `choose`: on neighbours, no score moves further than its constant times what the counts do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.mechanisms import build

CHOOSING = [
    ("structure_first", {"buckets": 4}),
    ("structure_first", {"buckets": 4, "score": "squared", "count_ceiling": 1}),
    ("structure_first", {"buckets": 3, "score": "squared", "count_ceiling": 9}),
    ("ihp", {"depth": 3}),
    ("ihp", {"depth": 3, "centre": "mean"}),
    ("p_hpartition", {"depth": 3}),
    ("p_hpartition", {"depth": 3, "centre": "mean"}),
    ("kd_hierarchy", {"depth": 3}),
    ("dphr", {"order": "exponential"}),
]
CUBES = {"kd_hierarchy", "dphr"}


class Watched:
    """Doors that pass every question on and keep what was asked of `choose`."""

    def __init__(self, doors):
        self.doors, self.asked = doors, []

    def __getattr__(self, name):
        return getattr(self.doors, name)

    def choose(self, groups, score, candidates, constant, budget):
        self.asked.append((groups, score, candidates, constant))
        return self.doors.choose(groups, score, candidates, constant, budget)


def asked_by(name, given_settings, exact):
    flat = exact.ravel()
    watched = Watched(PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: flat))
    build(name, given_settings).release(watched, Budget(Fraction(20)))
    return watched.asked


@pytest.mark.parametrize(("name", "given_settings"), CHOOSING, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_scores_move_by_no_more_than_their_constant(name, given_settings, data):
    shape = data.draw(st.sampled_from([(7,), (20,), (4, 5), (3, 2, 3)] if name in CUBES else [(7,), (12,), (20,)]))
    cells = int(np.prod(shape))
    exact = np.array(data.draw(st.lists(st.integers(-2, 12), min_size=cells, max_size=cells)))
    moved = exact + data.draw(st.lists(st.integers(-2, 2), min_size=cells, max_size=cells))
    asked = asked_by(name, given_settings, exact.reshape(shape))
    assert asked
    for groups, score, candidates, constant in asked:
        for group, many in zip(groups, candidates, strict=True):
            before, after = score(exact[group]), score(moved[group])
            assert before.dtype == np.int64 and before.shape == (many,)
            assert np.array_equal(before, score(exact[group]))  # the same again: pure
            assert np.abs(after - before).max() <= constant * np.abs(moved - exact)[group].sum()


@pytest.mark.parametrize(("name", "given_settings"), CHOOSING, ids=str)
def test_scores_of_the_largest_counts_stay_within_what_the_door_takes(name, given_settings):
    exact = np.tile([1 << 52, -(1 << 52), 0], 10)
    for groups, score, _, _ in asked_by(name, given_settings, exact):
        for group in groups:
            largest = [abs(int(value)) for value in score(exact[group])]
            assert max(largest) <= 1 << 61


@pytest.mark.parametrize(("name", "given_settings"), CHOOSING, ids=str)
def test_groups_of_one_choice_share_no_cell(name, given_settings):
    for groups, _, _, _ in asked_by(name, given_settings, np.arange(30)):
        assert np.bincount(np.concatenate(groups)).max() == 1

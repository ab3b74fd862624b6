"""StructureFirst: the boundaries of a clear line, what is paid where no choice is left, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, build
from dphist_pipeline.mechanisms.structure_first import StructureFirst


class Scripted:
    """A journal that answers the choices from a list, and draws the rest."""

    def __init__(self, *choices):
        self.choices, self.questions = list(choices), []

    def answer(self, step, question, draw):
        self.questions.append((step, question["door"]))
        return np.array([self.choices.pop(0)]) if question["door"] == "choose" else draw()


class Recorded:
    """A journal that draws, and keeps the scale of every step."""

    def __init__(self):
        self.scales = []

    def answer(self, step, question, draw):
        self.scales.append((step, Fraction(question["scale"])))
        return draw()


def released(exact, buckets, epsilon=50, journal=None, **score):
    exact = np.asarray(exact, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact, journal)
    return StructureFirst(buckets=buckets, **score).release(counts, Budget(Fraction(epsilon)))


def test_finds_the_boundaries_of_clear_steps():
    exact = np.repeat([1000, 90_000, 1000, 40_000], [5, 1, 30, 14])
    estimate = released(exact, 4)
    # A boundary elsewhere costs at least 39,000 more, at a scale of noise of 2 / (25 / 3).
    assert np.array_equal(estimate.groups, np.repeat([0, 1, 2, 3], [5, 1, 30, 14]))
    assert np.abs(estimate.values - exact).max() < 4
    assert estimate.charges == (
        *((f"boundary_{number}", Fraction(25, 3)) for number in (3, 2, 1)),
        ("counts", Fraction(25)),
    )


def test_choices_count_from_the_first_cell_that_can_start_the_last_bucket():
    journal = Scripted(2, 1)  # three buckets: the last starts at 2 + 2, the one before at 1 + 1
    assert released(np.arange(6), 3, journal=journal).groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert journal.questions == [("boundary_2", "choose"), ("boundary_1", "choose"), ("counts", "noisy_sums")]


def test_boundaries_without_a_choice_are_forfeited():
    journal = Scripted(0)  # the last bucket starts at 3: a bucket for each cell before it
    estimate = released(np.arange(6), 4, epsilon=6, journal=journal)
    assert estimate.groups.tolist() == [0, 1, 2, 3, 3, 3]
    assert [step for step, _ in estimate.charges] == [
        "boundary_3",
        "boundary_2 (forfeited)",
        "boundary_1 (forfeited)",
        "counts",
    ]
    assert estimate.epsilon == 6


@pytest.mark.parametrize(("cells", "buckets"), [(1, 1), (1, 16), (2, 1), (2, 2), (3, 16), (40, 1), (40, 40)])
def test_all_of_epsilon_goes_to_the_sums_where_there_is_nothing_to_choose(cells, buckets):
    estimate = released(np.arange(cells), buckets)
    assert estimate.charges == (("counts", Fraction(50)),)
    assert estimate.groups.max() + 1 == min(cells, buckets)


@pytest.mark.parametrize(("cells", "buckets"), [(2, 1), (3, 2), (17, 16), (40, 16), (300, 64)])
def test_there_are_as_many_buckets_as_declared(cells, buckets):
    groups = released(np.random.default_rng(cells).integers(0, 9, cells), buckets, Fraction(1, 10)).groups
    assert groups[0] == 0 and groups[-1] == buckets - 1
    assert set(np.diff(groups)) <= {0, 1}


def test_refuses_more_cells_or_axes_than_it_serves_and_shares_outside_the_range():
    StructureFirst().check(Domain.from_shape((16_384,)), 1, Fraction(1))
    with pytest.raises(DomainRefused, match=r"up to 16,384 cells, not 16,385"):
        StructureFirst().check(Domain.from_shape((16_385,)), 1, Fraction(1))
    with pytest.raises(DomainRefused, match="one axis, not 2"):
        StructureFirst().check(Domain.from_shape((4, 4)), 1, Fraction(1))
    StructureFirst().check(Domain.from_shape((40,)), 1, Fraction(3, 100_000))
    with pytest.raises(BudgetMisuse, match="boundary_15"):
        StructureFirst().check(Domain.from_shape((40,)), 1, Fraction(29, 1_000_000))
    with pytest.raises(BudgetMisuse, match="scale"):
        StructureFirst().check(Domain.from_shape((40,)), 1000, Fraction(1, 1000))
    with pytest.raises(BadSetting, match="buckets"):
        build("structure_first", {"buckets": 0})


def test_squared_errors_are_chosen_by_at_the_price_of_their_ceiling():
    exact = np.repeat([10, 200, 10, 90], [5, 10, 30, 14])
    estimate = released(exact, 4, score="squared", count_ceiling=200)
    # A boundary elsewhere costs at least 80² · 14/15 more, at a scale of noise of 2 · 399 / (25 / 3), 96.
    assert np.array_equal(estimate.groups, np.repeat([0, 1, 2, 3], [5, 10, 30, 14]))
    journal = Recorded()
    released(exact, 4, journal=journal, score="squared", count_ceiling=200)
    assert {scale for step, scale in journal.scales if step != "counts"} == {2 * 399 / Fraction(25, 3)}


def test_counts_beyond_the_ceiling_look_alike_and_are_published_whole():
    exact = np.repeat([0, 5_000, 1_000_000], 6)
    estimate = released(exact, 2, score="squared", count_ceiling=1000)
    assert estimate.groups.tolist() == [0] * 6 + [1] * 12
    assert np.abs(estimate.values[6:] - 502_500).max() < 4


def test_a_ceiling_belongs_to_squared_errors_and_is_said_before_any_data():
    with pytest.raises(BadSetting, match=r"'count_ceiling'.*needs one"):
        build("structure_first", {"score": "squared"})
    with pytest.raises(BadSetting, match=r"'count_ceiling'.*leave it out"):
        build("structure_first", {"count_ceiling": 9})
    for ceiling in (0, 1_000_001, -5, 2.5):
        with pytest.raises(BadSetting, match="count_ceiling"):
            build("structure_first", {"score": "squared", "count_ceiling": ceiling})
    squared = build("structure_first", {"score": "squared", "count_ceiling": 1_000_000})
    squared.check(Domain.from_shape((40,)), 1, Fraction(12))
    StructureFirst().check(Domain.from_shape((40,)), 166_666, Fraction(1))
    with pytest.raises(BudgetMisuse, match=r"boundary_15.*10\^7"):
        StructureFirst().check(Domain.from_shape((40,)), 166_667, Fraction(1))
    # A boundary has epsilon 1 / 30, so noise of scale 2 · 1,999,999 · 30, and the most is 10^7.
    with pytest.raises(BudgetMisuse, match=r"boundary_15.*10\^7"):
        squared.check(Domain.from_shape((40,)), 1, Fraction(1))


@pytest.mark.parametrize("cells", [1, 2, 3, 40])
@pytest.mark.parametrize("kind", [np.zeros, lambda cells: np.eye(1, cells)[0] * 10**12, np.arange])
def test_squared_errors_serve_every_line(cells, kind):
    estimate = released(kind(cells), 16, Fraction(1), score="squared", count_ceiling=7)
    assert estimate.epsilon == 1 and np.isfinite(estimate.values).all()

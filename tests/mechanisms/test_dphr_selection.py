"""DPHR with `order: exponential`: what each selection asks, what it costs, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, build
from dphist_pipeline.solvers.groups.line_groups import cheapest_line_groups

LINE = np.array([2, 4, 2, 5, 8, 2, 3])


class Scripted:
    """A journal that answers the choices from a list, draws the rest, and keeps all scales."""

    def __init__(self, *choices):
        self.choices, self.scales = list(choices), {}

    def answer(self, step, question, draw):
        self.scales[step] = Fraction(question["scale"])
        return np.array([self.choices.pop(0)]) if question["door"] == "choose" else draw()


def released(exact, epsilon=50, journal=None, sensitivity=1, **settings):
    exact = np.ascontiguousarray(exact, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact.ravel(), journal)
    return build("dphr", {"order": "exponential", **settings}).release(counts, Budget(Fraction(epsilon)))


def test_selections_take_from_the_cells_that_are_left_and_the_last_needs_none():
    # From cell 0: of 1 … 6 the second, 2; of 1, 3, 4, 5, 6 the fourth, 5; then 6, 1, 3, and 4 is left.
    estimate = released(LINE, journal=Scripted(1, 3, 3, 0, 0))
    order = [0, 2, 5, 6, 1, 3, 4]
    assert np.ptp(np.diff(estimate.groups[order])) <= 1 and set(np.diff(estimate.groups[order])) <= {0, 1}
    sums = estimate.sums
    assert np.array_equal(estimate.values, (sums.values / sums.sizes)[estimate.groups])
    price = 2 * float(sums.scale) ** 2
    expected = cheapest_line_groups(estimate.unbiased.values[order], price, estimate.unbiased.variance)
    assert np.array_equal(estimate.groups[order], expected)


def test_a_selection_scores_cells_by_nearness_to_the_last_in_count_and_place():
    asked = []

    class Watched(PrivateCounts):
        def choose(self, groups, score, budget):
            asked.extend((group.tolist(), score.scores(LINE[group]).tolist()) for group in groups)
            return super().choose(groups, score, budget)

    private_counts = Watched(Domain.from_shape((7,)), 1, lambda: LINE.astype(np.int64), Scripted(1, 3, 3, 0, 0))
    build("dphr", {"order": "exponential"}).release(private_counts, Budget(Fraction(1)))
    assert asked[0] == ([0, 1, 2, 3, 4, 5, 6], [-2 - 1, -0 - 2, -3 - 3, -6 - 4, -0 - 5, -1 - 6])
    assert asked[1] == ([2, 1, 3, 4, 5, 6], [-2 - 1, -3 - 1, -6 - 2, -0 - 3, -1 - 4])
    assert [group for group, _ in asked[2:]] == [[5, 1, 3, 4, 6], [6, 1, 3, 4], [1, 3, 4]]


def test_cells_that_are_alike_are_selected_one_after_another():
    exact = np.tile([0, 1_000_000, 0, 0, 2_000_000], 8)
    estimate = released(exact, order_share="1/2")
    # A cell of another kind is a million away, at a scale of noise of 2 · 38 / 25.
    for kind in (0, 1_000_000, 2_000_000):
        assert np.abs(estimate.values[exact == kind] - kind).max() < 100
    # In the order of cells, or in one by chance, hardly two neighbours in a row are alike: some twenty groups or more.
    assert estimate.groups.max() + 1 <= 12
    assert all(np.ptp(exact[estimate.groups == group]) == 0 for group in range(estimate.groups.max() + 1))


def test_every_share_and_every_noise_is_as_declared():
    journal = Scripted(0, 0, 0, 0, 0)
    estimate = released(LINE, 4, journal, sensitivity=3, order_share="1/2", grouping_share="1/8")
    assert estimate.charges == (
        *((f"order_{number}", Fraction(2, 5)) for number in range(1, 6)),
        ("grouping", Fraction(1, 2)),
        ("counts", Fraction(3, 2)),
    )
    assert journal.scales == {
        **{f"order_{number}": 2 * 3 / Fraction(2, 5) for number in range(1, 6)},
        "grouping": 6,
        "counts": 2,
    }


def test_groups_have_half_of_what_the_order_leaves_unless_declared():
    charges = dict(released(LINE, 4, Scripted(0, 0, 0, 0, 0)).charges)
    assert charges["grouping"] == charges["counts"] == Fraction(3, 10)


@pytest.mark.parametrize("cells", [1, 2])
def test_two_cells_leave_no_order_to_pay_for(cells):
    estimate = released(np.arange(cells), 4, order_share="1/2", grouping_share="1/8")
    assert estimate.charges == (("grouping", Fraction(1)), ("counts", Fraction(3)))


@pytest.mark.parametrize("shape", [(3,), (40,), (6, 7), (2, 3, 4)])
@pytest.mark.parametrize("kind", [np.zeros, lambda cells: np.eye(1, cells)[0] * 10**12, np.arange])
def test_serves_every_shape(shape, kind):
    estimate = released(kind(int(np.prod(shape))).reshape(shape), Fraction(7, 10))
    assert estimate.values.shape == estimate.groups.shape == shape
    assert np.isfinite(estimate.values).all() and estimate.epsilon == Fraction(7, 10)


@pytest.mark.slow
def test_a_selection_share_that_the_sampler_cannot_serve_is_refused_early():
    selecting = build("dphr", {"order": "exponential", "order_share": "1/2"})
    selecting.check(Domain.from_shape((5000,)), 1, Fraction(1))
    with pytest.raises(DomainRefused, match=r"up to 5,000 cells, not 5,001"):
        selecting.check(Domain.from_shape((5001,)), 1, Fraction(1))
    build("dphr", {}).check(Domain.from_shape((5001,)), 1, Fraction(1))
    # 1,000 selections share a half: noise of scale 2 · 1000 · Δ / (1/2 · 1/2).
    line = Domain.from_shape((1002,))
    selecting.check(line, 1250, Fraction(1, 2))
    with pytest.raises(BudgetMisuse, match=r"order_1.*10\^7"):
        selecting.check(line, 1251, Fraction(1, 2))
    with pytest.raises(BudgetMisuse, match="order_1"):
        selecting.check(line, 1, Fraction(1, 1000))
    with pytest.raises(BudgetMisuse, match="grouping"):
        build("dphr", {"order": "exponential", "grouping_share": "1/100000"}).check(line, 1, Fraction(1, 20))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"grouping_share": "1/4"}, "leave it out"),
        ({"order": "exponential", "grouping_share": "3/20"}, "must leave something"),
        ({"order": "exponential", "grouping_share": 0}, "grouping_share"),
    ],
    ids=str,
)
def test_a_grouping_share_belongs_to_selection_and_leaves_something_for_the_sums(settings, problem):
    with pytest.raises(BadSetting, match=problem):
        build("dphr", settings)

"""IHP and P-HPartition: the cuts of clear lines, what stays whole, what is forfeited, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, build

BOTH = ["ihp", "p_hpartition"]
CENTRES = ["median", "mean"]


class Scripted:
    """A journal that answers the choices from a list, and draws the rest."""

    def __init__(self, *choices):
        self.choices, self.questions = list(choices), []

    def answer(self, step, question, draw):
        self.questions.append((step, question["door"], Fraction(question["scale"])))
        return np.array(self.choices.pop(0)) if question["door"] == "choose" else draw()


class Asked:
    """Counts behind measurements that keep the scores behind every choice, and always choose the first candidate."""

    def __init__(self, exact, sensitivity):
        self.exact, self.domain, self.sensitivity, self.scores = exact, Domain.from_shape(exact.shape), sensitivity, []
        self.noisy_sums = PrivateCounts(self.domain, sensitivity, lambda: exact).noisy_sums

    def choose(self, groups, score, budget):
        budget.spend()
        self.scores += [score.scores(self.exact[group]).tolist() for group in groups]
        return np.zeros(len(groups), dtype=np.int64)


def released(name, exact, epsilon=50, journal=None, sensitivity=1, **settings):
    exact = np.asarray(exact, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact, journal)
    return build(name, settings).release(counts, Budget(Fraction(epsilon)))


@pytest.mark.parametrize("centre", CENTRES)
def test_ihp_finds_clear_steps_and_closes_what_is_flat(centre):
    exact = np.repeat([1000, 90_000, 40_000], [5, 20, 14])
    estimate = released("ihp", exact, centre=centre, depth=6)
    # A worse cut of the whole costs at least 39,000 more, at a scale of noise of 2 or 4 over 25 / 6.
    assert estimate.groups[4] < estimate.groups[5] and estimate.groups[24] < estimate.groups[25]
    assert np.abs(estimate.values - exact).max() < 8
    assert estimate.epsilon == 50 and len(estimate.charges) == 7


@pytest.mark.parametrize("centre", CENTRES)
def test_p_hpartition_cuts_every_interval_at_every_level(centre):
    exact = np.repeat([1000, 90_000, 40_000, 500], [5, 20, 14, 9])
    estimate = released("p_hpartition", exact, centre=centre, depth=2)
    assert np.array_equal(estimate.groups, np.repeat(range(4), [5, 20, 14, 9]))
    assert estimate.charges == (
        ("level_1", Fraction(25, 2)),
        ("level_2", Fraction(25, 2)),
        ("counts", Fraction(25)),
    )


def test_choices_of_ihp_count_cells_before_the_cut_and_can_keep_an_interval():
    journal = Scripted([2], [0, 3], [0, 0])
    estimate = released("ihp", np.arange(7), epsilon=2, journal=journal, depth=3)
    # 7 cells: 2 and 5; the two stay whole; 3 and 2 of the five, which then stay whole.
    assert estimate.groups.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert journal.questions == [
        *((f"level_{level}", "choose", Fraction(6)) for level in (1, 2, 3)),
        ("counts", "noisy_sums", Fraction(1)),
    ]


def test_choices_of_p_hpartition_start_after_the_first_cell_and_end_at_two():
    journal = Scripted([1], [1])
    estimate = released("p_hpartition", np.arange(6), epsilon=2, journal=journal, depth=3)
    # 6 cells: 2 and 4; one and one without asking, 2 and 2; then all are cut without asking, and the level is lost.
    assert estimate.groups.tolist() == list(range(6))
    assert [step for step, _ in estimate.charges] == ["level_1", "level_2", "level_3 (forfeited)", "counts"]
    assert estimate.epsilon == 2


def test_levels_at_which_ihp_has_kept_everything_are_forfeited():
    journal = Scripted([0])
    estimate = released("ihp", np.arange(9), epsilon=3, journal=journal, depth=3)
    assert estimate.groups.max() == 0
    assert estimate.charges == (
        ("level_1", Fraction(1, 2)),
        ("level_2 (forfeited)", Fraction(1, 2)),
        ("level_3 (forfeited)", Fraction(1, 2)),
        ("counts", Fraction(3, 2)),
    )


def test_ihp_trades_deviations_against_the_noise_of_one_more_sum():
    private_counts = Asked(np.array([1, 3, 8]), 5)
    build("ihp", {"depth": 1, "structure_share": "1/4"}).release(private_counts, Budget(Fraction(4)))
    # Deviations from medians 7, 5 and 2; a sum has noise of scale 5 / 3, rounded up to 2, and a cut needs one more.
    assert private_counts.scores == [[-7, -5 - 2, -2 - 2]]
    private_counts = Asked(np.array([1, 3, 8]), 5)
    build("p_hpartition", {"depth": 1, "structure_share": "1/4", "centre": "mean"}).release(
        private_counts, Budget(Fraction(4))
    )
    assert private_counts.scores == [[-5, -2]]


def test_ihp_keeps_a_flat_line_whole():
    estimate = released("ihp", np.full(9, 7), depth=1, structure_share="49/50")
    # A cut costs 1 more, at a scale of noise of 2 / 49.
    assert estimate.groups.max() == 0


@pytest.mark.parametrize(
    ("name", "cells", "depth"),
    [("ihp", 1, 5), ("p_hpartition", 1, 5), ("p_hpartition", 2, 1), ("p_hpartition", 3, 2), ("p_hpartition", 9, 8)],
)
def test_all_of_epsilon_goes_to_the_sums_where_there_is_nothing_to_choose(name, cells, depth):
    estimate = released(name, np.arange(cells), depth=depth)
    assert estimate.charges == (("counts", Fraction(50)),)
    assert estimate.groups.tolist() == list(range(cells))


@pytest.mark.parametrize(("name", "levels"), [("ihp", ["level_1", "level_2"]), ("p_hpartition", ["level_1"])])
def test_no_level_is_paid_for_that_three_cells_cannot_need(name, levels):
    journal = Scripted([1], [1]) if name == "ihp" else Scripted([0])
    estimate = released(name, [5, 5, 9], journal=journal, depth=5 if name == "ihp" else 1)
    assert [step for step, _ in estimate.charges] == [*levels, "counts"]


@pytest.mark.parametrize(("centre", "constant"), [("median", 1), ("mean", 2)])
@pytest.mark.parametrize("name", BOTH)
def test_noise_of_a_choice_is_twice_its_constant_times_sensitivity_over_share(name, centre, constant):
    journal = Scripted([0], [0])  # P-HPartition then has one and eight cells, IHP the nine
    settings = {"structure_share": "1/4", "depth": 2, "centre": centre}
    released(name, np.arange(9), epsilon=8, journal=journal, sensitivity=3, **settings)
    assert journal.questions[0] == ("level_1", "choose", Fraction(2 * constant * 3))
    assert journal.questions[-1] == ("counts", "noisy_sums", Fraction(3, 6))


@pytest.mark.parametrize("name", BOTH)
def test_steps_come_out_nearer_than_with_plain_noise_at_a_small_epsilon(name):
    exact = np.repeat(np.random.default_rng(7).integers(0, 60, 8), 500)

    def error(mechanism):
        runs = [dph.sanitize(exact, mechanism=mechanism, epsilon="0.1", sensitivity=1) for _ in range(3)]
        return np.mean([((run.values - exact) ** 2).mean() for run in runs])

    # Measured: at most 0.25 of it in 60 such comparisons.
    assert error(name) < 0.7 * error("geometric")


@pytest.mark.parametrize("name", BOTH)
def test_refuses_cubes_and_shares_outside_the_range_before_any_data(name):
    with pytest.raises(DomainRefused, match=f"'{name}' serves one axis, not 2"):
        build(name, {}).check(Domain.from_shape((4, 4)), 1, Fraction(1))
    line = Domain.from_shape((4096,))
    build(name, {"depth": 5}).check(line, 1, Fraction(2, 10**5))
    # A level has a tenth of 1/50,000: noise of scale 2 · 2 · 500,000 from means, with 6 to a unit 1.2 · 10^7.
    with pytest.raises(BudgetMisuse, match=r"level_1.*10\^7"):
        build(name, {"depth": 5, "centre": "mean"}).check(line, 6, Fraction(2, 10**5))
    with pytest.raises(BudgetMisuse, match="level_1"):
        build(name, {"depth": 5}).check(line, 1, Fraction(9, 10**6))
    with pytest.raises(BudgetMisuse, match="counts"):
        build(name, {"structure_share": "999999/1000000"}).check(line, 1, Fraction(1, 10))


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "settings",
    [{"depth": 0}, {"depth": 17}, {"structure_share": 1}, {"structure_share": 0}, {"centre": "mode"}],
    ids=str,
)
def test_settings_outside_what_is_offered_are_refused(name, settings):
    with pytest.raises(BadSetting):
        build(name, settings)

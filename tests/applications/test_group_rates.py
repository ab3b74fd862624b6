"""Rates within groups of synthetic records beside the published interval of each, by tables whose noise is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.applications._group_rates import GroupRates
from dphist_pipeline.applications.synthetic_report import KNOWN_TO, FamilyReport, RatesOf, _rates_of_table
from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise

RELEASES = 4_000
SCALE = Fraction(4)


def grid(*sizes: int) -> Domain:
    return Domain(
        tuple(
            CategoricalAxis(f"axis{axis}", f"axis{axis}", tuple(f"v{place}" for place in range(size)))
            for axis, size in enumerate(sizes)
        )
    )


def measured(values: np.ndarray) -> NestedCells:
    """Cells that were measured each by one draw."""
    independent = NestedCells(values, SCALE, ())
    return NestedCells(values, SCALE, (SharedNoise(independent.law.variance, (1,) * values.ndim),))


@pytest.mark.parametrize("widths", [(1, 1), (1, 2), (1, 5), (3, 5)])
def test_variances_are_those_of_the_covariance_matrix(widths: tuple[int, int]) -> None:
    """An interval holds a rate where the distance is within the reach, by the matrix of all pairs of cells."""
    draws = np.random.default_rng(3)
    values = draws.integers(0, 60, (3, 5)).astype(np.float64)
    law = NestedCells(values, SCALE, ()).law
    shared = (SharedNoise(law.variance, (1, 1)), SharedNoise(law.variance / 3, widths))
    rates = GroupRates.of(values, NestedCells(values, SCALE, shared), 1)
    places = np.arange(5)
    own = sum(
        part.coefficient * np.equal.outer(places // part.widths[1], places // part.widths[1]).astype(float)
        for part in shared
    )
    for row, column in np.ndindex(3, 5):
        part = np.eye(5)[column]
        of_part, of_both, of_group = part @ own @ part, part @ own @ np.ones(5), np.ones(5) @ own @ np.ones(5)
        least = of_part - of_both**2 / of_group
        factor = law.half_width_of_linear(least) / np.sqrt(least)
        for rate in np.linspace(0, 1, 201):
            weights = part - rate
            inside = abs(weights @ values[row]) <= factor * np.sqrt(weights @ own @ weights)
            assert inside == (rates.lower[row, column] <= rate <= rates.upper[row, column]), (row, column, rate)


@pytest.mark.slow
def test_intervals_hold_the_true_rate_as_often_as_they_say() -> None:
    """Groups of 4,000 and of 40 records, 4,000 fixed draws: with noise of three tenths more, they miss too often."""
    draws = np.random.default_rng(8)
    true = np.array([[3600.0, 400.0], [30.0, 10.0]])

    def missed(scale: float) -> np.ndarray:
        q, beyond = 1 - np.exp(-1 / scale), np.zeros(2)
        for _ in range(RELEASES):
            noise = draws.geometric(q, true.shape) - draws.geometric(q, true.shape)
            rates = GroupRates.of(true, measured(true + noise), 1)
            beyond += ((rates.rates < rates.lower - 1e-12) | (rates.rates > rates.upper + 1e-12))[:, 0]
        return beyond / RELEASES

    reach = 4 * (0.05 * 0.95 / RELEASES) ** 0.5
    as_published, wider = missed(4.0), missed(5.2)
    assert (as_published < 0.05 + reach).all(), as_published
    assert (wider > 0.05 + reach).all(), wider


def test_a_rate_outside_its_interval_is_named_where_no_cell_is() -> None:
    """Six parts of a group have eleven records more, and the seventh eleven fewer: within each cell's interval."""
    published = np.array([[40.0] * 6 + [240.0]])
    drawn = published + np.array([[11.0] * 6 + [-11.0]])
    domain, unbiased = grid(1, 7), measured(published)
    assert unbiased.half_width_of_cell() > 11
    (told,) = _rates_of_table("pairs", domain, unbiased, drawn, sampled=False)
    assert told.rates_of == "axis1" and told.outside > 0
    assert told.marked[0].startswith("axis0 v0, axis1 v6: 42.8 % of 535, published 4")


@pytest.mark.parametrize(("drawn", "outside"), [([[2.0, 0.0]], 0), ([[20.0, 0.0]], 2), ([[13.0, 7.0]], 0)])
def test_a_file_of_few_rows_is_not_blamed_for_what_drawing_them_explains(
    drawn: list[list[float]], outside: int
) -> None:
    """Half of the records have each category. Chance often draws two rows alike, and never twenty."""
    (told,) = _rates_of_table("pairs", grid(1, 2), measured(np.full((1, 2), 20000.0)), np.array(drawn), sampled=True)
    assert told.outside == outside


def test_groups_of_few_records_are_named_the_least_known_first() -> None:
    published = np.array([[500.0, 500.0], [20.0, 20.0], [2.0, 3.0]])
    (by_group, _) = list(_rates_of_table("pairs", grid(3, 2), measured(published), published, sampled=False))[::-1]
    assert (by_group.rates_of, by_group.groups, by_group.unknown, by_group.outside) == ("axis1", 3, 2, 0)
    assert [text.split(":")[0] for text in by_group.unknown_groups] == ["axis0 v2", "axis0 v1"]
    assert by_group.unknown_groups[0] == "axis0 v2: ± 50 points"


def test_a_table_of_one_axis_and_an_axis_of_one_category_have_no_rates() -> None:
    assert list(_rates_of_table("line", grid(3), measured(np.ones(3)), np.ones(3), sampled=False)) == []
    even = np.full((1, 2), 90.0)
    (told,) = _rates_of_table("pairs", grid(1, 2), measured(even), even, sampled=False)
    assert told.rates_of == "axis1" and told.groups == 1


def test_a_terminal_names_three_of_each_and_counts_the_rest() -> None:
    texts = tuple(f"group {number}" for number in range(5))
    titles = {
        title: rows for title, _, rows in FamilyReport((), (RatesOf("pairs", "sex", 9, 5, texts, 5, texts),)).tables()
    }
    (_, summary, unknown, marked) = titles.values()
    assert summary == [("pairs", "sex", "9", "5", "5")]
    assert (
        unknown
        == marked
        == [("pairs", "sex", f"group {n}") for n in range(3)] + [("pairs", "sex", "and 2 more, which --json names")]
    )
    assert f"± {100 * KNOWN_TO:.0f} points" == "± 10 points"

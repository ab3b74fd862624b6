"""Methods without ε: perturbation tables, rounding, suppression and swapping do what their descriptions say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation.office_methods import (
    CellKey,
    Rounding,
    Suppression,
    cell_keys,
    filled,
    parse_office_methods,
    perturbation_table,
    perturbed,
    rounded,
    suppressed,
    swapped,
)

# most, variance, small
TABLES = [(1, 0.5, 0), (2, 1, 0), (5, 3, 0), (5, 3, 2), (4, 2, 1), (10, 20, 4), (3, 9, 0)]


@pytest.mark.parametrize(("most", "variance", "small"), TABLES, ids=str)
def test_rows_of_a_perturbation_table_are_laws_of_mean_zero_without_small_results(
    most: int, variance: float, small: int
) -> None:
    table, noise = perturbation_table(most, variance, small), np.arange(-most, most + 1)
    results = np.arange(len(table))[:, None] + noise
    assert (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-9)
    assert np.allclose(table @ noise, 0, atol=1e-9)
    assert (table[results < 0] == 0).all() and (table[(results > 0) & (results <= small)] == 0).all()
    reached = table @ noise**2
    # A count of n cannot lose more than n, so that its variance is at most n times the largest noise.
    largest = np.minimum(np.minimum(np.arange(len(table)), most) * most, variance)
    assert reached[0] == 0 and np.allclose(reached[small + 1 :], largest[small + 1 :], atol=1e-6)
    assert np.allclose(table[-1], table[-1, ::-1], atol=1e-9)  # nothing is excluded for large counts


def test_a_law_has_the_most_entropy_of_all_with_its_mean_and_variance() -> None:
    law = perturbation_table(3, 2.0)[-1]
    noise = np.arange(-3, 4)

    def entropy(shares: np.ndarray) -> float:
        return float(-(shares * np.log(shares)).sum())

    # Whatever moves mass without moving total, mean and variance lowers the entropy.
    _, _, free = np.linalg.svd(np.stack([np.ones(7), noise, noise**2]))
    assert len(free[3:]) == 4
    for way in free[3:]:
        for step in (1e-3, -1e-3):
            assert entropy(law + step * way) < entropy(law)


def test_tables_that_can_be_worked_out_by_hand() -> None:
    assert np.allclose(perturbation_table(1, 0.5), [[0, 1, 0], [0.25, 0.5, 0.25]])
    # From 1 only 0, 2 and 3 can be reached where 1 is excluded: total, mean and variance leave one law.
    assert np.allclose(perturbation_table(2, 1.25, 1)[1], [0, 13 / 24, 0, 9 / 24, 2 / 24])
    # The variance 1 cannot be reached by jumps of -1 and 2 or more: the least is 2.
    assert np.allclose(perturbation_table(3, 1.0, 2)[1], [0, 0, 2 / 3, 0, 0, 1 / 3, 0])
    # The published example of D = 2 and V = 1.
    assert np.allclose(perturbation_table(2, 1)[2], [0.0638, 0.2447, 0.3830, 0.2447, 0.0638], atol=1e-4)


def test_equal_records_get_equal_noise_and_empty_cells_none() -> None:
    draws = np.random.default_rng(1)
    keys, table = draws.random(400), perturbation_table(5, 3.0, 2)
    areas, ages = draws.integers(0, 20, 400), draws.integers(0, 2, 400)
    by_area = perturbed(np.bincount(areas, minlength=21), cell_keys(keys, areas, 21), table)
    assert by_area[20] == 0
    # The same records in another table, among other cells.
    only = areas == 7
    again = perturbed(np.bincount(areas[only], minlength=8), cell_keys(keys[only], areas[only], 8), table)
    assert again[7] == by_area[7]
    assert (by_area != np.bincount(areas, minlength=21)).any() and not np.isin(by_area, [1, 2]).any()
    crossed = cell_keys(keys, areas * 2 + ages, 42)
    apart = perturbed(np.bincount(areas * 2 + ages, minlength=42), crossed, table)
    assert (apart.reshape(21, 2).sum(axis=1) != by_area).any()  # the price: tables do not add up


def test_keys_look_up_each_noise_as_often_as_the_table_says() -> None:
    table = perturbation_table(2, 1.0)
    keys = (np.arange(10_000) + 0.5) / 10_000
    for count in (1, 2, 9):
        made = perturbed(np.full(10_000, count), keys, table) - count
        shares = np.bincount(made + 2, minlength=5) / 10_000
        assert np.allclose(shares, table[min(count, 2)], atol=2e-4)
    assert perturbed(np.array([0, 0]), np.array([0.0, 0.999]), table).tolist() == [0, 0]
    assert perturbed(np.array([1, 1]), np.array([0.0, np.nextafter(1, 0)]), table).tolist() == [0, 3]


@pytest.mark.parametrize("base", [3, 5])
def test_rounding_is_unbiased_and_keeps_multiples(base: int) -> None:
    draws = np.random.default_rng(base)
    for count in range(2 * base + 1):
        made = rounded(np.full(20_000, count), base, draws)
        assert (made % base == 0).all() and (np.abs(made - count) < base).all()
        # Recorded draws; 5 standard errors of a mean are 0.09 at most.
        assert abs(made.mean() - count) < 0.09
    assert (rounded(np.array([0, base]), base, draws) == [0, base]).all()


def tables_with_small_counts() -> list[np.ndarray]:
    draws = np.random.default_rng(5)
    shapes = [(12,), (6, 7), (9, 2), (4, 5, 3), (2, 2)]
    return [draws.poisson(mean, shape) for shape in shapes for mean in (1.0, 4.0, 9.0) for _ in range(5)]


def test_a_margin_less_the_shown_cells_never_gives_a_hidden_cell() -> None:
    some = 0
    for exact in tables_with_small_counts():
        hidden = suppressed(exact, 5)
        primary = (exact > 0) & (exact < 5)
        assert hidden[primary].all()
        for number in range(1, exact.ndim + 1):
            for axes in combinations(range(exact.ndim), number):
                assert not (hidden.sum(axis=axes) == 1).any()
                left, every = (exact * hidden).sum(axis=axes), hidden.all(axis=axes)
                assert ((left == 0) | (left >= 5) | every).all()
        some += int(primary.sum())
    assert some > 100


def test_without_small_counts_nothing_is_hidden_and_a_lonely_one_takes_the_cheapest_along() -> None:
    assert not suppressed(np.array([[0, 5], [9, 0]]), 5).any()
    assert suppressed(np.array([20, 3, 9, 0, 8]), 5).tolist() == [False, True, False, False, True]
    assert suppressed(np.array([0, 3]), 5).tolist() == [True, True]  # nothing else is left
    assert suppressed(np.array([4]), 5).tolist() == [True]


def test_hidden_cells_are_filled_from_margins_alone() -> None:
    for exact in tables_with_small_counts():
        hidden = suppressed(exact, 5)
        values = filled(exact, hidden)
        assert (values[~hidden] == exact[~hidden]).all() and (values >= 0).all()
        last = exact.ndim - 1
        assert np.allclose(values.sum(axis=last), exact.sum(axis=last))
    # Two tables with the same shown cells and margins are read alike.
    one, other = np.array([[1, 4, 9], [4, 1, 9]]), np.array([[4, 1, 9], [1, 4, 9]])
    assert (filled(one, suppressed(one, 5)) == filled(other, suppressed(other, 5))).all()


def test_swapping_keeps_every_group_and_moves_about_its_share() -> None:
    draws = np.random.default_rng(2)
    places, groups = np.arange(4000), draws.integers(0, 8, 4000)
    after = swapped(places, groups, 0.05, draws)
    for group in range(8):
        assert sorted(after[groups == group]) == sorted(places[groups == group])
    assert 100 < (after != places).sum() < 300
    assert (swapped(places, groups, 0.0, draws) == places).all()
    moved = np.flatnonzero(after != places)
    assert (after[after[moved]] == moved).all()  # pairs


def test_methods_are_named_with_or_without_settings() -> None:
    given = parse_office_methods(
        ["cell_key,rounding:base=5, suppression", "cell_key:most=2,variance=1,small=0,rounding"]
    )
    assert given == {
        "cell_key": CellKey(),
        "rounding:base=5": Rounding(5),
        "suppression": Suppression(),
        "cell_key:most=2,variance=1,small=0": CellKey(2, 1.0, 0),
        "rounding": Rounding(),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cellkey", "no method 'cellkey'. Did you mean 'cell_key'?"),
        ("", "there is no method ''"),
        ("rounding:bas=3", "no setting 'bas'. Did you mean 'base'?"),
        ("rounding:base=x", "base must be a number"),
        ("rounding:base=1", "a base from 2"),
        ("rounding:", "no setting ''"),
        ("suppression:below=1", "from 2"),
        ("cell_key:most=2,small=2", "small < most"),
        ("cell_key:variance=nan", "a variance above 0"),
        ("cell_key:variance=inf", "a variance above 0"),
    ],
)
def test_whatever_names_no_method_is_one_message(text: str, says: str) -> None:
    with pytest.raises(Refused, check=coded("bad_office_method"), match=says.replace("?", r"\?")):
        parse_office_methods([text])

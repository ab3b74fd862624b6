"""Whole tables of a family come from one population: they agree, and are as near to the records as the estimates."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest

from dphist_pipeline.base.domain import CategoricalAxis, Domain, Figures, finest
from dphist_pipeline.estimates import whole_families
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.known_figures import figures_in
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.whole_families import Population, fit_population
from dphist_pipeline.solvers.tables.shrunk_interactions import without_interaction

SHAPE = (6, 5, 4, 3)
PAIRS = list(combinations(range(4), 2))
DOMAIN = Domain.from_shape(SHAPE)


def truth(rows: int, seed: int = 1) -> np.ndarray:
    """A grid most of whose cells are empty."""
    draws = np.random.Generator(np.random.PCG64(seed))
    shares = draws.dirichlet(np.full(prod(SHAPE), 0.05)).reshape(SHAPE)
    return draws.multinomial(rows, shares.ravel()).reshape(SHAPE)


def summed(grid: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return grid.sum(axis=tuple(axis for axis in range(grid.ndim) if axis not in axes))


def tables_of(grid: np.ndarray, scale: Fraction, seed: int = 2) -> dict[str, Estimate]:
    """All pairs of axes of a grid of noisy cells, so that they agree."""
    draws = np.random.Generator(np.random.PCG64(seed))
    noisy = grid + draws.laplace(0, float(scale), grid.shape)
    found = {}
    for pair in PAIRS:
        values = summed(noisy, pair)
        domain = Domain(tuple(DOMAIN.axes[axis] for axis in pair))
        found[f"{pair}"] = Estimate(domain, values, (), unbiased=NoisyCells(values, scale))
    return found


def wholes(population: Population, tables: dict[str, Estimate]) -> dict[str, np.ndarray]:
    return {name: population.table(made.domain) for name, made in tables.items()}


@pytest.mark.parametrize("rows", [400, 3_000, 10**7])
def test_whole_tables_of_a_family_agree_and_are_never_negative(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_families, "MOST_RECORDS", 2_000)
    tables = tables_of(truth(rows), Fraction(5))
    population = fit_population(tables)
    found = wholes(population, tables)
    for (one, first), (two, second) in combinations(zip(PAIRS, found.values(), strict=True), 2):
        for axis in set(one) & set(two):
            sums = [part.sum(axis=1 - pair.index(axis)) for pair, part in ((one, first), (two, second))]
            assert np.array_equal(*sums)
    assert population.rows.min() > 0 and min(part.min() for part in found.values()) >= 0
    assert population.rows.sum() == round(next(iter(tables.values())).values.sum())
    assert len(np.unique(population.places, axis=0)) == len(population.rows)


@pytest.mark.parametrize("rows", [3_000, 10**7])
def test_whole_tables_are_nearer_to_the_records_than_noisy_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_families, "MOST_RECORDS", 2_000)
    exact, errors = truth(rows), []
    for seed in range(5):
        tables = tables_of(exact, Fraction(20), seed)
        found = wholes(fit_population(tables), tables)
        pairs = zip(tables.values(), found.values(), PAIRS, strict=True)
        errors += [
            [((part - summed(exact, pair)) ** 2).mean() for part in (made.values, whole)] for made, whole, pair in pairs
        ]
    noisy, whole = np.mean(errors, axis=0)
    assert whole < noisy


@pytest.mark.slow
def test_where_noise_hides_pairs_whole_tables_are_nearer_than_the_product_of_margins() -> None:
    """Axes are independent, so all that pairs tell beyond single axes is noise."""
    draws = np.random.Generator(np.random.PCG64(7))
    shares = np.einsum("i,j,k,l->ijkl", *(draws.dirichlet(np.ones(size)) for size in SHAPE))
    errors = []
    for _ in range(8):
        exact = draws.multinomial(30_000, shares.ravel()).reshape(SHAPE)
        noisy = {pair: summed(exact, pair) + draws.laplace(0, 60, [SHAPE[axis] for axis in pair]) for pair in PAIRS}
        tables = {
            f"{pair}": Estimate(
                Domain(tuple(DOMAIN.axes[axis] for axis in pair)), values, (), unbiased=NoisyCells(values, Fraction(60))
            )
            for pair, values in noisy.items()
        }
        found = wholes(fit_population(tables), tables)
        for pair in PAIRS:
            lines = [np.maximum(noisy[pair].sum(axis=axis), 0) for axis in (1, 0)]
            product = np.outer(*lines) / noisy[pair].sum()
            truth = summed(exact, pair)
            errors.append([((one - truth) ** 2).mean() for one in (found[f"{pair}"], product)])
    whole, product = np.mean(errors, axis=0)
    assert whole < 0.8 * product


def test_tables_of_three_axes_that_pairs_do_not_tell_have_no_interaction_of_chance() -> None:
    """No axes interact by three, and records show no more of that than whole rows need."""
    draws = np.random.Generator(np.random.PCG64(11))
    model = np.exp(
        sum(draws.normal(0, 0.6, [SHAPE[axis] if axis in pair else 1 for axis in range(4)]) for pair in PAIRS)
    )
    exact = draws.multinomial(1_000, (model / model.sum()).ravel()).reshape(SHAPE)
    tables = tables_of(exact, Fraction(1))
    population = fit_population(tables)
    away, by_chance = 0.0, 0.0
    for triple in combinations(range(4), 3):
        found = population.table(Domain(tuple(DOMAIN.axes[axis] for axis in triple)))
        pairs = list(combinations(range(3), 2))
        margins = [(pair, summed(found, pair).astype(float)) for pair in pairs]
        given = without_interaction(found.shape, margins)
        away += float(((found - given) ** 2).sum())
        by_chance += float(given.sum())
    # Records that fall by chance would have a variance of their mean in each cell: 1.
    assert away < 0.4 * by_chance


def test_a_table_that_triples_do_not_tell_keeps_nothing_of_their_rounding() -> None:
    """Most cells of triples hold less than a row; held to the triples as rounded, the errors are 3.9 and 5.0."""
    shape, triples = (8, 7, 6, 5), list(combinations(range(4), 3))
    domain, errors = Domain.from_shape(shape), []
    for seed in range(8):
        draws = np.random.Generator(np.random.PCG64(seed))
        model = np.exp(
            sum(draws.normal(0, 0.6, [shape[axis] if axis in pair else 1 for axis in range(4)]) for pair in PAIRS)
        )
        model /= model.sum()
        exact = draws.multinomial(1_000, model.ravel()).reshape(shape)
        noisy = exact + draws.laplace(0, 2, shape)
        tables = {}
        for triple in triples:
            by, values = Domain(tuple(domain.axes[axis] for axis in triple)), summed(noisy, triple)
            tables[f"{triple}"] = Estimate(by, values, (), unbiased=NoisyCells(values, Fraction(2)))
        found = fit_population(tables).table(domain)
        away = [((summed(found, triple) - summed(exact, triple)) ** 2).sum() for triple in triples]
        errors.append([((found - 1_000 * model) ** 2).sum() / 1_000, np.mean(away) / 1_000])
    untold, told = np.mean(errors, axis=0)
    assert untold < 3.6
    assert told < 4.8


def test_without_noise_a_family_is_met_to_less_than_a_row() -> None:
    exact = truth(3_000)
    tables = tables_of(exact, Fraction(1, 50))
    misfit = [wholes(fit_population(tables), tables)[name] - made.values for name, made in tables.items()]
    assert np.sqrt(np.mean(np.concatenate([part.ravel() for part in misfit]) ** 2)) < 1


def test_a_fit_is_the_same_every_time_and_takes_numbers_of_any_sign() -> None:
    tables = tables_of(truth(500), Fraction(9))
    one, two = fit_population(tables), fit_population(tables)
    assert np.array_equal(one.places, two.places) and np.array_equal(one.rows, two.rows)
    below = {name: Estimate(made.domain, made.values - 1e4, ()) for name, made in tables.items()}
    assert fit_population(below).rows.size == 0
    assert wholes(fit_population(below), below)["(0, 1)"].sum() == 0


COUNTIES = ("a", "b", "c", "d", "e")
STATES = ("north", "north", "south", "south", "south")
COUNTY = CategoricalAxis("county", "county", COUNTIES, True, {"state": STATES})
STATE = CategoricalAxis("state", "county", ("north", "south"), True)
SEX = CategoricalAxis("sex", "sex", ("f", "m"))


def levels(rows: int = 400) -> dict[str, Estimate]:
    """County × sex and state × sex, with noise of their own."""
    draws = np.random.Generator(np.random.PCG64(3))
    cells = draws.multinomial(rows, draws.dirichlet(np.ones(12))).reshape(6, 2) + draws.normal(0, 3, (6, 2))
    groups = np.array([0, 0, 1, 1, 1, 2])
    states = np.stack([cells[groups == group].sum(axis=0) for group in range(3)])
    made = {"county_sex": (COUNTY, cells), "state_sex": (STATE, states)}
    return {name: Estimate(Domain((axis, SEX)), values, ()) for name, (axis, values) in made.items()}


def test_whole_tables_agree_across_levels_of_an_axis() -> None:
    tables = levels()
    assert [axis.name for axis in finest(made.domain for made in tables.values()).axes] == ["county", "sex"]
    found = wholes(fit_population(tables), tables)
    assert np.array_equal(found["state_sex"][0], found["county_sex"][:2].sum(axis=0))
    assert np.array_equal(found["state_sex"][1], found["county_sex"][2:5].sum(axis=0))
    assert np.array_equal(found["state_sex"][2], found["county_sex"][5])


REGIONS = np.arange(512) // 64, np.arange(512) // 8 * 8  # codes of each place's region and district
PLACES = CategoricalAxis(
    "place",
    "place",
    tuple(f"p{place}" for place in range(512)),
    levels={
        name: tuple(f"{name}{code}" for code in codes)
        for name, codes in zip(("region", "district"), REGIONS, strict=True)
    },
)

PLACES_ONLY = Domain((PLACES,))


def of_places(exact: np.ndarray, seed: int) -> dict[str, Estimate]:
    """Places, districts and regions, each with noise of its own, fitted so that they agree."""
    draws, deviation = np.random.Generator(np.random.PCG64(seed)), 20.0
    districts, regions = exact.reshape(64, 8).sum(axis=1), exact.reshape(8, 64).sum(axis=1)
    places, by_district, by_region = (
        part + draws.laplace(0, deviation, part.size) for part in (exact, districts, regions)
    )
    # Least squares along the tree: sums and their parts by their precisions, then equal shares downwards.
    district = by_district + (places.reshape(64, 8).sum(axis=1) - by_district) / 9
    region = by_region + (district.reshape(8, 8).sum(axis=1) - by_region) / (1 + 64 / 9)
    district = (district.reshape(8, 8) + (region - district.reshape(8, 8).sum(axis=1))[:, None] / 8).ravel()
    places = (places.reshape(64, 8) + (district - places.reshape(64, 8).sum(axis=1))[:, None] / 8).ravel()
    found = {}
    for name, values in {"place": places, "district": district, "region": region}.items():
        codes = dict(zip(("region", "district"), REGIONS, strict=True)).get(name)
        first = None if codes is None else tuple(dict.fromkeys(f"{name}{code}" for code in codes))
        axis = PLACES if first is None else CategoricalAxis(name, "place", first)
        found[name] = Estimate(Domain((axis,)), values, (), unbiased=NoisyCells(values, Fraction(20)))
    return found


@pytest.mark.slow
def test_whole_counts_of_regions_are_as_near_as_estimates_and_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the regions are dense, the other half holds little: the noise of its places went into its sums once."""
    monkeypatch.setattr(whole_families, "MOST_RECORDS", 8_000)
    exact = np.zeros(512, dtype=np.int64)
    exact[:256], exact[256::16] = 300, 40
    errors = []
    for seed in range(20):
        tables = of_places(exact, seed)
        found = wholes(fit_population(tables), tables)["region"]
        truth = exact.reshape(8, 64).sum(axis=1)
        errors.append((tables["region"].values - truth, found - truth))
    estimate, whole = np.array(errors).transpose(1, 0, 2)
    assert (whole**2).mean() < 1.1 * (estimate**2).mean()
    # 80 dense regions, each with a deviation below 28 records.
    assert abs((whole - estimate)[:, :4].mean()) < 3


def test_no_whole_tables_of_levels_are_much_nearer_to_what_a_fit_wants() -> None:
    """Convex costs of nested sums: where no move of one record helps, no whole table is nearer (Murota)."""
    exact = np.random.Generator(np.random.PCG64(11)).integers(20, 200, 512)
    tables = of_places(exact, 5)
    wanted = whole_families._target_sums(tables, PLACES_ONLY)
    groups = [one.steps[0][1] for one in wanted]
    counts = fit_population(tables).table(PLACES_ONLY)

    def misfits() -> list[np.ndarray]:
        return [np.bincount(of, counts, one.values.size) - one.values for of, one in zip(groups, wanted, strict=True)]

    def cost() -> float:
        return sum(one.importance * float((away**2).sum()) for one, away in zip(wanted, misfits(), strict=True))

    fitted = cost()
    while True:
        gains = np.zeros((512, 512))  # of moving one record from one place to another
        for of, one, away in zip(groups, wanted, misfits(), strict=True):
            here = away[of]
            gains += one.importance * np.where(of[:, None] == of, 0.0, 2 * (here[:, None] - here - 1))
        gains[counts == 0] = -1.0
        old, new = np.unravel_index(gains.argmax(), gains.shape)
        if gains[old, new] <= 1e-6:
            break
        counts[[old, new]] += [-1, 1]
    assert fitted <= 1.002 * cost()


@pytest.mark.parametrize("figures", [{"north": 7, "south": 5_000, "other": 0}, {"north": 0, "south": 0, "other": 0}])
def test_public_figures_hold_exactly_whatever_the_tables_say(
    figures: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_families, "MOST_RECORDS", 100)
    tables = levels()
    given = figures_in({"level": "state", "figures": figures})
    found = wholes(fit_population(tables, given), tables)
    assert found["state_sex"].sum(axis=1).tolist() == list(figures.values())
    assert found["county_sex"].sum(axis=1)[:2].sum() == figures["north"]


@pytest.mark.parametrize("levels_of_figures", [("state", "sex"), ("sex", "state")])
def test_figures_over_two_axes_hold_exactly_whatever_the_tables_say(
    levels_of_figures: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where records stand for many rows, and rows of theirs are fitted."""
    monkeypatch.setattr(whole_families, "MOST_RECORDS", 100)
    rows = np.array([[7, 0], [2_000, 5_000], [0, 3]])
    tables, by_state = levels(), levels_of_figures[0] == "state"
    values = (("north", "south", "other"), ("f", "m"))
    given = Figures(levels_of_figures, values if by_state else values[::-1], rows if by_state else rows.T)
    population = fit_population(tables, given)
    found = wholes(population, tables)
    assert found["state_sex"].tolist() == rows.tolist()
    assert found["county_sex"][2:5].sum(axis=0).tolist() == rows[1].tolist()
    assert np.count_nonzero(found["county_sex"][2:5]) > 3, "a state's rows are shared among its counties"

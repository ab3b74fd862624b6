"""Tables that agree: measures the marginals that serve the wanted tables best, and fits all tables to them.

Paper:    least squares over noisy marginals as in Xiao, He, Zhang, Kifer (ResidualPlanner, NeurIPS 2023), here with
          Laplace noise under pure epsilon; larger marginals that cover several tables as in Qardaji, Yang, Li (PriView,
          SIGMOD 2014). What is measured, and with which shares, is chosen from the declared axes and weights alone.
Privacy:  epsilon in shares that sum to 1, one for each measured marginal, each on `noisy_cells` of that marginal (on
          `noisy_sums` of a grid): a kept row lies in one cell of every marginal, so each moves by at most the
          sensitivity, and the shares add up.
Domain:   tables of any axes (`tables:` in the spec), whose whole grid is never built; axes may be used at several
          nested levels. Or one grid, whose cells, pairs of axes and single axes then count alike.
Cost:     the choice takes a second for all pairs of 50 axes, four for all triples of 30; estimates take
          O(cells · 2^axes) a table.
Bars:     on all cells and sums of cells: variances are exact, and equal for all cells of a table; intervals are 95 % by
          a calibrated factor. In a table at one of several levels, nodes differ, and the variance is a proved bound;
          so it is in all tables where several axes are used at several levels.
          Tables agree on every sum that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain, Family, Levels
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import LARGEST_SCALE, SMALLEST_EPSILON, Budget
from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate
from dphist_pipeline.estimates.laws import Scales, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, NoisySums, SharedNoise
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, name_of
from dphist_pipeline.solvers.tables import crossed_levels, level_shares
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw, estimate_tables_at_levels
from dphist_pipeline.solvers.tables.marginal_estimates import MarginalLaw, estimate_tables
from dphist_pipeline.solvers.tables.marginal_shares import Shares, choose_shares
from dphist_pipeline.solvers.tables.wanted_tables import Axes, wanted_tables


@dataclass(frozen=True)
class Tables(Mechanism):
    """Settings: none; which tables, and how much each counts, is said by `tables:` in the spec."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares that are too small for noise."""
        self.check_family(_family_of_grid(domain), sensitivity, epsilon)

    def check_family(self, family: Family, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares that are too small for noise."""
        shares = shares_for(family)
        if len(family.trees) > 1:
            law = crossed_levels.CrossedLaw(family.domain.shape, dict.fromkeys(shares.marginals, 1.0), family.trees)
            if (cells := law.largest_grid([frozenset(table) for table in family.tables])) > family.most_cells:
                problem = f"is fitted on a grid of {cells:,} cells where levels of several axes meet, more than the"
                raise DomainRefused(name_of(self), f"{problem} {family.most_cells:,} of `max_cells`; raise that")
        smallest = min(shares.parts) * epsilon
        if smallest < SMALLEST_EPSILON or sensitivity / smallest > LARGEST_SCALE:
            problem = f"would give a table only epsilon {float(smallest):.1e}; raise epsilon or ask for fewer tables"
            raise DomainRefused(name_of(self), problem)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy marginals of a grid, and the cells that fit them best."""
        family = _family_of_grid(counts.domain)
        measurements = (
            partial(counts.noisy_sums, _groups(counts.domain, axes)) for axes in shares_for(family).marginals
        )
        return _fit_tables(family, measurements, budget).tables[_ALL]

    def release_family(self, family: Family, counts: Sequence[PrivateCounts], budget: Budget) -> FamilyEstimate:
        """Noisy cells of the measured marginals, and the tables that fit them best.

        Args:
            counts: of each marginal that `shares_for` names, in its order.
        """
        return _fit_tables(family, (exact.noisy_cells for exact in counts), budget)


_ALL = "cells"


def shares_for(family: Family) -> Shares:
    """The marginals to measure for a family, and their shares: from its declared sizes and weights alone."""
    tables = tuple(map(frozenset, family.tables))
    return _shares(family.domain.shape, tables, family.weights, family.most_cells, family.trees)


@lru_cache(maxsize=16)
def _shares(
    shape: tuple[int, ...], tables: tuple[Axes, ...], weights: tuple[float, ...], most: int, trees: tuple[Levels, ...]
) -> Shares:
    if trees:
        return level_shares.choose_level_shares(shape, tables, weights, most, trees)
    return choose_shares(wanted_tables(shape, tables, weights, most))


Known = MarginalLaw | LevelLaw | crossed_levels.CrossedLaw


def law_of(family: Family, variances: Mapping[Axes, float]) -> Known:
    """What the estimates of a family know and do not know.

    Args:
        variances: of the noise in each cell of the measured marginals, by their sets of axes.
    """
    if not family.trees:
        return MarginalLaw(family.domain.shape, variances)
    return level_shares.law_of_levels(family.domain.shape, variances, family.trees)


def _family_of_grid(domain: Domain) -> Family:
    """The cells of a grid, its pairs of axes and its axes."""
    numbers = tuple(range(len(domain.axes)))
    few = dict.fromkeys([numbers, *combinations(numbers, 2), *combinations(numbers, 1)])
    names = (_ALL, *("_".join(map(str, axes)) for axes in list(few)[1:]))
    return Family(domain, numbers, names, tuple(few), (1.0,) * len(few), domain.cells)


def _step_name(family: Family, shares: Shares) -> dict[str, Fraction]:
    """A name for each step: the axes of what it measures."""
    axes = [axis.name for axis in family.domain.axes]
    names = ["_".join(axes[number] for number in sorted(chosen)) or "total" for chosen in shares.marginals]
    # Names of axes may be joined to the same name.
    steps = [f"{number}_{name}"[:80] for number, name in enumerate(names, 1)]
    return dict(zip(steps, shares.parts, strict=True))


def _groups(domain: Domain, axes: Axes) -> NDArray[np.int64]:
    """The number in a marginal of every cell of a grid."""
    grid = np.zeros(domain.shape, dtype=np.int64)
    for axis in sorted(axes):
        shape = [1] * len(domain.axes)
        shape[axis] = -1
        grid = grid * domain.shape[axis] + np.arange(domain.shape[axis]).reshape(shape)
    return grid


def _fit_tables(
    family: Family, measurements: Iterable[Callable[[Budget], NoisyCells | NoisySums]], budget: Budget
) -> FamilyEstimate:
    """Asks a measurement for each marginal of `shares_for`, in its order, and fits the tables to the answers."""
    shares = shares_for(family)
    spent, noisy, scales = budget.split(**_step_name(family, shares)), {}, {}
    for axes, ask, part in zip(shares.marginals, measurements, spent, strict=True):
        found = ask(part)
        noisy[axes], scales[axes] = found.values.reshape(family.grid(axes).shape), found.scale
    return _estimates(family, noisy, scales, budget.charges)


def _estimates(
    family: Family,
    noisy: Mapping[Axes, NDArray[np.float64]],
    scales: Mapping[Axes, Fraction],
    charges: tuple[tuple[str, Fraction], ...],
) -> FamilyEstimate:
    law = law_of(family, {axes: noise_law(scale).variance for axes, scale in scales.items()})
    tables = [frozenset(table) for table in family.tables]
    if isinstance(law, crossed_levels.CrossedLaw):
        fitted = crossed_levels.estimate_crossed_tables(law, noisy, tables)
    elif isinstance(law, LevelLaw):
        fitted = estimate_tables_at_levels(law, noisy, tables)
    else:
        fitted = estimate_tables(law, noisy, tables)
    found, drawn = {}, Scales.of(list(scales.values()))
    for name, table, values in zip(family.names, tables, fitted, strict=True):
        unbiased = _with_law(law, drawn, table, values)
        found[name] = Estimate(family.grid(table), values, charges, unbiased=unbiased)
    return FamilyEstimate(found, charges)


def _with_law(law: Known, drawn: Scales, table: Axes, values: NDArray[np.float64]) -> NestedCells:
    """Estimates of a table with the covariance of two cells, and a bound on the noise of a cell.

    Draws have different scales. A draw of scale b that has at most the weight w in any box is taken for one of scale
    b·w and weight 1: the largest b·w is the scale that intervals of boxes are calibrated to.
    """
    order = sorted(table)
    shared = tuple(
        SharedNoise(coefficient, tuple(1 if axis in agreed else law.sizes[axis] for axis in order))
        for agreed, coefficient in law.covariance(table).items()
    )
    largest = law.largest_weights(table)
    scale = Fraction(float((drawn.scale * largest).max())).limit_denominator(1 << 20)
    if isinstance(law, crossed_levels.CrossedLaw):
        tail = drawn.bound_of_variance(sum(law.covariance(table).values()), law.weights_in_cell(table))
    elif isinstance(law, LevelLaw):
        tail = drawn.bound_of_variance(float(law.variances_of_cells(table).max()), largest)
    else:
        tail = drawn.bound_of_weights(*law.draws_in_cell(table))
    return NestedCells(values, scale, shared, tail)

"""The black box: what samples of outputs show of epsilon never exceeds it, and comes near it where it should.

`make audit` bounds every way through every mechanism (`report.py`); here are quick runs, and tests of the bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from audited_ways import WAYS, Way
from black_box import Pool, cells_as_trials, lower_bound, ratio_bound
from grey_box import Audited
from neighbours import audited_on, bounded, pairs
from scipy import stats  # type: ignore[import-untyped]

from dphist_pipeline import mechanisms
from dphist_pipeline.confidential import noise
from examples import mostly_audited

ONE = Fraction(1)
FIRST = {way.name: way for way in reversed(WAYS)}


def geometric(grid: tuple[int, int]) -> Audited:
    return Audited(mechanisms.build("geometric", {}), grid, 1, ONE)


@pytest.mark.parametrize("cells", [10**6, pytest.param(10**7, marks=pytest.mark.audit)])
def test_the_bound_of_geometric_comes_within_a_tenth_of_its_epsilon_and_stays_below(cells: int) -> None:
    bound = cells_as_trials(geometric, cells)
    assert bound.trials >= 2 * cells
    assert bound.shown > 0.9 and bound.sure <= 1


SLOW = ("adaptive", "adaptive_boxes", "bayes", "multiscale")  # which take a minute together


@pytest.mark.parametrize(
    "way",
    mostly_audited(FIRST.values(), [place for place, name in enumerate(FIRST) if name not in SLOW]),
    ids=str,
)
def test_a_quick_bound_does_not_exceed_epsilon(way: Way) -> None:
    mechanism = way.built()
    assert mechanism is not None
    pair = next(pairs())
    assert bounded(audited_on(mechanism, pair, ONE), pair, 400).sure <= 1


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    # 30 and 10 of 100, each end wrong with probability 0.025.
    low = stats.binomtest(30, 100).proportion_ci(0.95, "exact").low
    high = stats.binomtest(10, 100).proportion_ci(0.95, "exact").high
    assert float(ratio_bound(30, 10, 100, 0.05)) == pytest.approx(np.log(low / high))
    assert float(ratio_bound(0, 10, 100, 0.05)) == -np.inf
    assert float(ratio_bound(5, 100, 100, 0.05)) < 0


def two_sided(generator: np.random.Generator, centre: int, trials: int, epsilon: float = 1.0) -> np.ndarray:
    """Discrete Laplace outputs, from NumPy: the bounds are tested here, not the noise."""
    q = np.exp(-epsilon)
    return (centre + generator.geometric(1 - q, trials) - generator.geometric(1 - q, trials)).astype(float)[:, None]


def test_the_bound_covers_and_the_search_for_events_costs_no_coverage() -> None:
    generator = np.random.default_rng(20261121)
    bounds = [lower_bound(two_sided(generator, 0, 1000), two_sided(generator, 1, 1000)) for _ in range(60)]
    above = sum(bound.shown > 1 for bound in bounds)
    assert above <= 3 and max(bound.sure for bound in bounds) <= 1
    assert min(bound.shown for bound in bounds) > 0.4


def test_a_law_that_loses_a_quarter_more_is_told_apart_for_sure() -> None:
    generator = np.random.default_rng(7)
    here, there = (two_sided(generator, centre, 60_000, 1.25) for centre in (0, 1))
    assert 1 < lower_bound(here, there).sure < lower_bound(here, there).shown < 1.25


def test_outputs_that_do_not_differ_show_nothing() -> None:
    generator = np.random.default_rng(8)
    both = [generator.integers(0, 50, (2000, 6)).astype(float) for _ in range(2)]
    assert lower_bound(*both).sure == 0 and lower_bound(*both).shown < 0.1


def test_noise_drawn_in_bulk_is_given_out_once() -> None:
    drawn: list[np.ndarray] = []

    def sampler(scale: Fraction, size: int) -> np.ndarray:
        drawn.append(noise.discrete_laplace(scale, size))
        return drawn[-1]

    pool = Pool(sampler)
    parts = [pool(Fraction(3), 30_000) for _ in range(4)]
    parts[0][:] = 0
    assert [part.tolist() for part in parts[1:]] == [
        drawn[0][30_000:60_000].tolist(),
        drawn[1][:30_000].tolist(),
        drawn[1][30_000:60_000].tolist(),
    ]
    assert pool(Fraction(4), 5).tolist() == drawn[2][:5].tolist()

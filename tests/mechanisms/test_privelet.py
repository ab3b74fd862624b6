"""Privelet: its cells, their covariance, and intervals that hold."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from recorded_words import RecordedWords

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyContrasts
from dphist_pipeline.mechanisms.privelet import Privelet
from dphist_pipeline.solvers.trees.haar import inverse_haar
from dphist_pipeline.solvers.trees.regular_tree import branching_tree, covariance, mean_variance
from examples import mostly_soaked

AS_BEFORE = "dcf3c2e26a544b1439ba3bc070488c5cda5009336b30f2341a1a765b5fe3f53e"


def released(exact, epsilon, sensitivity=1):
    counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact.astype(np.int64).ravel())
    return Privelet().release(counts, Budget(Fraction(epsilon)))


def contrasts_of(cells, scale=Fraction(1)):
    """Total and contrasts of a padded line, straight from the definition."""
    size = 1 << (cells.size - 1).bit_length()
    padded = np.append(cells, np.zeros(size - cells.size))
    levels, width = [], size
    while width > 1:
        halves = padded.reshape(-1, 2, width // 2).sum(axis=2)
        levels.append((halves[:, 0] - halves[:, 1])[: -(-cells.size // width)])
        width //= 2
    return NoisyContrasts(np.concatenate([[padded.sum()], *levels]), cells.shape, scale)


def test_the_paper_s_line_of_eight_cells():
    """The example of Xiao, Wang and Gehrke: the mean is the total over 8, a coefficient a contrast over its node."""
    cells = np.array([9, 3, 6, 2, 8, 4, 5, 7.0])
    wavelet = contrasts_of(cells)
    assert wavelet.total / 8 == 5.5
    assert [(level / width).tolist() for level, width in zip(wavelet.contrasts, (8, 4, 2), strict=True)] == [
        [-0.5],
        [1, 0],
        [3, 2, 2, -1],
    ]
    assert inverse_haar(wavelet.values, (8,)).tolist() == cells.tolist()


@pytest.mark.parametrize("shape", [(1,), (2,), (8,), (11,), (33,), (4, 4), (3, 5), (6, 1), (2, 3, 5), (2, 2, 2, 3)])
def test_the_covariance_is_that_of_the_linear_map_beside_padding_too(shape):
    law = released(np.zeros(shape, dtype=int), 1, sensitivity=2).unbiased
    assert law.scale == 2 * math.prod(1 + (size - 1).bit_length() for size in shape)
    sizes = NoisyContrasts(np.zeros(1), shape, law.scale).sizes
    columns = [inverse_haar(column.reshape(sizes), shape).ravel() for column in np.eye(math.prod(sizes))]
    linear = np.array(columns).T
    assert np.abs(linear).max() <= 1
    true = noise_law(law.scale).variance * linear @ linear.T
    numbers, source = np.arange(math.prod(shape)).reshape(shape), np.random.default_rng(sum(shape))
    for _ in range(40):
        chosen = [np.flatnonzero(source.random(size) < source.choice([0.3, 0.7, 1.1])) for size in shape]
        cells = numbers[np.ix_(*chosen)].ravel()
        if cells.size:
            assert law.variance_of_sum(chosen) == pytest.approx(true[np.ix_(cells, cells)].sum())
            assert np.abs(linear[cells].sum(axis=0)).max() <= 1 + 1e-9


def test_the_noise_of_a_cell_has_a_tail_bound_where_axes_have_two_cells():
    """With two heaviest draws the bound is Chernoff's; of 40,000 cells none may lie beyond it at 10^-10."""
    law = released(np.zeros((2, 2, 100, 100), dtype=int), "1/2").unbiased
    assert law.tail is not None and law.tail.rate < 1 / float(law.scale) / (1 / 16)
    beyond = math.log(law.tail.factor / 1e-10) / law.tail.rate
    assert np.abs(law.values).max() < beyond < 12 * math.sqrt(law.variance)
    often = math.log(law.tail.factor / 0.05) / law.tail.rate
    assert (np.abs(law.values) > often).mean() < 0.05


def test_a_line_is_released_as_before_it_served_cubes(monkeypatch):
    """Bytes of the estimate, of its covariance and tail, from recorded words."""
    monkeypatch.setattr(noise, "random_words", RecordedWords())
    kept = [released(np.arange(size) ** 2 % 97, "1/3", sensitivity=2).unbiased for size in (1, 2, 7, 64, 1000)]
    told = [(law.values.tobytes(), law.shared, law.tail, law.scale) for law in kept]
    assert hashlib.sha256(repr(told).encode()).hexdigest() == AS_BEFORE


@pytest.mark.slow
@pytest.mark.parametrize("shape", mostly_soaked([((8, 8),), ((5, 6),)], [1]))
def test_releases_of_a_square_vary_as_their_covariance_says(shape):
    """Within 30 % by 2,500 releases: 6.7 standard errors of a variance, or more."""
    exact, runs = np.arange(math.prod(shape)).reshape(shape) ** 2, 2500
    boxes = [([2], [3]), (range(shape[0]), range(shape[1])), (range(1, 4), range(2, 5))]
    laws = [released(exact, 2).unbiased for _ in range(runs)]
    chosen = [tuple(np.array(list(along)) for along in box) for box in boxes]
    off = np.array([[(law.values - exact)[np.ix_(*box)].sum() for box in chosen] for law in laws])
    stated = np.array([laws[0].variance_of_sum(box) for box in chosen])
    assert (np.abs((off**2).mean(axis=0) / stated - 1) < 0.3).all()
    assert (np.abs(off.mean(axis=0)) < 6.5 * np.sqrt(stated / runs)).all()
    held = (np.abs(off) <= [laws[0].half_width_of_box(box) for box in chosen]).mean(axis=0)
    assert (held > 0.95 - 6.5 * math.sqrt(0.95 * 0.05 / runs)).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", mostly_soaked([64, 50], [1]))
def test_releases_vary_as_their_covariance_says_and_intervals_hold(size):
    """Within 30 % by 2,500 releases: 6.7 standard errors of a variance, or more."""
    exact, runs = np.arange(size) ** 2, 2500
    boxes = [np.array([7]), np.arange(size), np.arange(size // 4, size - 9), np.arange(0, size, 2)]
    laws = (released(exact, 2).unbiased for _ in range(runs))
    off = np.array([[(law.values - exact)[box].sum() for box in boxes] for law in laws])
    law = released(exact, 2).unbiased
    stated = np.array([law.variance_of_sum([box]) for box in boxes])
    measured = (off**2).mean(axis=0)
    assert (measured < 1.3 * stated).all()
    assert (measured > 0.7 * stated).all()
    assert (np.abs(off.mean(axis=0)) < 6.5 * np.sqrt(stated / runs)).all()
    held = (np.abs(off) <= [law.half_width_of_box([box]) for box in boxes]).mean(axis=0)
    assert (held > 0.95 - 6.5 * math.sqrt(0.95 * 0.05 / runs)).all()


def test_ranges_are_a_little_less_noisy_than_in_the_binary_tree():
    size = 1024
    law = released(np.zeros(size, dtype=int), 1).unbiased
    assert isinstance(law, NestedCells)
    tree = branching_tree((size,), 2)
    assert tuple(part.widths for part in law.shared) == tree.widths
    binary = mean_variance(tree, covariance(tree, [law.variance_of_sum([np.arange(size)])] * 11))
    wavelet = mean_variance(tree, [part.coefficient for part in law.shared])
    assert 0.8 * binary < wavelet < 0.95 * binary


def test_refuses_noise_beyond_the_sampler():
    line = Domain.from_shape((1000,))
    Privelet().check(line, 100, Fraction(11, 10**5))
    with pytest.raises(BudgetMisuse, match="scale"):
        Privelet().check(line, 101, Fraction(11, 10**5))
    square = Domain.from_shape((1000, 1000))
    Privelet().check(square, 100, Fraction(121, 10**5))
    with pytest.raises(BudgetMisuse, match="scale"):
        Privelet().check(square, 101, Fraction(121, 10**5))

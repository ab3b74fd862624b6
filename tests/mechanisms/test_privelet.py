"""Privelet: its cells, their covariance, and intervals that hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.estimates.noisy import NestedCells, NoisyContrasts
from dphist_pipeline.mechanisms import DomainRefused
from dphist_pipeline.mechanisms.privelet import Privelet, cells_of
from dphist_pipeline.solvers.regular_tree import branching_tree, covariance, mean_variance


def released(exact, epsilon, sensitivity=1):
    counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact.astype(np.int64))
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
    return NoisyContrasts(float(padded.sum()), tuple(levels), scale)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13, 64, 1000, 4097])
def test_the_cells_are_those_that_have_the_contrasts(size):
    cells = np.arange(size) * 17.0 % 101 - 5
    assert cells_of(contrasts_of(cells), size) == pytest.approx(cells, abs=1e-9)


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
    assert cells_of(wavelet, 8).tolist() == cells.tolist()


@pytest.mark.parametrize("size", [1, 2, 8, 11, 33])
def test_the_covariance_is_that_of_the_linear_map_and_a_bound_where_there_is_padding(size):
    estimate = released(np.zeros(size, dtype=int), 1, sensitivity=2)
    law = estimate.unbiased
    halvings = (size - 1).bit_length()
    assert law.scale == 2 * (1 + halvings)
    counts = [1, *(-(-size >> level) for level in range(halvings, 0, -1))]
    columns = []
    for number in range(sum(counts)):
        (total,), *levels = np.split(np.eye(1, sum(counts), number)[0], np.cumsum(counts)[:-1])
        columns.append(cells_of(NoisyContrasts(total, tuple(levels), law.scale), size))
    linear = np.array(columns).T
    assert np.abs(linear).max() <= 1
    true = noise_law.variance(law.scale) * linear @ linear.T
    source = np.random.default_rng(size)
    for _ in range(40):
        chosen = np.flatnonzero(source.random(size) < source.choice([0.3, 0.7, 1.1]))
        if chosen.size:
            exact, stated = true[np.ix_(chosen, chosen)].sum(), law.variance_of_sum([chosen])
            assert exact * (1 - 1e-9) <= stated <= exact * (1 + 1e-9 if size & (size - 1) == 0 else 1.8)


@pytest.mark.parametrize("size", [64, 50])
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
    assert (measured > (0.7 if size == 64 else 0.45) * stated).all()
    assert (np.abs(off.mean(axis=0)) < 6.5 * np.sqrt(stated / runs)).all()
    held = (np.abs(off) <= [half_width_of_box(law, [box]) for box in boxes]).mean(axis=0)
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


def test_refuses_several_axes_and_noise_beyond_the_sampler():
    with pytest.raises(DomainRefused, match="one axis"):
        Privelet().check(Domain.from_shape((4, 4)), 1, Fraction(1))
    line = Domain.from_shape((1000,))
    Privelet().check(line, 100, Fraction(11, 10**5))
    with pytest.raises(BudgetMisuse, match="scale"):
        Privelet().check(line, 101, Fraction(11, 10**5))

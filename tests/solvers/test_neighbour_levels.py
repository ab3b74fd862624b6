"""Window means and segments against brute force; no cell has a say in its own level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.cells.neighbour_levels import groups_by_rank, likely_levels, segment_levels, window_means
from examples import examples


@examples(100)
@given(st.data(), st.sampled_from([(1,), (5,), (9,), (3, 4), (2, 3, 3)]), st.integers(0, 4))
def test_window_means_equal_brute_force(data, shape, radius):
    size = int(np.prod(shape))
    cells = np.array(data.draw(st.lists(st.integers(-(2**50), 2**50), min_size=size, max_size=size)))
    noisy = cells.reshape(shape)
    radii = [radius if axis != 1 else 0 for axis in range(len(shape))]
    found = window_means(noisy, radii)
    for place in itertools.product(*map(range, shape)):
        ranges = zip(place, radii, strict=True)
        window = noisy[tuple(slice(max(0, at - reach), at + reach + 1) for at, reach in ranges)]
        others = window if window.size > 1 else noisy
        total = sum(map(int, others.ravel())) - int(noisy[place])
        assert found[place] == pytest.approx(total / max(1, others.size - 1), rel=1e-12)


def test_a_cells_own_count_has_no_say_in_its_window_or_segment():
    draws = np.random.default_rng(1)
    line, folds = draws.integers(0, 9, 60).astype(float), draws.integers(0, 2, 60).astype(bool)
    changed = line.copy()
    changed[20] = 1e6
    assert window_means(line.astype(int), [3])[20] == window_means(changed.astype(int), [3])[20]
    assert window_means(line.astype(int), [3], folds)[20] == window_means(changed.astype(int), [3], folds)[20]
    assert segment_levels(line, folds, 8.0)[20] == segment_levels(changed, folds, 8.0)[20]


@pytest.mark.parametrize("radii", [[1, 0], [2, 5], [0, 9]])
def test_by_halves_a_window_holds_the_cells_of_the_other_half(radii):
    draws = np.random.default_rng(4)
    noisy, folds = draws.integers(-9, 9, (4, 6)), draws.integers(0, 2, 24).astype(bool)
    found, half = window_means(noisy, radii, folds), folds.reshape(4, 6)
    for row, column in itertools.product(range(4), range(6)):
        near = np.zeros((4, 6), dtype=bool)
        near[max(0, row - radii[0]) : row + radii[0] + 1, max(0, column - radii[1]) : column + radii[1] + 1] = True
        others = half != half[row, column]
        window = near & others if (near & others).any() else others
        assert found[row, column] == pytest.approx(noisy[window].mean())


@pytest.mark.parametrize("level", [0, 6, 900])
@pytest.mark.parametrize(("shape", "radii"), [((4000,), [12]), ((64, 64), [2, 2])])
def test_levels_of_surroundings_are_known_better_than_by_their_mean(level, shape, radii):
    scale, draws = 20.0, np.random.default_rng(5)
    noisy = np.rint(level + draws.laplace(0, scale, shape)).astype(int)
    folds = draws.integers(0, 2, noisy.size).astype(bool)
    by_mean, found = window_means(noisy, radii) - level, likely_levels(noisy, radii, folds, scale) - level
    assert abs(found.mean()) < 1.5
    assert 0.35 < found.var() / by_mean.var() < 0.75  # 24 cells, of which the best rule has 0.5


def test_levels_of_surroundings_follow_counts_far_beyond_the_noise():
    slope = 40 * np.arange(300)
    found = likely_levels(slope + np.random.default_rng(6).integers(-3, 4, 300), [8], np.arange(300) % 3 == 0, 5.0)
    assert np.abs(found - slope)[20:-20].max() < 5


@pytest.mark.parametrize("radius", [1, 8])
def test_a_cells_own_count_has_no_say_in_the_level_of_its_surroundings(radius):
    draws = np.random.default_rng(7)
    line, folds = np.rint(draws.laplace(0, 20, 60)).astype(int), draws.integers(0, 2, 60).astype(bool)
    for place in (0, 20, 21, 22):
        changed = line + 1000 * (np.arange(60) == place)
        before, after = (likely_levels(cells, [radius], folds, 20.0) for cells in (line, changed))
        assert before[place] == after[place]
        assert (before != after).any()


def test_among_equal_cells_levels_tell_nothing_about_the_noise_of_a_cell():
    # Means without the cell itself would rank the cells of a segment or a line by their own noise.
    draws = np.random.default_rng(6)
    noise, folds = draws.normal(size=2000), draws.integers(0, 2, 2000).astype(bool)
    whole = np.rint(1000 * noise).astype(int)
    for levels in (segment_levels(noise, folds, 40.0), window_means(whole, [2000], folds)):
        for fold in (False, True):
            own = noise[folds == fold]
            ranked = groups_by_rank(levels[folds == fold])
            assert max(abs(own[ranked == group].mean()) for group in range(ranked.max() + 1)) < 1


def test_segments_are_those_of_the_other_half():
    line = np.repeat([0.0, 100.0], 20)
    levels = segment_levels(line, np.arange(40) % 2 == 0, 5.0)
    # The other half cannot tell on which side of the step the cell beside it lies.
    beside = np.abs(np.arange(40) - 19.5) < 1
    assert np.abs(levels - line)[~beside].max() <= 100 / 19


@pytest.mark.parametrize("line", [[5.0], [5.0, 7.0]])
def test_segments_of_a_cell_or_two_are_finite(line):
    for folds in itertools.product((False, True), repeat=len(line)):
        assert np.isfinite(segment_levels(np.array(line), np.array(folds), 1.0)).all()


def test_groups_double_from_the_highest_levels_down():
    levels = np.random.default_rng(2).permutation(1000)
    groups = groups_by_rank(levels.astype(float))
    assert np.bincount(groups).tolist() == [32, 32, 64, 128, 256, 488]
    assert levels[groups == 0].min() > levels[groups == 1].max()

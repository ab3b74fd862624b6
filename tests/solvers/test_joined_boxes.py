"""Boxes by two rules at once, and which of them share a mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.solvers.boxes.joined_boxes import (
    Noise,
    TwofoldBoxes,
    _common_refinement,
    joined_means,
    twofold_boxes,
)
from dphist_pipeline.solvers.boxes.kd_boxes import greedy_boxes
from dphist_pipeline.solvers.boxes.pruned_boxes import pruned_boxes
from examples import examples

SHAPES = [(1,), (2,), (7,), (24,), (3, 4), (6, 8), (2, 2, 3)]


def pairs_of(one, two):
    return len(set(zip(one.ravel().tolist(), two.ravel().tolist(), strict=True)))


@examples(80)
@given(st.sampled_from(SHAPES), st.sampled_from([(2.0, 8.0), (0.3, 0.1)]), st.sampled_from([2, 5, 40]), st.data())
def test_boxes_are_what_either_rule_tells_apart_and_blocks_what_both_do(shape, variances, depth, data):
    many = math.prod(shape)
    cells = np.array(data.draw(st.lists(st.integers(0, 12), min_size=many, max_size=many)), dtype=float).reshape(shape)
    one, two = (find(cells, *variances, depth)[0] for find in (greedy_boxes, pruned_boxes))
    found = twofold_boxes(cells, *variances, depth)
    boxes, blocks = found.boxes, found.blocks[found.boxes]
    assert sorted(set(boxes.ravel().tolist())) == list(range(found.blocks.size))
    for part in (one, two):
        assert pairs_of(part, boxes) == boxes.max() + 1
    assert boxes.max() + 1 == pairs_of(one, two)
    if blocks.max() > 0:
        for block in range(blocks.max() + 1):
            assert min(len(set(part[blocks == block].tolist())) for part in (one, two)) == 1


def test_boxes_that_cross_are_one_block():
    one, two = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    boxes, blocks = _common_refinement(one, two)
    assert boxes.max() + 1 == pairs_of(one, two) and set(blocks.tolist()) == {0}


def plain_means(cells, found, sums, noise):
    """Block by block, in plain Python."""
    blocks = [[box for box in range(sums.size) if found.blocks[box] == block] for block in set(found.blocks.tolist())]
    parts = [cells[found.boxes == box] for box in range(sums.size)]
    within = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    variance = noise.cell_variance
    within -= (cells.size - sums.size) * variance + 3 * math.sqrt(cells.size * (5 * variance**2 + variance))
    joined_noise = sum(sum(parts[b].size for b in block) / sum(parts[b].size ** 2 for b in block) for block in blocks)
    means = np.empty(sums.size)
    for block in blocks:
        sizes = [parts[box].size for box in block]
        mean = sum(parts[b].size * sums[b] for b in block) / sum(size**2 for size in sizes)
        old_mean = sum(parts[b].sum() for b in block) / sum(sizes)
        cost = sum(1 / size for size in sizes)
        sure = math.log1p(6 * cost / (joined_noise + max(0.0, within) / noise.box_variance))
        farthest = 0.0
        for box in block:
            new = (sums[box] - parts[box].size * mean) / noise.box_scale
            old = (parts[box].mean() - old_mean) * math.sqrt(parts[box].size) / noise.cell_scale
            farthest = max(farthest, min(abs(new), abs(old)) if new * old > 0 else 0.0)
        together = sum((sums[b] - parts[b].size * mean) ** 2 / parts[b].size for b in block) / noise.box_variance
        luck = (noise.box_scale * sure) ** 2 / noise.box_variance / min(sizes)
        luck += math.sqrt(2 * (5 + 1 / noise.box_variance) * sure * sum(1 / size**2 for size in sizes))
        apart = len(block) == 1 or 2 * farthest > sure + math.log(cells.size) or together > 2 * cost + luck
        for box in block:
            means[box] = sums[box] / parts[box].size if apart else mean
    return means


@examples(100)
@given(st.integers(0, 2**32), st.sampled_from([(8.0, 8.0), (0.2, 0.2), (2.0, 30.0)]), st.sampled_from([0, 3, 12, 60]))
def test_means_are_those_of_the_plain_loop(seed, variances, height):
    source, noise = np.random.default_rng(seed), Noise(*variances)
    cells = np.repeat(source.integers(0, 2, 6) * height, 4) + np.rint(source.laplace(0, noise.cell_scale, 24))
    boxes = np.sort(source.integers(0, 8, 24))
    boxes = np.unique(boxes, return_inverse=True)[1]
    blocks = np.unique(np.sort(source.integers(0, 3, boxes.max() + 1)), return_inverse=True)[1]
    found = TwofoldBoxes(boxes, blocks)
    sums = np.bincount(boxes, weights=cells) + np.rint(source.laplace(0, noise.box_scale, blocks.size))
    means, apart = joined_means(cells, found, sums, noise)
    assert means == pytest.approx(plain_means(cells, found, sums, noise))
    assert np.array_equal(means[apart[blocks]], (sums / np.bincount(boxes))[apart[blocks]])


def test_without_noise_every_box_has_its_own_mean():
    found = TwofoldBoxes(np.array([0, 0, 1]), np.array([0, 0]))
    means, apart = joined_means(np.array([1.0, 3.0, 2.0]), found, np.array([4.0, 2.0]), Noise(0.0, 0.0))
    assert means.tolist() == [2.0, 2.0] and apart.all()


SETS = {
    "in turn": lambda _: np.tile([0, 1000], 32),
    "chess": lambda _: np.indices((32, 32)).sum(axis=0) % 2 * 100,
    "steps": lambda source: np.repeat(source.integers(0, 500, 16), 64),
    "empty": lambda _: np.zeros((40, 25), dtype=np.int64),
    "16 equal": lambda _: np.full(16, 100),
    "64 equal in 3-D": lambda _: np.full((4, 4, 4), 7),
    "dense": lambda source: source.integers(0, 10_000, 1024),
    "slope": lambda _: np.arange(1000),
    "slope of 30": lambda _: np.rint(np.linspace(0, 30, 64)).astype(np.int64),
    "spikes": lambda source: np.where(source.random(2048) < 0.03, 300, 0),
    "one high cell": lambda _: np.where(np.arange(256) == 100, 60, 0),
    "a bell": lambda _: np.rint(300 * np.exp(-(((np.indices((48, 40)) - 20) / 9) ** 2).sum(axis=0))).astype(int),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("name", SETS)
def test_auto_is_never_far_above_the_better_of_both(name, epsilon):
    """Mean error over 20 draws of the noise of the cells, each with 10 of the boxes; 1.35 leaves room for these."""
    source = np.random.default_rng(sum(map(ord, name)))
    counts, scale = SETS[name](source), 2 / epsilon
    variance = noise_law(scale).variance
    p = 1 - math.exp(-1 / scale)

    def noise(shape):
        return (source.geometric(p, shape) - source.geometric(p, shape)).astype(float)

    def error(boxes):
        sizes, where = np.bincount(boxes.ravel()), boxes.ravel()
        apart = counts.ravel() - (np.bincount(where, weights=counts.ravel()) / sizes)[where]
        return apart @ apart, variance * (1 / sizes).sum()

    errors = []
    for _ in range(20):
        known = (counts + noise(counts.shape), variance, variance, 40)
        found = twofold_boxes(*known)
        sums, sizes = np.bincount(found.boxes.ravel(), weights=counts.ravel()), np.bincount(found.boxes.ravel())
        drawn = []
        for _ in range(10):
            means, apart = joined_means(known[0], found, sums + noise(sums.shape), Noise(variance, variance))
            kept = apart[found.blocks]  # whose noise enters by its law, as in the other two
            drawn.append(np.where(kept, variance / sizes, sizes * (means - sums / sizes) ** 2).sum())
        others = [sum(error(boxes)) for boxes in (greedy_boxes(*known)[0], pruned_boxes(*known)[0])]
        errors.append([error(found.boxes)[0] + np.mean(drawn), *others])
    auto, greedy, pruned = np.mean(errors, axis=0)
    assert auto <= 1.35 * min(greedy, pruned)

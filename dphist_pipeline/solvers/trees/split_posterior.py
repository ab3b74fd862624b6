"""Mean counts of cells given noisy sums of a tree of boxes, where halves of a box may be even, uneven or empty.

Model. Every box is halved, axis by axis, down to its cells. How a count N is split is drawn from a mixture of laws:
even up to chance, uneven by some part, any split alike, or all on one side. The weights of the mixture depend on the
size class of N alone and are learned from the noisy sums by expectation and maximisation: nothing is assumed of where
counts lie or how smooth they are. The noise of the sums is the discrete Laplace law that was drawn, and given all of
them the mean of each cell is exact up to the grid of counts and the windows below.

Grid and windows. Counts stand in steps of a third of the least noise scale (one record where that is narrow). Of each
box, counts around its least squares estimate are looked at, as far as the noise can explain, and from 0 on where that
is near.

Cost. A box takes the product of its halves' windows, about 3,000 multiplications whatever the number of cells: about a
second for 4,096 cells, 8 to 25 for 10^6. Weights are learned on at most `LEARNED_ON` cells, whole boxes that lie evenly
over the grid.

Source: Kolaczyk. Bayesian multiscale models for Poisson processes. JASA 1999, and Crouse, Nowak, Baraniuk.
Wavelet-based statistical signal processing using hidden Markov models. 1998, for models of splits; the mixture with its
exact messages for noisy counts is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees._halved_boxes import NOTHING, Evidence, HalvedBoxes, learned_means
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, Widths, covariance
from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

Reals = NDArray[np.float64]

LEARNED_ON = 1 << 14


def split_means(tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float]) -> Reals:
    """The mean count of every cell, float64, shape of the grid, not below 0, given noisy sums of the boxes of a tree.

    Args:
        tree: its widths are powers of two.
        noisy: for each level, from the top, a noisy count of every box that holds a cell, in C order.
        scales: of each level's discrete Laplace noise, in records.
    """
    whole = _halve(tree, noisy, scales)
    if whole.cells.size == 1:
        return np.maximum(whole.cells, 0.0)
    return learned_means(whole, _pieces(tree, noisy, scales, whole)).reshape(tree.shape)


def _halve(tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float]) -> HalvedBoxes:
    """The boxes of a tree whose widths are powers of two, with noisy sums of those of its levels."""
    variances = [2.0 * scale**2 for scale in scales]
    cells, parts = consistent_cells(tree, noisy, variances), covariance(tree, variances)
    measured = {
        widths: Evidence(np.ascontiguousarray(values, dtype=np.float64).ravel(), np.full(values.size, float(scale)))
        for widths, values, scale in zip(tree.widths, noisy, scales, strict=True)
    }
    chain = halvings(tree)
    deviations = [_deviation(tree, parts, widths) for widths in chain]
    return HalvedBoxes.around(
        chain, cells, deviations, [measured.get(widths, NOTHING) for widths in chain], min(scales)
    )


def _pieces(
    tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float], whole: HalvedBoxes
) -> list[HalvedBoxes]:
    """What weights are learned on: the whole grid, or boxes of it that lie evenly over it if it is large."""
    if whole.cells.size <= LEARNED_ON:
        return [whole]
    volumes = tree.volumes
    top = next((level for level, volume in enumerate(volumes) if volume * 4 <= LEARNED_ON), len(volumes) - 1)
    boxes = int(np.prod(tree.grid(top)))
    wanted = np.unique(np.linspace(0, boxes - 1, max(1, LEARNED_ON // volumes[top])).astype(np.int64))
    pieces = []
    for box in wanted:
        at = np.unravel_index(box, tree.grid(top))
        ranges = [
            (place * width, min((place + 1) * width, size))
            for place, width, size in zip(at, tree.widths[top], tree.shape, strict=True)
        ]
        shape = tuple(int(end - start) for start, end in ranges)
        levels = range(top, len(tree.widths))
        cropped = [
            noisy[level].reshape(tree.grid(level))[
                tuple(
                    slice(start // width, -(-end // width))
                    for (start, end), width in zip(ranges, tree.widths[level], strict=True)
                )
            ]
            for level in levels
        ]
        if shape != (1,) * len(shape):
            pieces.append(_halve(RegularTree(shape, tree.widths[top:]), cropped, [scales[level] for level in levels]))
    return pieces


def halvings(tree: RegularTree) -> list[Widths]:
    """Widths of boxes, powers of two, from one that holds all cells to the cells, each half of the one before."""
    widths = list(tree.widths[-1])
    chain = [tuple(widths)]
    for above in [*tree.widths[-2::-1], None]:
        while True:
            room = [
                (-(-size // width) if above is None else above[axis] // width, axis)
                for axis, (size, width) in enumerate(zip(tree.shape, widths, strict=True))
            ]
            most, axis = max(room)
            if most <= 1:
                break
            widths[axis] *= 2
            chain.insert(0, tuple(widths))
    return chain


def _deviation(tree: RegularTree, parts: Sequence[float], widths: Widths) -> float:
    """Standard deviation of the least squares estimate of a box, in records."""
    variance = 0.0
    for part, level in zip(parts, tree.widths, strict=True):
        variance += part * float(np.prod([width * min(width, wide) for width, wide in zip(widths, level, strict=True)]))
    return math.sqrt(max(variance, 0.0))

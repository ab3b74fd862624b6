"""Least squares on a tree of noisy sums: estimates in which every node is the sum of its children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.trees.regular_tree import RegularTree

FEW = 8  # children along an axis that are added one after the other, for all parents at once
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def consistent(
    measured: Sequence[Reals], parents: Sequence[Numbers], variances: Sequence[float] | None = None
) -> list[Reals]:
    """The weighted least squares estimate of every node, by level, in two passes (Hay, Rastogi, Miklau, Suciu 2010).

    Upwards, a node's own measurement and the sum of its children are averaged, weighted by the inverse of their
    variances. Downwards, the parent minus the sum of its children is shared among the children in proportion to their
    variances. The optimum is exact for any number of children. The leaves are the last level, and every node above has
    at least one child. O(nodes).

    Args:
        measured: for each level, from the top, one measurement per node.
        parents: for each level but the top, the number of each node's parent in the level above.
        variances: of the measurements of each level, above 0; equal if left out.
    """
    own = [1.0] * len(measured) if variances is None else [float(variance) for variance in variances]
    estimates = [np.ascontiguousarray(values, dtype=np.float64) for values in measured]
    numbers = [np.ascontiguousarray(parent, dtype=np.int64) for parent in parents]
    spreads = [np.full(1, variance) for variance in own]  # of a level; one number where all nodes share it
    # One array for all levels, made by NumPy, not in compiled code: it asks the system for large pages.
    ends = np.cumsum([0, *(level.size for level in estimates[:-1])])
    room, work = np.empty(ends[-1]), np.empty((3, ends[-1]))
    below: list[tuple[Reals, Reals]] = []  # for each level, the sums of the nodes' children and of their spreads
    for level in range(len(numbers) - 1, -1, -1):
        nodes = slice(ends[level], ends[level + 1])
        estimate, (sums, sums_spread, spread) = room[nodes], work[:, nodes]
        _sum_children(estimates[level + 1], spreads[level + 1], numbers[level], sums, sums_spread)
        _upwards(estimates[level], own[level], sums, sums_spread, estimate, spread)
        estimates[level], spreads[level] = estimate, spread
        below.insert(0, (sums, sums_spread))
    for level, parent in enumerate(numbers, 1):
        # Above the leaves, the upward pass has made copies that may be overwritten.
        target = np.empty(parent.size) if level == len(numbers) else estimates[level]
        _downwards(estimates[level - 1], *below[level - 1], estimates[level], spreads[level], parent, target)
        estimates[level] = target
    return estimates


@compile_function
def _sum_children(children: Reals, spread: Reals, parent: Numbers, below: Reals, below_spread: Reals) -> None:
    """Writes the sum of each node's children, and of their spreads; shape (nodes,). `spread` has 1 or all entries."""
    for node in range(below.size):
        below[node] = below_spread[node] = 0.0
    alike = spread.size == 1
    for child in range(parent.size):
        below[parent[child]] += children[child]
        below_spread[parent[child]] += spread[0 if alike else child]


@compile_function
def _upwards(
    measured: Reals, variance: float, below: Reals, below_spread: Reals, estimates: Reals, spread: Reals
) -> None:
    """Writes the estimates of a level from the measurements at and below it, and their spread; shape (nodes,)."""
    for node in range(measured.size):
        share = variance / (variance + below_spread[node])  # of the correction that the children's sum is worth
        estimates[node] = measured[node] + share * (below[node] - measured[node])
        spread[node] = share * below_spread[node]


@compile_function
def _downwards(
    above: Reals, below: Reals, below_spread: Reals, children: Reals, spread: Reals, parent: Numbers, target: Reals
) -> None:
    """Shares the parent's estimate minus its children's sum among the children; overwrites `below`."""
    for node in range(above.size):
        below[node] = (above[node] - below[node]) / below_spread[node]
    alike = spread.size == 1
    for child in range(parent.size):
        target[child] = children[child] + spread[0 if alike else child] * below[parent[child]]


def consistent_cells(tree: RegularTree, measured: Sequence[Reals], variances: Sequence[float]) -> Reals:
    """The weighted least squares estimate of every cell, shape of the grid, by two passes over the levels; O(nodes).

    As `consistent`, for levels whose nodes all have the same number of children. The padding is treated as measured to
    be 0, which is true, so the estimates are unbiased.

    Args:
        measured: for each level, from the top, a measurement of every node that holds a cell, in C order.
        variances: of the measurements of each level, above 0.
    """
    fits = [_pad(tree, level, values) for level, values in enumerate(measured)]
    spread = variances[-1]
    below: list[Reals] = []  # for each level, the sums of the nodes' children
    for level in range(len(fits) - 2, -1, -1):
        below.insert(0, _sums(fits[level + 1], fits[level].shape))
        below_spread = _children(tree, level) * spread
        share = variances[level] / (variances[level] + below_spread)  # the weight of the children's sum
        fits[level] += share * (below[0] - fits[level])
        spread = share * below_spread
    for level in range(1, len(fits)):
        lacking = (fits[level - 1] - below[level - 1]) / _children(tree, level - 1)
        children = _blocks(fits[level], lacking.shape)
        children += lacking.reshape([part for nodes in lacking.shape for part in (nodes, 1)])
    return np.ascontiguousarray(fits[-1][tuple(slice(size) for size in tree.shape)])


def _children(tree: RegularTree, level: int) -> int:
    """Children per node of a level."""
    return tree.volumes[level] // tree.volumes[level + 1]


def _pad(tree: RegularTree, level: int, values: Reals) -> Reals:
    """A copy of a level's measurements as a grid, 0 in the padding."""
    grid = np.zeros(tree.padded_grid(level))
    grid[tuple(slice(nodes) for nodes in tree.grid(level))] = values.reshape(tree.grid(level))
    return grid


def _blocks(values: Reals, above: tuple[int, ...]) -> Reals:
    """A view of a level: parents along the even axes, the children of a parent along the odd ones."""
    return values.reshape(
        [part for size, nodes in zip(values.shape, above, strict=True) for part in (nodes, size // nodes)]
    )


def _sums(values: Reals, above: tuple[int, ...]) -> Reals:
    """The sum of every parent's children."""
    blocks = _blocks(values, above)
    for axis in range(2 * len(above) - 1, 0, -2):
        if blocks.shape[axis] > FEW:
            blocks = blocks.sum(axis=axis)
            continue
        ahead: tuple[Any, ...] = (slice(None),) * axis
        total = blocks[*ahead, 0]
        for child in range(1, blocks.shape[axis]):
            total = total + blocks[*ahead, child]
        blocks = total
    return blocks

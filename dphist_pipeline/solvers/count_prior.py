"""The distribution of true counts behind noisy ones, by nonparametric maximum likelihood, and its posterior means.

The prior is a mixture of atoms, i.e. single counts that many noisy cells lie near, and of bins, i.e. ranges of counts
within which all are equally likely. The kernel of two-sided geometric noise falls by the same factor with every step,
so sums over all atoms need one pass from the left and one from the right; no windows are cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]

GROWTH = 1.6  # of the bins' widths, away from 0
REACH = 30.0  # noise scales beyond which a bin is out of sight: a factor of e^-30
STEPS = 40  # of expectation maximisation
CROWD = 3.0  # noisy cells within 1.5 noise scales that make an atom
OWN_MASS = 1.0  # cells' worth of trust in each prior guess: all bins together


@dataclass(frozen=True, eq=False)
class CountPrior:
    """A distribution of counts.

    Attributes:
        atoms: single counts, rising, shape (atoms,).
        atom_weights: their probabilities, shape (atoms,).
        edges: bin k holds the counts edges[k] to edges[k + 1] - 1; shape (bins + 1,).
        bin_weights: the bins' probabilities, shape (bins,).
        scale: of the noise.
    """

    atoms: Reals
    atom_weights: Reals
    edges: Reals
    bin_weights: Reals
    scale: float

    def means(self, points: Reals) -> Reals:
        """Posterior mean of the count behind each noisy cell, shape of the points, O(points + atoms).

        Args:
            points: noisy counts, rising.
        """
        low, mass, first = _bin_sums(points, self.edges, self.scale, REACH)
        dense = np.zeros((points.size, 2))
        _add_bins(dense, low, mass, first, self.bin_weights)
        _add_atoms(dense, points, self.atoms, self.atom_weights, self.scale)
        means: Reals = points + dense[:, 1] / dense[:, 0]
        return means


def bin_edges(lowest: float, highest: float, scale: float) -> Reals:
    """Edges of bins from the lowest count to beyond the highest one, wider away from 0.

    Args:
        lowest: a count; 0 if there are no negative ones.
        highest: a count.
        scale: of the noise; the first bin has a third of it.
    """

    def side(end: float) -> list[float]:
        edges, width = [0.0], max(1.0, math.floor(scale / 3))
        while edges[-1] <= end:
            edges.append(edges[-1] + math.floor(width))
            width *= GROWTH
        return edges

    below = [-edge for edge in side(-lowest)[:0:-1]] if lowest < 0 else []
    return np.array([*below, *side(highest)])


def fitted_prior(points: Reals, cells: Reals, edges: Reals, scale: float, steps: int = STEPS) -> CountPrior:
    """The prior under which the noisy cells are most likely, after some steps of expectation maximisation.

    Args:
        points: distinct noisy counts, rising, shape (n,).
        cells: how many cells have each, shape (n,), may be fractions.
        edges: of the bins; see `bin_edges`. They bound the atoms, too.
        scale: of the noise.
        steps: of expectation maximisation, O(n + atoms) each.
    """
    step = max(1.0, math.floor(scale / 3))
    crowded = points[_crowds(points, cells, 1.5 * scale) >= CROWD]
    atoms = np.unique(np.clip(np.rint(crowded / step) * step, edges[0], edges[-1]))
    low, mass, first = _bin_sums(points, edges, scale, REACH)
    total = cells.sum()
    share = 0.5 / max(1, atoms.size)
    weights = np.full(atoms.size, share if atoms.size else 0.0)
    bins = np.full(edges.size - 1, (1.0 - weights.sum()) / (edges.size - 1))
    alpha_free = 1.0 / (edges.size - 1)
    for _ in range(steps):
        dense = np.zeros((points.size, 2))
        _add_bins(dense, low, mass, first, bins)
        _add_atoms(dense, points, atoms, weights, scale)
        ratio = cells / dense[:, 0]
        weights = weights * _back_to_atoms(ratio, points, atoms, scale)
        bins = bins * _back_to_bins(ratio, low, mass, bins.size) + OWN_MASS * alpha_free
        weights, bins = weights / (total + OWN_MASS), bins / (total + OWN_MASS)
    return CountPrior(atoms, weights, edges, bins, scale)


@compiled
def _crowds(points: Reals, cells: Reals, reach: float) -> Reals:
    """How many cells lie within reach of each point, shape (n,)."""
    crowds, left, right, inside = np.zeros(points.size), 0, 0, 0.0
    for place in range(points.size):
        while right < points.size and points[right] <= points[place] + reach:
            inside += cells[right]
            right += 1
        while points[left] < points[place] - reach:
            inside -= cells[left]
            left += 1
        crowds[place] = inside
    return crowds


@compiled
def _bin_sums(points: Reals, edges: Reals, scale: float, reach: float) -> tuple[Numbers, Reals, Reals]:
    """For each point the first bin within reach, and the kernel's mean and first moment over each bin from there.

    Returns:
        First bins, shape (n,); means, shape (n, most bins); moments around the point, the same.
    """
    bins = edges.size - 1
    low, most, left, right = np.zeros(points.size, dtype=np.int64), 1, 0, 0
    for place in range(points.size):
        while left < bins - 1 and edges[left + 1] <= points[place] - reach * scale:
            left += 1
        right = max(right, left)
        while right < bins - 1 and edges[right + 1] <= points[place] + reach * scale:
            right += 1
        low[place] = left
        most = max(most, right - left + 1)
    mass, first = np.zeros((points.size, most)), np.zeros((points.size, most))
    for place in range(points.size):
        for column in range(min(most, bins - low[place])):
            start, end = edges[low[place] + column], edges[low[place] + column + 1] - 1.0
            mass[place, column], first[place, column] = _range_sums(points[place], start, end, scale)
    return low, mass, first


@compiled
def _range_sums(point: float, start: float, end: float, scale: float) -> tuple[float, float]:
    """Mean over counts t from start to end of exp(-|t - point|/scale), and of the same times (t - point)."""
    number = end - start + 1.0
    if point <= start:
        mass, moment = _tail_sums(start - point, number, scale)
        return mass / number, moment / number
    if point >= end:
        mass, moment = _tail_sums(point - end, number, scale)
        return mass / number, -moment / number
    right, right_moment = _tail_sums(math.ceil(point) - point, end - math.ceil(point) + 1.0, scale)
    left, left_moment = _tail_sums(point - math.ceil(point) + 1.0, math.ceil(point) - start, scale)
    return (left + right) / number, (right_moment - left_moment) / number


@compiled
def _tail_sums(away: float, number: float, scale: float) -> tuple[float, float]:
    """Sums over d = away, away + 1, … (so many terms) of exp(-d/scale) and of d · exp(-d/scale)."""
    rest, last = -math.expm1(-1.0 / scale), -math.expm1(-number / scale)
    before = math.exp(-away / scale)
    mass = last / rest
    moment = (math.exp(-1.0 / scale) * mass - number * (1.0 - last)) / rest + 0.0
    if number == 1.0:
        moment = 0.0
    return before * mass, before * (away * mass + moment)


@compiled
def _add_bins(dense: Reals, low: Numbers, mass: Reals, first: Reals, weights: Reals) -> None:
    """Adds each point's likelihood under the bins, and the first moment around it, to shape (n, 2)."""
    for place in range(low.size):
        for column in range(min(mass.shape[1], weights.size - low[place])):
            weight = weights[low[place] + column]
            dense[place, 0] += weight * mass[place, column]
            dense[place, 1] += weight * first[place, column]


@compiled
def _back_to_bins(ratio: Reals, low: Numbers, mass: Reals, bins: int) -> Reals:
    """Sum over points of ratio · likelihood under each bin, shape (bins,)."""
    back = np.zeros(bins)
    for place in range(low.size):
        for column in range(min(mass.shape[1], bins - low[place])):
            back[low[place] + column] += ratio[place] * mass[place, column]
    return back


@compiled
def _add_atoms(dense: Reals, points: Reals, atoms: Reals, weights: Reals, scale: float) -> None:
    """Adds each point's likelihood under the atoms, and the first moment around it, to shape (n, 2)."""
    for sign in (1.0, -1.0):
        mass, moment, atom = 0.0, 0.0, 0
        at = sign * points[0 if sign > 0 else points.size - 1]
        for turn in range(points.size):
            point = sign * points[turn if sign > 0 else points.size - 1 - turn]
            faded = math.exp(-(point - at) / scale)
            moment, mass, at = (moment - (point - at) * mass) * faded, mass * faded, point
            while atom < atoms.size:
                where = sign * atoms[atom if sign > 0 else atoms.size - 1 - atom]
                # Atoms at a point count once, on the way from the left.
                if where > point or (where == point and sign < 0):
                    break
                weight = weights[atom if sign > 0 else atoms.size - 1 - atom]
                kernel = weight * math.exp(-(point - where) / scale)
                mass, moment = mass + kernel, moment + kernel * (where - point)
                atom += 1
            place = turn if sign > 0 else points.size - 1 - turn
            dense[place, 0] += mass
            dense[place, 1] += sign * moment


@compiled
def _back_to_atoms(ratio: Reals, points: Reals, atoms: Reals, scale: float) -> Reals:
    """Sum over points of ratio · kernel at each atom, shape (atoms,)."""
    back = np.zeros(atoms.size)
    for sign in (1.0, -1.0):
        if atoms.size == 0:
            break
        mass, point = 0.0, 0
        at = sign * atoms[0 if sign > 0 else atoms.size - 1]
        for turn in range(atoms.size):
            atom = turn if sign > 0 else atoms.size - 1 - turn
            where = sign * atoms[atom]
            mass, at = mass * math.exp(-(where - at) / scale), where
            while point < points.size:
                place = point if sign > 0 else points.size - 1 - point
                there = sign * points[place]
                if there > where or (there == where and sign < 0):
                    break
                mass += ratio[place] * math.exp(-(where - there) / scale)
                point += 1
            back[atom] += mass
    return back

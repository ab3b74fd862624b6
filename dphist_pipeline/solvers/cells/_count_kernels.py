"""Sums of the kernel exp(-|t - z| / scale) of two-sided geometric noise over the counts t of a prior.

The kernel falls by the same factor with every step. So sums over single counts (atoms) need one pass from the left and
one from the right, and sums over ranges of counts (bins) have a closed form. No window is cut off for atoms; bins
further off than `reach` noise scales are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


@compiled
def crowds(points: Reals, cells: Reals, reach: float) -> Reals:
    """How many cells lie within reach of each point, shape (n,).

    Args:
        points: counts, distinct and rising, shape (n,).
        cells: number of cells at each point, shape (n,); fractions are weights.
        reach: in records, both ends included.
    """
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
def bin_sums(points: Reals, edges: Reals, scale: float, reach: float) -> tuple[Numbers, Reals, Reals]:
    """For each point the first bin within reach, and the kernel's mean and first moment over each bin from there.

    Args:
        points: counts, distinct and rising, shape (n,).
        edges: bin k holds the counts edges[k] to edges[k + 1] - 1; shape (bins + 1,).
        scale: of the noise, in records.
        reach: in noise scales.

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
    moment = 0.0 if number == 1.0 else (math.exp(-1.0 / scale) * mass - number * (1.0 - last)) / rest
    return before * mass, before * (away * mass + moment)


@compiled
def add_bins(dense: Reals, low: Numbers, mass: Reals, first: Reals, weights: Reals) -> None:
    """Adds each point's likelihood under the bins, and the first moment around it.

    Args:
        dense: added to in place, shape (n, 2).
        low, mass, first: see `bin_sums`.
        weights: probabilities of the bins, shape (bins,).
    """
    for place in range(low.size):
        for column in range(min(mass.shape[1], weights.size - low[place])):
            weight = weights[low[place] + column]
            dense[place, 0] += weight * mass[place, column]
            dense[place, 1] += weight * first[place, column]


@compiled
def back_to_bins(ratio: Reals, low: Numbers, mass: Reals, bins: int) -> Reals:
    """Sum over points of ratio · likelihood under each bin, shape (bins,).

    Args:
        ratio: number of cells at each point over its likelihood, shape (n,).
        low, mass: see `bin_sums`.
        bins: how many there are.
    """
    back = np.zeros(bins)
    for place in range(low.size):
        for column in range(min(mass.shape[1], bins - low[place])):
            back[low[place] + column] += ratio[place] * mass[place, column]
    return back


@compiled
def add_atoms(dense: Reals, points: Reals, atoms: Reals, weights: Reals, scale: float) -> None:
    """Adds each point's likelihood under the atoms, and the first moment around it.

    Args:
        dense: added to in place, shape (n, 2).
        points: counts, distinct and rising, shape (n,).
        atoms: counts, rising, shape (atoms,).
        weights: probabilities of the atoms, shape (atoms,).
        scale: of the noise, in records.
    """
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
def back_to_atoms(ratio: Reals, points: Reals, atoms: Reals, scale: float) -> Reals:
    """Sum over points of ratio · kernel at each atom, shape (atoms,).

    Args:
        ratio: number of cells at each point over its likelihood, shape (n,).
        points, atoms, scale: see `add_atoms`.
    """
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
